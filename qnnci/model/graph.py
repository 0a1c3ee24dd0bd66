"""Reading ONNX graphs: what goes in and out, what nodes need of each other. Weights kept outside are never read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner

from qnnci.errors import QnnciError, UsageError

Dim = int | str | None
_NAMES = {"FLOAT": "float32", "DOUBLE": "float64", "UNDEFINED": "unknown"}
_BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
# What people feed by mistake, by its first bytes.
_MAGIC = {
    b"version https://git-lfs": ("a Git LFS pointer, not the model", "run `git lfs pull`"),
    b"PK\x03\x04": ("a zip archive (PyTorch?)", "export the model to ONNX"),
    b"<": ("a web page (HTML) or XML", "download the raw file, not the page that shows it"),
    b"{": ("JSON", "give the .onnx file"),
    b"GGUF": ("a GGUF file", "export the model to ONNX"),
}


@dataclass(frozen=True, slots=True)
class Port:
    """A graph input or output. `dtype` in numpy's words (float32, int64, string); `dims` is None where unknown.

    A dimension is a number, the symbol that the graph gives it, or None.
    """

    name: str
    dtype: str
    dims: tuple[Dim, ...] | None

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{shape_text(self.dims)}"


@dataclass(frozen=True, slots=True)
class GraphIO:
    """What a graph takes and gives, in the graph's own order."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


def load(path: Path) -> Any:
    """Parse a model, leaving weights in external data files where they are.

    Raises:
        UsageError: not there, not ONNX, truncated, or without a graph.

    """
    where = str(path)
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise UsageError("is a folder, not an ONNX file", where=where, hint="name the .onnx file in it") from error
    except OSError as error:
        raise UsageError(f"cannot read the model: {error.strerror}", where=where, hint="check the path") from error
    if not data:
        raise UsageError("the file is empty", where=where, hint="download or export the model again")
    for magic, (what, hint) in _MAGIC.items():
        if data.startswith(magic):
            raise UsageError(f"not ONNX: it is {what}", where=where, hint=hint)
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf has errors of its own
        message = f"not ONNX, or truncated ({len(data):,} bytes)"
        hint = "download or export the model again, and compare its size"
        raise UsageError(message, where=where, hint=hint) from error
    if not model.graph.output or not model.graph.node:
        raise UsageError("the file holds no ONNX graph", where=where, hint="export the model again")
    _known_types(model, where)
    return model


def _known_types(model: Any, where: str) -> None:
    known = set(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
    for tensor in tensors(model):
        if tensor.data_type not in known or any(dim < 0 for dim in tensor.dims):
            message = f"broken graph: the tensor {tensor.name!r} has type {tensor.data_type}, dims {list(tensor.dims)}"
            raise UsageError(message, where=where, hint="export the model again, or upgrade onnx")


@contextlib.contextmanager
def broken_graphs(path: Path) -> Iterator[None]:
    """Tell what a graph that contradicts itself makes onnx and numpy say; such a file can fail them anywhere."""
    try:
        yield
    except (QnnciError, OSError, MemoryError):
        raise
    except Exception as error:
        message = f"broken graph: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        hint = "export the model again; if ONNX Runtime runs it as it is, report it to qnn-compile"
        raise UsageError(message, where=str(path), hint=hint) from error


def inlined(model: Any) -> Any:
    """Return the model with its local functions put in where they are called."""
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def describe(path: Path) -> GraphIO:
    """Names, dtypes and dimensions of a model's inputs and outputs.

    Raises:
        UsageError: as `load`.

    """
    graph = load(path).graph
    outputs = tuple(port(value.name, value.type) for value in graph.output)
    return GraphIO(graph.name, tuple(port(value.name, value.type) for value in real_inputs(graph)), outputs)


def real_inputs(graph: Any) -> list[Any]:
    """Inputs that are fed; up to IR version 3 every initializer is listed as an input too."""
    defaults = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in defaults]


def port(name: str, kind: Any) -> Port:
    """A port of a name and a TypeProto; what is not a tensor (sequence, map, optional) is its own dtype."""
    if kind.WhichOneof("value") != "tensor_type":
        return Port(name, str(kind.WhichOneof("value") or "unknown").removesuffix("_type"), None)
    return Port(name, dtype_name(kind.tensor_type.elem_type), dims_of(kind))


def dtype_name(elem: int) -> str:
    """Name an ONNX element type: 1 is float32, 7 is int64."""
    try:
        name = str(onnx.TensorProto.DataType.Name(elem))
    except ValueError:
        return f"type {elem}"
    return _NAMES.get(name, name.lower())


def numpy_dtype(elem: int) -> np.dtype[Any]:
    dtype: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(elem)
    return dtype


def dims_of(kind: Any) -> tuple[Dim, ...] | None:
    """Dimensions of a TypeProto; negative ones, which exporters write for unknown, are None."""
    tensor = kind.tensor_type
    if kind.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
        return None
    return tuple(_dim(dim) for dim in tensor.shape.dim)


def _dim(dim: Any) -> Dim:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return str(dim.dim_param) or None


def static_shape(kind: Any) -> tuple[int, ...] | None:
    """The shape of a tensor type of which every dimension is known, else None."""
    dims = dims_of(kind) if kind is not None else None
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        return None
    return tuple(dim for dim in dims if isinstance(dim, int))


def shape_text(dims: Iterable[Dim] | None) -> str:
    return "[?]" if dims is None else f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def tensor_type(elem: int, dims: Iterable[int]) -> Any:
    return onnx.helper.make_tensor_type_proto(elem, tuple(dims))


def subgraphs(node: Any) -> Iterator[Any]:
    """Bodies of control flow that a node holds."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def walk(graph: Any) -> Iterator[Any]:
    """A graph and every graph nested in it."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from walk(inner)


def tensors(model: Any) -> Iterator[Any]:
    """Every stored tensor: initializers and tensor attributes, nested graphs and functions included."""
    for graph in walk(model.graph):
        yield from graph.initializer
        yield from _attribute_tensors(graph.node)
    for function in model.functions:
        yield from _attribute_tensors(function.node)


def _attribute_tensors(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def elements(tensor: Any) -> int:
    count = 1
    for dim in tensor.dims:
        count *= max(int(dim), 0)
    return count


def tensor_bytes(tensor: Any) -> int:
    """Bytes that a tensor's dims and dtype make, packed 4-bit types included; 0 for strings."""
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    bits = _BITS.get(name) or (0 if name == "STRING" else numpy_dtype(tensor.data_type).itemsize * 8)
    return (elements(tensor) * bits + 7) // 8


def parameters(model: Any) -> int:
    """How many numbers a model stores, by dims alone."""
    return sum(elements(tensor) for tensor in tensors(model))


def opset(model: Any) -> int:
    """Version of the default operator set; 1 where none is named, as the ONNX standard says."""
    return max((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), default=1)


def is_onnx(node: Any, *ops: str) -> bool:
    """Whether a node is of the default operator set, and of one of `ops` if given."""
    return node.domain in {"", "ai.onnx"} and (not ops or node.op_type in ops)


def label(node: Any) -> str:
    """A name to find a node by: its own, else that of what it makes."""
    return str(node.name or next((name for name in node.output if name), node.op_type))
