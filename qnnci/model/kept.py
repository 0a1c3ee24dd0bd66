"""Nodes of a QDQ graph that stay float: in half precision, with casts around them.

A float node between a DequantizeLinear and a QuantizeLinear is computed in fixed point all the same: ONNX Runtime and
its QNN provider take the three for one fixed-point op, and quantize a Conv's weights on their own (measured on 1.32.0).
Only casts keep them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

_FLOAT, _HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
_STAYS = {"Resize": (1, 2), "Upsample": (1,)}  # places of inputs that are float32 whatever the op's type is


def halve(model: Any, original: Any, folder: Path, names: set[str]) -> None:
    """Let the nodes with these names compute in float16, in place; `original` is the float graph, of `folder`.

    Constants are those of the float graph: what is not quantized does not read quantized ones.
    """
    if not names:
        return
    onnx.load_external_data_for_model(original, str(folder))
    graph, floats = model.graph, float_tensors(original)
    held = {each.name: each for each in original.graph.initializer}
    before = {node.name: node for node in original.graph.node if node.name in names}
    inside = {name for node in before.values() for name in node.output if name in floats}
    nodes: list[Any] = []
    made: set[str] = set()
    for node in graph.node:
        if node.name not in before or node.op_type in {"QuantizeLinear", "DequantizeLinear"}:
            nodes.append(node)
            continue
        stays = _STAYS.get(node.op_type, ())
        for place, name in enumerate(before[node.name].input):
            if name in held:
                node.input[place] = _constant(graph, held[name], made, half=place not in stays)
            elif name in floats and place not in stays:
                source, half = node.input[place], f"{name}/half"
                if name not in inside and half not in made:
                    made.add(half)
                    nodes.append(_cast(source, half, _HALF))
                node.input[place] = half
        nodes.append(node)
        for place, name in enumerate(before[node.name].output):
            if name in floats:
                outside, node.output[place] = node.output[place], f"{name}/half"
                nodes.append(_cast(f"{name}/half", outside, _FLOAT))
    del graph.node[:]
    graph.node.extend(_needed(nodes, {each.name for each in graph.output}))


def float_tensors(model: Any) -> set[str]:
    """Names of all tensors of type float32."""
    known = onnx.shape_inference.infer_shapes(model).graph
    ports = (*known.value_info, *known.input, *known.output)
    return {each.name for each in ports if each.type.tensor_type.elem_type == _FLOAT} | {
        each.name for each in known.initializer if each.data_type == _FLOAT
    }


def _constant(graph: Any, tensor: Any, made: set[str], *, half: bool) -> str:
    if tensor.data_type != _FLOAT or not half:
        name = tensor.name
        if name not in {each.name for each in graph.initializer}:
            graph.initializer.append(tensor)
        return str(name)
    name = f"{tensor.name}/half"
    if name not in made:
        made.add(name)
        with np.errstate(over="ignore"):  # `check` warns of constants beyond fp16
            array = onnx.numpy_helper.to_array(tensor).astype(np.float16)
        graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return name


def _cast(source: str, target: str, kind: int) -> Any:
    return onnx.helper.make_node("Cast", [source], [target], name=f"cast/{target}", to=kind)


def _needed(nodes: list[Any], outputs: set[str]) -> list[Any]:
    """Without casts back to float32 that only float16 nodes would have read."""
    read: Mapping[str, None] = dict.fromkeys(name for node in nodes for name in node.input)
    return [node for node in nodes if node.op_type != "Cast" or node.output[0] in read or node.output[0] in outputs]
