"""The float inputs and outputs of a graph as another type: half precision, or 16-bit fixed point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from qnnci.model.rewire import before, behind, rename, reread

_FLOAT, _HALF, _UINT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.UINT16
_MOST = (1 << 16) - 1
_DOMAIN = "com.microsoft"  # whose Q and DQ take 16 bits in every opset


def float_ports(graph: Any) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of type float32."""
    weights = {each.name for each in graph.initializer}
    sides = ([each for each in graph.input if each.name not in weights], list(graph.output))
    inputs, outputs = ([each for each in side if each.type.tensor_type.elem_type == _FLOAT] for side in sides)
    return inputs, outputs


def to_half(model: Any) -> None:
    """Make float inputs and outputs float16, with the casts inside."""
    inputs, outputs = float_ports(model.graph)
    for port in inputs:
        inside = behind(model.graph, port.name)
        model.graph.node.insert(0, onnx.helper.make_node("Cast", [port.name], [inside], name=inside, to=_FLOAT))
        port.type.tensor_type.elem_type = _HALF
    for port in outputs:
        inside = before(model.graph, port.name)
        model.graph.node.append(onnx.helper.make_node("Cast", [inside], [port.name], name=inside, to=_HALF))
        port.type.tensor_type.elem_type = _HALF


def to_fixed(model: Any, ranges: Callable[[], Mapping[str, tuple[float, float]]]) -> None:
    """Make float inputs and outputs of a QDQ graph UINT16, which a QNN binary has as UFIXED_POINT_16.

    Scale and zero point are those with which the graph quantizes them, or of the same range where that has 8 bits.
    Of what it leaves float, `ranges` tells the lowest and the highest value, by name; it is asked only for these.
    """
    graph = model.graph
    held = {each.name: each for each in graph.initializer}
    inputs, outputs = float_ports(graph)
    for port in inputs:
        readers = [node for node in graph.node if port.name in node.input]
        quantizer = next((node for node in readers if node.op_type == "QuantizeLinear"), None)
        words = _words(graph, port.name, _grid(quantizer, held, ranges, port.name), quantizer, held)
        inside = behind(graph, port.name)
        for node in [node for node in readers if node.op_type == "QuantizeLinear" and list(node.input[1:]) == words]:
            reread(graph, node.output[0], port.name)
            graph.node.remove(node)
        if any(inside in node.input for node in graph.node):
            graph.node.insert(0, _node("DequantizeLinear", [port.name, *words], inside))
        port.type.tensor_type.elem_type = _UINT16
    for port in outputs:
        maker = next(node for node in graph.node if port.name in node.output)
        dequantizer = maker if maker.op_type == "DequantizeLinear" else None
        words = _words(graph, port.name, _grid(dequantizer, held, ranges, port.name), dequantizer, held)
        inside = before(graph, port.name)
        if dequantizer is not None and list(dequantizer.input[1:]) == words:
            fixed = dequantizer.input[0]
            if not any(inside in node.input for node in graph.node):
                graph.node.remove(dequantizer)
            reread(graph, fixed, port.name)
            rename(graph, fixed, port.name)
        else:
            graph.node.append(_node("QuantizeLinear", [inside, *words], port.name))
        port.type.tensor_type.elem_type = _UINT16
    if not any(each.domain == _DOMAIN for each in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid(_DOMAIN, 1))


def _grid(
    node: Any, held: Mapping[str, Any], ranges: Callable[[], Mapping[str, tuple[float, float]]], name: str
) -> tuple[float, int]:
    """Scale and zero point in 16 bits of what a Q or DQ node has, or of a range."""
    if node is None:
        low, high = ranges()[name]
        low, high = min(low, 0.0), max(high, 0.0)
    else:
        scale, zero = (onnx.numpy_helper.to_array(held[each]) for each in node.input[1:3])
        if held[node.input[2]].data_type == _UINT16:
            return float(scale), int(zero)
        bounds = np.iinfo(zero.dtype)
        low, high = (float(scale) * (bound - int(zero)) for bound in (bounds.min, bounds.max))
    step = max(high - low, 1e-4) / _MOST
    return step, round(-low / step)


def _words(graph: Any, name: str, grid: tuple[float, int], node: Any, held: Mapping[str, Any]) -> list[str]:
    """Names of scale and zero point: those of a node that has these, or new ones."""
    if node is not None and held[node.input[2]].data_type == _UINT16:
        return list(node.input[1:3])
    words = [f"{name}/scale16", f"{name}/zero16"]
    values = (np.float32(grid[0]), np.uint16(grid[1]))
    graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(value), word) for word, value in zip(words, values, strict=True)
    )
    return words


def _node(op: str, inputs: list[str], output: str) -> Any:
    return onnx.helper.make_node(op, inputs, [output], name=f"{output}/{op}", domain=_DOMAIN)
