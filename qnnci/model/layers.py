"""Where a graph's numbers go wrong: its tensors as outputs, its nodes alone, and the layers whose error jumps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from qnnci.arrays import Arrays
from qnnci.model.graph import load
from qnnci.model.reference import session_of

FINE_DB = 60.0  # an error below is what fp16 itself makes: 2^-11 of each value
# Where it matters, by precision: what a layer with few bits loses by itself is more, and no news.
_FINE_DB = {"fp16": FINE_DB, "w8a16": 40.0, "w8a8": 32.0, "w4a16": 18.0}
JUMP_DB = 6.0  # the error has doubled
_HALF = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
_UNKNOWN_BYTES = 1 << 20
# Not computed with: they are not worth exposing.
_PASSING = frozenset({"Identity", "Constant", "QuantizeLinear", "DequantizeLinear"})


@dataclass(frozen=True, slots=True)
class Tensor:
    """A float tensor that a node of a static graph makes; `depth` counts nodes from the start."""

    name: str
    depth: int
    node: str
    op: str
    inputs: tuple[str, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Layer:
    """One tensor over all samples, on the HTP (or in a simulation of it) against the CPU in float32.

    snr_db: its own. before_db: the worst of the tensors that it is made of; None where none is known. alone_db: the
    node alone, fed with what the HTP fed it, against what the HTP made of that; None where it was not asked.
    peak: the largest absolute value on the CPU.
    """

    tensor: str
    depth: int
    node: str
    op: str
    snr_db: float | None
    before_db: float | None
    peak: float
    alone_db: float | None = None
    ends: tuple[str, ...] = ()  # outputs of the graph that only renaming and reshaping separate from it
    parts: tuple[str, ...] = ()  # nodes before it that became part of it, as a Conv of its Relu

    @property
    def drop_db(self) -> float:
        """By how much the signal-to-noise ratio falls here; infinite where values stop being finite."""
        if self.snr_db is None:
            return math.inf
        return (self.before_db if self.before_db is not None else _MOST) - self.snr_db

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layer:
        return cls(**{**data, "ends": tuple(data["ends"]), "parts": tuple(data["parts"])})


_MOST = 80.0  # dB: better than any fp16 rounding, so that an input's own rounding is no jump


def fine_db(precision: str) -> float:
    """Return the signal-to-noise ratio from which on a layer is as good as its precision is."""
    return _FINE_DB.get(precision, FINE_DB)


def jumps(layers: Sequence[Layer], fine: float = FINE_DB) -> list[Layer]:
    """Layers whose error jumps to where it matters, below `fine` dB, in the graph's order."""
    return [each for each in layers if (each.snr_db or 0) < fine and each.drop_db >= JUMP_DB]


def tensors(model: Path) -> list[Tensor]:
    """Every float tensor that is computed in a static graph, in the graph's order."""
    proto = load(model)
    known = onnx.shape_inference.infer_shapes(proto).graph
    types = {each.name: each.type.tensor_type for each in (*known.value_info, *known.output)}
    found = []
    for depth, node in enumerate(proto.graph.node):
        for name in node.output:
            kind = types.get(name)
            if kind is None or kind.elem_type != onnx.TensorProto.FLOAT or node.op_type in _PASSING:
                continue
            dims = [dim.dim_value for dim in kind.shape.dim]
            size = 4 * math.prod(dims) if all(dims) else _UNKNOWN_BYTES
            found.append(Tensor(name, depth, node.name or name, node.op_type, tuple(node.input), size))
    return found


def ends(model: Path) -> dict[str, tuple[str, ...]]:
    """By tensor, the outputs of the graph that are the same values: nothing but a change of shape lies between."""
    graph = load(model).graph
    same: dict[str, set[str]] = {each.name: {each.name} for each in graph.output}
    for node in reversed(graph.node):
        if node.op_type in _RESHAPING:
            reached = set().union(*(same.get(name, set()) for name in node.output))
            for name in node.input[:1]:
                same.setdefault(name, set()).update(reached)
    return {name: tuple(sorted(found)) for name, found in same.items() if found}


_RESHAPING = frozenset(
    {
        "Identity",
        "Squeeze",
        "Unsqueeze",
        "Reshape",
        "Flatten",
        "Transpose",
        "Concat",
        "DequantizeLinear",
        "QuantizeLinear",
    }
)


