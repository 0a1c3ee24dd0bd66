"""What can be said of a graph without compiling it. Weights in external files are never read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx

from qnnci.findings import Finding
from qnnci.model import ops, static, weights
from qnnci.model.fold import Folded, fold
from qnnci.model.graph import (
    broken_graphs,
    dims_of,
    elements,
    inlined,
    is_onnx,
    label,
    load,
    numpy_dtype,
    opset,
    port,
    real_inputs,
    tensor_bytes,
    tensors,
)
from qnnci.model.inputs import fix_inputs, int64_ports
from qnnci.project import Input
from qnnci.rules import finding

MAX_FP16_BYTES = 2_000_000_000
FP16_MIN = -65504
# Where a constant goes on as a value; Clip, Max and Min only compare with it.
_CARRIERS = (
    "Add",
    "Sub",
    "Mul",
    "Where",
    "Expand",
    "Pad",
    "Concat",
    "Unsqueeze",
    "Reshape",
    "ScatterND",
    "Cast",
)
_NO_INPUTS: Mapping[str, Input] = MappingProxyType({})


def check(path: Path, *, inputs: Mapping[str, Input] = _NO_INPUTS) -> list[Finding]:
    """Look at a graph as it will be once `inputs` fix its shapes; without them, what hangs on shapes stays open.

    Raises:
        UsageError: not ONNX, broken, or an input that the graph has not.

    """
    with broken_graphs(path):
        return [each.at(stage="check") for each in _once(_check(path, inputs))]


def _check(path: Path, inputs: Mapping[str, Input]) -> list[Finding]:
    where = str(path)
    model = inlined(load(path))
    found = _versions(model)
    lost = [finding("weights-missing", problem) for problem in weights.missing(model, path)]
    if not lost:
        weights.take_in(model, path.parent, at_most=weights.SMALL)
    _, loose = fix_inputs(model, inputs, where)
    found += lost + _port_types(model.graph) + int64_ports(model.graph)
    folded = fold(model, where)
    found += loose + _static(model.graph, folded, loose=bool(loose))
    return found + _ops(model.graph, folded) + _ranks(model.graph, folded) + _parameters(model) + _masks(model.graph)


def _once(found: Iterable[Finding]) -> list[Finding]:
    """Drop what is said of the size of an op's output where the op itself is refused."""
    found = list(found)
    refused = {each.node for each in found if each.rule in {"unsupported-op", "dynamic-quantize"}}
    return [each for each in found if each.rule not in {"dynamic-dim", "bad-shape"} or each.node not in refused - {""}]


def _versions(model: Any) -> list[Finding]:
    found, version = [], opset(model)
    if not ops.OLDEST_OPSET <= version <= ops.NEWEST_OPSET:
        found.append(finding("old-opset", f"the graph has opset {version}"))
    if model.ir_version > ops.NEWEST_IR:
        found.append(finding("new-ir", f"the graph has IR version {model.ir_version}"))
    return found


def _port_types(graph: Any) -> list[Finding]:
    quantized = {name for node in graph.node if node.op_type == "DequantizeLinear" for name in node.input[:1]}
    quantized |= {name for node in graph.node if node.op_type == "QuantizeLinear" for name in node.output}
    found = []
    for side, values in (("input", real_inputs(graph)), ("output", graph.output)):
        for value in values:
            dtype = port(value.name, value.type).dtype
            fits = dtype in ops.PORT_TYPES | {"int64"} or (
                dtype in ops.QUANTIZED_PORT_TYPES and value.name in quantized
            )
            if not fits:
                found.append(finding("unsupported-input-type", f"{side} {value.name} is {dtype}"))
    return found


def _static(graph: Any, folded: Folded, *, loose: bool) -> list[Finding]:
    """Control flow and open dimensions; while inputs are loose, an `If` may yet fold and nothing else is sure."""
    flow = static.control_flow(graph)
    if loose:
        unsure = "; it may fold once the inputs are fixed"
        return [replace(each, message=each.message + unsure, severity="warning") for each, by_value in flow if by_value]
    return [each for each, _ in flow] + static.refusals(folded) or static.openings(graph, folded)


