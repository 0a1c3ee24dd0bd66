"""One pass over a graph that knows every shape: values that follow from shapes become constants, decided `If`s go.

onnxsim and ONNX Runtime both fold an `If` of nested branches wrongly (nodes out of order, a segfault), so graphs
go through here first; afterwards no `If` that could be decided is left for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from qnnci.model.graph import (
    elements,
    is_onnx,
    label,
    numpy_dtype,
    real_inputs,
    static_shape,
    subgraphs,
    tensor_type,
)
from qnnci.model.infer import SMALL, Inference
from qnnci.model.names import defined, make_names_unique, reads, rename_reads, sort_nodes


@dataclass
class Folded:
    """What is known after folding: the type of each value, small constants, and nodes that something is wrong with."""

    types: dict[str, Any] = field(default_factory=dict)
    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    refused: list[tuple[Any, str]] = field(default_factory=list)
    unsure: list[tuple[Any, str]] = field(default_factory=list)


def fold(model: Any, where: str) -> Folded:
    """Fold a model in place; its inputs should be fixed. All stale shapes inside are replaced by inferred ones.

    `refused` are nodes whose inputs do not fit together, with the reason; `unsure` are nodes (control flow apart)
    whose inputs have static shapes but the named output has not. Nothing that only follows from those is listed.

    Raises:
        UsageError: the graph is broken: undefined or doubled names, or a circle.

    """
    graph = model.graph
    sort_nodes(graph, where)
    inputs = real_inputs(graph)
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, 4)  # before, initializers had to be inputs too
    make_names_unique(graph)
    known = Folded()
    for value in inputs:
        known.types[value.name] = value.type
    for tensor in graph.initializer:
        _learn(known, tensor)
    kept = list(_forward(model, known))
    _rebuild(graph, kept, known)
    return known


def _learn(known: Folded, tensor: Any) -> None:
    known.types[tensor.name] = tensor_type(tensor.data_type, tensor.dims)
    stored_here = tensor.data_location != onnx.TensorProto.EXTERNAL
    if stored_here and elements(tensor) <= SMALL and numpy_dtype(tensor.data_type).kind in "iufb":
        known.values[tensor.name] = onnx.numpy_helper.to_array(tensor)


def _forward(model: Any, known: Folded) -> Iterator[Any]:
    """Yield the nodes that stay, in order."""
    graph, inference = model.graph, Inference(model)
    outputs = {value.name for value in graph.output}
    ahead = deque(graph.node)
    while ahead:
        node = ahead.popleft()
        if (tensor := _stored(node)) is not None and not outputs & set(node.output):
            graph.initializer.append(tensor)
            _learn(known, tensor)
            continue
        if is_onnx(node, "If") and (decided := known.values.get(node.input[0])) is not None:
            body = _body(node, taken=bool(decided.any()))
            for tensor in body.initializer:
                graph.initializer.append(tensor)
                _learn(known, tensor)
            ahead.extendleft(reversed(_opened(node, body)))
            continue
        types, why = inference.types(node, known.types, known.values)
        values = inference.value(node, known.types, types, known.values)
        known.types.update(types)
        known.values.update(values)
        if not values or outputs & set(node.output):
            _judge(node, why, known)
            yield node


def _judge(node: Any, why: str, known: Folded) -> None:
    if why:
        known.refused.append((node, why))
    elif not any(subgraphs(node)) and all(
        static_shape(known.types.get(name)) is not None for name in node.input if name
    ):
        lost = [name for name in node.output if name and static_shape(known.types.get(name)) is None]
        known.unsure.extend((node, name) for name in lost[:1])


def _stored(node: Any) -> Any:
    """Return the tensor of a Constant node, named as its output, or None."""
    if not is_onnx(node, "Constant") or not node.output or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    tensor = onnx.TensorProto()
    if attribute.name == "value":
        tensor.CopyFrom(attribute.t)
    elif attribute.name in {"value_int", "value_ints"}:
        value = onnx.helper.get_attribute_value(attribute)
        tensor = onnx.numpy_helper.from_array(np.asarray(value, np.int64))
    elif attribute.name in {"value_float", "value_floats"}:
        value = onnx.helper.get_attribute_value(attribute)
        tensor = onnx.numpy_helper.from_array(np.asarray(value, np.float32))
    else:
        return None
    tensor.name = node.output[0]
    return tensor


def _body(node: Any, *, taken: bool) -> Any:
    name = "then_branch" if taken else "else_branch"
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def _opened(node: Any, body: Any) -> list[Any]:
    """Return the nodes of the body that an `If` takes, made to give the outputs of the `If`."""
    nodes = list(body.node)
    made = {output for inner in nodes for output in inner.output}
    names: dict[str, str] = {}
    passed = []
    for outer, inner in zip(node.output, (value.name for value in body.output), strict=False):
        if not outer:
            continue
        if inner in made and inner not in names:
            names[inner] = outer
        else:  # a value from outside, or one that two outputs share
            passed.append((inner, outer))
    rename_reads(nodes, names)
    for inner_node in nodes:
        inner_node.output[:] = [names.get(output, output) for output in inner_node.output]
    return nodes + [
        onnx.helper.make_node("Identity", [names.get(inner, inner)], [outer], name=f"{label(node)}/{outer}")
        for inner, outer in passed
    ]


def _rebuild(graph: Any, kept: Iterable[Any], known: Folded) -> None:
    """Keep what the outputs need, store the constants that are still read, and write down every type."""
    needed = {value.name for value in graph.output}
    alive = []
    for node in reversed(list(kept)):
        if needed & set(node.output):
            alive.append(node)
            needed |= reads(node)
    del graph.node[:]
    graph.node.extend(reversed(alive))
    for index in reversed(range(len(graph.initializer))):
        if graph.initializer[index].name not in needed:
            del graph.initializer[index]
    for name in sorted((needed - defined(graph)) & known.values.keys()):
        graph.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(known.values[name]), name))
    _write_types(graph, known)


def _write_types(graph: Any, known: Folded) -> None:
    outputs = {value.name for value in graph.output}
    del graph.value_info[:]
    for node in graph.node:
        node.name = label(node)  # findings and compilers speak of nodes by name
        for name in node.output:
            if name in known.types and name not in outputs:
                graph.value_info.add(name=name).type.CopyFrom(known.types[name])
    for value in graph.output:
        if value.name in known.types:
            value.type.CopyFrom(known.types[value.name])
        elif value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