def chunks(found: Sequence[Tensor], most_bytes: int) -> Iterator[list[Tensor]]:
    """Tensors in runs that are exposed at once: few enough to hold, and the compiler may still fuse the others."""
    chunk: list[Tensor] = []
    for each in found:
        if chunk and sum(other.bytes for other in chunk) + each.bytes > most_bytes:
            yield chunk
            chunk = []
        chunk.append(each)
    if chunk:
        yield chunk


def exposed(model: Path, names: Sequence[str], out: Path) -> dict[str, str]:
    """Write a graph with these tensors as outputs beside `model`, whose external data it shares.

    In a QDQ graph a tensor is what its DequantizeLinear gives, or its half form where it stayed float. Returns the
    output's name by tensor; tensors that the graph no longer has are left out.
    """
    proto = load(model)
    made = {name for node in proto.graph.node for name in node.output}
    outputs = {each.name for each in proto.graph.output}
    where = {}
    for name in names:
        forms = (f"{name}_DequantizeLinear_Output", name, f"{name}/half")
        there = next((each for each in forms if each in made), None)
        if there:
            where[name] = there
            if there not in outputs:
                outputs.add(there)
                kind = _HALF[there == forms[-1]]
                proto.graph.output.append(onnx.helper.make_tensor_value_info(there, kind, None))
    onnx.save(proto, str(out))
    return where


def rounded(model: Path, out: Path) -> None:
    """Write the graph with every float weight and every computed float tensor rounded to fp16, beside `model`.

    A quick look at what fp16 does, on the CPU and without compiling: sums inside an op stay in float32.
    """
    proto = load(model)
    onnx.load_external_data_for_model(proto, str(model.parent))
    graph = proto.graph
    floats = {each.name for each in tensors(model)}
    for weight in graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT:
            array = onnx.numpy_helper.to_array(weight)
            with np.errstate(over="ignore"):  # beyond 65504 it is infinite in fp16 too
                weight.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16).astype(np.float32), weight.name))
    nodes: list[Any] = []
    taken = {}
    for each in graph.input:
        if each.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            taken[each.name] = f"{each.name}_rounded"
            nodes += _casts(taken[each.name], each.name)
    for node in graph.node:
        nodes.append(node)
        for place, name in enumerate(node.input):
            node.input[place] = taken.get(name, name)
        for place, name in enumerate(node.output):
            if name in floats:
                node.output[place] = f"{name}_exact"
                nodes += _casts(name, f"{name}_exact")
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(proto, str(out), save_as_external_data=True, location=f"{out.name}.data", size_threshold=1 << 20)


def _casts(name: str, exact: str) -> list[Any]:
    half, kinds = f"{name}_half", (onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT)
    return [
        onnx.helper.make_node("Cast", [source], [target], to=kind)
        for source, target, kind in zip((exact, half), (half, name), kinds, strict=True)
    ]


class Alone:
    """One node of a graph by itself on the CPU, its weights with it."""

    def __init__(self, model: Path, output: str, scratch: Path) -> None:
        proto = load(model)
        onnx.load_external_data_for_model(proto, str(model.parent))
        node = next(each for each in proto.graph.node if output in each.output)
        weights = [each for each in proto.graph.initializer if each.name in node.input]
        held = {each.name for each in weights}
        known = onnx.shape_inference.infer_shapes(proto).graph
        types = {each.name: each for each in (*known.value_info, *known.input, *known.output)}
        self.inputs = tuple(name for name in dict.fromkeys(node.input) if name and name not in held)
        ports = [types[name] for name in self.inputs]
        wanted = onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None)
        graph = onnx.helper.make_graph([node], "alone", ports, [wanted], weights)
        onnx.save(
            onnx.helper.make_model(graph, opset_imports=proto.opset_import, ir_version=proto.ir_version), str(scratch)
        )
        self._session = session_of(scratch)

    def run(self, feed: Mapping[str, Any]) -> Arrays:
        """Run one feed, which may hold more than the node takes."""
        outputs = [each.name for each in self._session.get_outputs()]
        got = self._session.run(outputs, {name: feed[name] for name in self.inputs})
        return dict(zip(outputs, got, strict=True))
