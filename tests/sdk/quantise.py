"""Real quantization of a float graph from raw files and encodings, by ONNX Runtime's QNN recipe."""

from __future__ import annotations

import itertools
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

from sdk.graph import ConversionError, dtype_of, shape_of, tensors

_TYPES = {8: QuantType.QUInt8, 16: QuantType.QUInt16}
_SAMPLES = 8  # enough for ranges that are true, few enough to be quick


@dataclass(frozen=True)
class Recipe:
    """Options of one quantization; bit widths are those of `--act_bitwidth` and `--weights_bitwidth`."""

    input_list: Path | None = None
    native: bool = False  # raw files hold the input's own dtype, not float32
    act_bits: int = 8
    weight_bits: int = 8
    per_channel: bool = False
    keep_io: frozenset[str] = frozenset()  # inputs and outputs that stay float
    overrides: dict[str, dict[str, Any]] = field(default_factory=dict)
    only_overrides: bool = False  # float fallback: what has no encoding stays float
    axes: Mapping[str, Sequence[int]] = field(default_factory=dict)  # of raw files, where not the graph's


class _Feeds(CalibrationDataReader):  # type: ignore[misc] # onnxruntime has no types
    def __init__(self, feeds: Sequence[dict[str, np.ndarray[Any, Any]]]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> dict[str, np.ndarray[Any, Any]] | None:
        return next(self._feeds, None)


def listed(input_list: Path) -> list[list[str]]:
    """The items of each inference of an input list, comments and output lines left out."""
    lines = input_list.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.strip() and line[0] not in "#%"]


def feeds(model: Any, recipe: Recipe, input_list: Path) -> Iterator[dict[str, np.ndarray[Any, Any]]]:
    """The raw files of an input list as arrays; a file of the wrong size ends the conversion."""
    for items in listed(input_list):
        named = dict(item.split(":=", 1) for item in items if ":=" in item)
        feed = {}
        for at, value in enumerate(model.graph.input):
            path = Path(named[value.name] if value.name in named else items[at])
            own = dtype_of(value)
            stored = own if recipe.native or own.kind != "f" else np.dtype(np.float32)
            data = np.fromfile(path, stored)
            if data.size != np.prod(shape_of(value)):
                raise ConversionError(
                    f"The size of input file {path} ({data.nbytes}) does not match the size of input {value.name}"
                )
            axes = recipe.axes.get(value.name, range(len(shape_of(value))))
            data = data.reshape([shape_of(value)[axis] for axis in axes])
            feed[value.name] = np.ascontiguousarray(data.transpose(np.argsort(axes)), own)
        yield feed


def read_overrides(path: Path) -> dict[str, dict[str, Any]]:
    """Per-tensor encodings by tensor: both the old schema of dicts and the 1.0.0 schema of lists."""
    text = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = {}
    for kind in ("activation_encodings", "param_encodings"):
        part = text.get(kind, {})
        for name, encoding in part.items() if isinstance(part, dict) else ((each["name"], each) for each in part):
            found[name] = _encoding(name, encoding)
    return found


def _encoding(name: str, given: Any) -> dict[str, Any]:
    first = given[0] if isinstance(given, list) else given
    bits = first.get("bitwidth", first.get("bw"))
    if bits is None:
        raise ConversionError(f"{name}: Bitwidth must be present")
    if first.get("dtype", "int").lower().startswith("float"):
        return {}
    scale, offset = (value[0] if isinstance(value, list) else value for value in (first["scale"], first["offset"]))
    # QNN's offset is the negated zero point.
    return {"bits": int(bits), "scale": float(scale), "zero": -int(offset)}


def quantised(model: Any, recipe: Recipe) -> tuple[Any, list[str]]:
    """The model in QDQ form with fixed-point inputs and outputs, and the names of ops that stayed float."""
    known = tensors(model)
    usable = {name: each for name, each in recipe.overrides.items() if name in known and each}
    floats = _uncovered(model, usable) if recipe.only_overrides else []
    if recipe.input_list is not None:
        samples = list(itertools.islice(feeds(model, recipe, recipe.input_list), _SAMPLES))
    else:
        samples = [{value.name: np.zeros(shape_of(value), dtype_of(value)) for value in model.graph.input}]
    weights = {each.name for each in model.graph.initializer}
    logging.disable(logging.WARNING)  # its own advice is not one of the converter's lines
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "qdq.onnx"
        onnx.save(model, str(source))
        config = get_qnn_qdq_config(
            str(source),
            _Feeds(samples),
            activation_type=_TYPES[recipe.act_bits],
            weight_type=_TYPES[max(recipe.weight_bits, 8)],
            per_channel=recipe.per_channel,
            init_overrides={
                name: [
                    {
                        "quant_type": _TYPES[each["bits"]],
                        "scale": np.array(each["scale"], np.float32),
                        "zero_point": np.array(each["zero"], np.uint8 if each["bits"] == 8 else np.uint16),
                    }
                ]
                for name, each in usable.items()
                if name not in weights and each["bits"] in _TYPES
            },
            nodes_to_exclude=floats or None,
        )
        quantize(str(source), str(target), config)
        result = onnx.load(str(target))
    _fixed_point_ports(result, recipe.keep_io)
    return result, floats


def _uncovered(model: Any, overrides: dict[str, Any]) -> list[str]:
    for at, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{at}"
    weights = {each.name for each in model.graph.initializer}
    return [
        node.name
        for node in model.graph.node
        if any(name and name not in overrides and name not in weights for name in (*node.input, *node.output))
    ]


def _fixed_point_ports(model: Any, kept: frozenset[str]) -> None:
    """Take the Q off inputs and the DQ off outputs: the binary's own ports are then fixed-point."""
    graph = model.graph
    zeros = {each.name: each.data_type for each in graph.initializer}
    for value in graph.input:
        users = [node for node in graph.node if value.name in node.input]
        if value.name in kept or not users or any(node.op_type != "QuantizeLinear" for node in users):
            continue
        value.type.tensor_type.elem_type = zeros[users[0].input[2]]
        for user in users:
            _bypass(graph, user, value.name)
    for value in graph.output:
        maker = next((node for node in graph.node if value.name in node.output), None)
        if value.name in kept or maker is None or maker.op_type != "DequantizeLinear":
            continue
        if any(value.name in node.input for node in graph.node):
            continue
        before = next(node for node in graph.node if maker.input[0] in node.output)
        value.type.tensor_type.elem_type = zeros[maker.input[2]]
        inner = maker.input[0]
        graph.node.remove(maker)
        for node in graph.node:
            node.input[:] = [value.name if each == inner else each for each in node.input]
        before.output[:] = [value.name if each == inner else each for each in before.output]


def _bypass(graph: Any, node: Any, source: str) -> None:
    made = node.output[0]
    graph.node.remove(node)
    for other in graph.node:
        other.input[:] = [source if each == made else each for each in other.input]
