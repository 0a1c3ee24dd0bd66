"""The inputs and outputs of a graph in another order of axes, under the same names: the transposes go inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from qnnci.errors import UsageError
from qnnci.model.named import known
from qnnci.model.rewire import before, behind, in_order

Axes = Mapping[str, Sequence[int]]


def permute(model: Any, axes: Axes) -> None:
    """Let each port that `axes` names have its axes in that order: the new axis i is the old axis `axes[i]`.

    Of a QDQ graph, the transpose stands between two pairs of the same steps: it is done in fixed point.

    Raises:
        UsageError: a name that is no input or output, or axes that are not those of its shape.

    """
    graph = model.graph
    weights = {each.name for each in graph.initializer}
    inputs = {each.name: each for each in graph.input if each.name not in weights}
    outputs = {each.name: each for each in graph.output}
    known(axes, [*inputs, *outputs], "layout")
    for name, order in axes.items():
        port = inputs.get(name) or outputs[name]
        dims = port.type.tensor_type.shape.dim
        if len(dims) != len(order):
            message = f"`layout` gives {name!r} {len(order)} axes, it has {len(dims)}"
            raise UsageError(message, hint="name every axis, such as [0, 2, 1], or a layout of as many letters")
        shape = [dims[axis].dim_value for axis in order]
        if name in inputs:
            _turn_input(graph, name, [int(axis) for axis in np.argsort(order)])
        else:
            _turn_output(graph, name, list(order))
        for dim, size in zip(dims, shape, strict=True):
            dim.dim_value = size


def _turn_input(graph: Any, name: str, order: list[int]) -> None:
    words = _steps(graph, "QuantizeLinear", lambda node: name in node.input[:1])
    inside = behind(graph, name)
    source = f"{name}/outside" if words else name
    pair = _pair(f"{name}/outside", name, source, words) if words else []
    turn = onnx.helper.make_node("Transpose", [source], [inside], name=f"{name}/turned", perm=order)
    in_order(graph, [*pair, turn, *graph.node])


def _turn_output(graph: Any, name: str, order: list[int]) -> None:
    words = _steps(graph, "DequantizeLinear", lambda node: name in node.output)
    inside = before(graph, name)
    target = f"{name}/turned" if words else name
    graph.node.append(onnx.helper.make_node("Transpose", [inside], [target], name=f"{name}/turned", perm=order))
    if words:
        graph.node.extend(_pair(f"{name}/outside", target, name, words))


def _steps(graph: Any, op: str, of: Any) -> list[str]:
    """Names of scale and zero point of the node of a port; none where it is float."""
    node = next((node for node in graph.node if node.op_type == op and of(node)), None)
    return list(node.input[1:3]) if node is not None else []


def _pair(name: str, source: str, target: str, words: Sequence[str]) -> list[Any]:
    fixed = f"{name}_quantized"
    return [
        onnx.helper.make_node("QuantizeLinear", [source, *words], [fixed], name=f"{name}/QuantizeLinear"),
        onnx.helper.make_node("DequantizeLinear", [fixed, *words], [target], name=f"{name}/DequantizeLinear"),
    ]