def _ops(graph: Any, folded: Folded) -> list[Finding]:
    """One finding for each kind of op, naming the first node of it."""
    kinds: dict[str, list[Any]] = defaultdict(list)
    for node in static.computing(graph):
        kinds[node.op_type if is_onnx(node) else f"{node.domain}.{node.op_type}"].append(node)
    found = []
    for kind, nodes in kinds.items():
        node, count = label(nodes[0]), _count(nodes)
        if hint := ops.UNSUPPORTED.get(kind):
            found.append(finding("unsupported-op", f"HTP has no {kind}{count}", hint=hint, node=node))
        elif kind in ops.DYNAMIC_QUANTIZE:
            found.append(finding("dynamic-quantize", f"{kind} quantizes at run time{count}", node=node))
        elif why := ops.COSTLY.get(kind):
            found.append(finding("costly-op", f"{kind} is slow on HTP{count}: {why}", node=node))
    volumes = [node for node in kinds["Conv"] if _rank(folded, node.input[0]) > 4]  # noqa: PLR2004 - batch, channels, two axes
    if volumes:
        message = f"Conv over three axes is slow on HTP{_count(volumes)}"
        found.append(finding("costly-op", message, node=label(volumes[0])))
    return found


def _count(nodes: list[Any]) -> str:
    return f" ({len(nodes)} nodes)" if len(nodes) > 1 else ""


def _rank(folded: Folded, name: str) -> int:
    return len(dims_of(folded.types[name]) or ()) if name in folded.types else 0


def _ranks(graph: Any, folded: Folded) -> list[Finding]:
    found = [
        finding("high-rank", f"{value.name} has rank {rank}")
        for value in [*real_inputs(graph), *graph.output]
        if (rank := len(dims_of(value.type) or ())) > ops.MAX_RANK
    ]
    makers = {name: node for node in graph.node for name in node.output}
    users: dict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            users[name].append(node)
    for node in graph.node:
        rank = max((_rank(folded, name) for name in [*node.input, *node.output]), default=0)
        if rank > ops.MAX_RANK and not _shuffles(node, rank, makers, users):
            found.append(finding("high-rank", f"{node.op_type} works on rank {rank}", node=label(node)))
    return found


def _shuffles(node: Any, rank: int, makers: Mapping[str, Any], users: Mapping[str, list[Any]]) -> bool:
    """Whether a node is part of Reshape-Transpose-Reshape, which never exists in its high rank."""
    if is_onnx(node, "Reshape"):
        return True
    if not is_onnx(node, "Transpose") or rank > ops.MAX_SHUFFLE_RANK or node.input[0] not in makers:
        return False
    around = [makers[node.input[0]], *users[node.output[0]]]
    return len(around) > 1 and all(is_onnx(each, "Reshape") for each in around)


def _parameters(model: Any) -> list[Finding]:
    count = size = 0
    for tensor in tensors(model):
        count += elements(tensor)
        size += min(tensor_bytes(tensor), 2 * elements(tensor))
    if size <= MAX_FP16_BYTES:
        return []
    return [finding("too-many-parameters", f"{count / 1e9:.1f} billion parameters are {size / 1e9:.1f} GB in fp16")]


def _masks(graph: Any) -> list[Finding]:
    found = []
    for node, name, tensor in _constants(graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or numpy_dtype(tensor.data_type).kind != "f":
            continue
        values = onnx.numpy_helper.to_array(tensor)
        lowest, highest = float(np.min(values, initial=0)), float(np.max(values, initial=0))
        if lowest < FP16_MIN:
            found.append(finding("infinite-mask", f"the constant {name} holds {lowest:g}", node=label(node)))
        if highest > -FP16_MIN:
            found.append(finding("fp16-overflow", f"the constant {name} holds {highest:g}", node=label(node)))
    return found


def _constants(graph: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield constants that nodes carry on, each once: the node, its name and the tensor."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if is_onnx(node, *_CARRIERS):
            for name in node.input:
                if tensor := stored.pop(name, None):
                    yield node, name, tensor
        for attribute in node.attribute:
            if is_onnx(node, "Constant", "ConstantOfShape") and attribute.name == "value":
                yield node, node.output[0], attribute.t
