"""How a graph travels from tool to tool inside the stand-in's files: the whole truth, so that a real binary follows.

A C++ file names the weights that its `.bin` holds, a tar of `<tensor>.raw`; a model library is an ELF with a ZIP
behind it; a DLC is a ZIP. A weight that got lost on the way is missed when the graph is composed.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
import zipfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, numpy_helper

from sdk.graph import sanitised

_LINE = 100
_MEMBERS = ("model", "model.params", "dlc.metadata")


@dataclass(frozen=True)
class About:
    """What is known of a graph beside its nodes."""

    name: str  # as `graph_names` has to say it
    build: str  # of the SDK, as in `qaisw-v…`
    quantized: bool = False
    float_ops: tuple[str, ...] = ()  # that float fallback left
    backend: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)  # encodings that wait for qairt-quantizer
    command: str = ""


@dataclass(frozen=True)
class Carried:
    about: About
    model: Any  # without weights, which it names
    weights: dict[str, bytes]

    def whole(self) -> Any:
        """The ONNX model with its weights.

        Raises:
            KeyError: one is missing.

        """
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for tensor in model.graph.initializer:
            if tensor.external_data:
                tensor.raw_data = self.weights[tensor.external_data[0].value]
                tensor.ClearField("external_data")
                tensor.data_location = TensorProto.DEFAULT
        return model


def carried(model: Any, about: About) -> Carried:
    """Part the weights from the graph."""
    apart, weights = onnx.ModelProto(), {}
    apart.CopyFrom(model)
    for tensor in apart.graph.initializer:
        raw = f"{sanitised(tensor.name)}.raw"
        while raw in weights:  # a.b and a/b
            raw = f"_{raw}"
        weights[raw] = numpy_helper.to_array(tensor).tobytes()
        kept = {"name": tensor.name, "data_type": tensor.data_type, "dims": list(tensor.dims)}
        tensor.Clear()
        tensor.name, tensor.data_type = kept["name"], kept["data_type"]
        tensor.dims.extend(kept["dims"])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=raw)
    return Carried(about, apart, weights)


def write_cpp(path: Path, given: Carried, namespace: str) -> None:
    """The C++ file: its header comment as the converter writes it, and the graph as one string."""
    text = base64.b85encode(given.model.SerializeToString()).decode()
    lines = "\n".join(f'    R"({text[at : at + _LINE]})"' for at in range(0, len(text), _LINE))
    path.write_text(
        f"/* COPYRIGHT HEADER GOES HERE: No CopyRight Header String Passed During Model Conversion */\n\n"
        f"/* Command Line used:\n{given.about.command}; {namespace}\n*/\n\n"
        '#include "QnnOpDef.h"\n#include "QnnModel.hpp"\n\n'
        f'#define QNN_SDK_VERSION "qaisw-{given.about.build}"\n'
        f"// about: {json.dumps(asdict(given.about))}\n"
        f"static const char graph[] =\n{lines};\n",
        encoding="utf-8",
    )


def read_cpp(path: Path) -> Carried:
    """The graph of a C++ file, still without weights.

    Raises:
        ValueError: not one of the stand-in's.

    """
    text = path.read_text(encoding="utf-8")
    about = re.search(r"^// about: (.*)$", text, re.MULTILINE)
    if not about:
        raise ValueError(f"{path} holds no graph")
    graph = "".join(re.findall(r'^    R"\((.*)\)"', text, re.MULTILINE))
    return _carried(about[1], base64.b85decode(graph), {})


def write_raws(path: Path, weights: dict[str, bytes]) -> None:
    """The `.bin` of a converter: a plain tar."""
    with tarfile.open(path, "w") as tar:
        for name, data in weights.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def with_raws(given: Carried, path: Path) -> Carried:
    with tarfile.open(path) as tar:
        weights = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr] # files only
    return replace(given, weights=weights)


def packed(given: Carried) -> bytes:
    """A ZIP of everything: a DLC, or what stands behind a model library's ELF."""
    raws = io.BytesIO()
    with tarfile.open(fileobj=raws, mode="w") as tar:
        for name, data in given.weights.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    whole = io.BytesIO()
    contents = (given.model.SerializeToString(), raws.getvalue(), json.dumps(asdict(given.about), indent=1).encode())
    with zipfile.ZipFile(whole, "w") as archive:
        for name, data in zip(_MEMBERS, contents, strict=True):
            archive.writestr(name, data)
    return whole.getvalue()


def unpacked(path: Path) -> Carried:
    """The graph of a DLC or a model library.

    Raises:
        zipfile.BadZipFile: neither.

    """
    with zipfile.ZipFile(path) as archive:
        model, raws, about = (archive.read(name) for name in _MEMBERS)
    with tarfile.open(fileobj=io.BytesIO(raws)) as tar:
        weights = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr] # files only
    return _carried(about.decode(), model, weights)


def _carried(about: str, model: bytes, weights: dict[str, bytes]) -> Carried:
    said = json.loads(about)
    return Carried(About(**{**said, "float_ops": tuple(said["float_ops"])}), onnx.load_from_string(model), weights)
