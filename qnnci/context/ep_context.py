"""The EPContext model around a context binary that another tool made, so that ONNX Runtime can load it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from qnnci.context.info import ContextInfo, TensorInfo
from qnnci.errors import UsageError
from qnnci.files import replacing

# What a tensor of the binary is to ONNX: fixed point is the integer that carries it.
_ELEMENTS = {
    "FLOAT_32": TensorProto.FLOAT,
    "FLOAT_16": TensorProto.FLOAT16,
    "INT_8": TensorProto.INT8,
    "INT_16": TensorProto.INT16,
    "INT_32": TensorProto.INT32,
    "INT_64": TensorProto.INT64,
    "UINT_8": TensorProto.UINT8,
    "UINT_16": TensorProto.UINT16,
    "UINT_32": TensorProto.UINT32,
    "UINT_64": TensorProto.UINT64,
    "BOOL_8": TensorProto.BOOL,
    "SFIXED_POINT_8": TensorProto.INT8,
    "SFIXED_POINT_16": TensorProto.INT16,
    "SFIXED_POINT_32": TensorProto.INT32,
    "UFIXED_POINT_8": TensorProto.UINT8,
    "UFIXED_POINT_16": TensorProto.UINT16,
    "UFIXED_POINT_32": TensorProto.UINT32,
}


def write_ep_context(info: ContextInfo, binary_name: str, path: Path) -> None:
    """Write a model of one EPContext node that points at `binary_name` beside it.

    Raises:
        UsageError: more than one graph, or a tensor type that ONNX has not.

    """
    if len(info.graphs) != 1:
        raise UsageError(f"{binary_name} holds {len(info.graphs)} graphs; an EPContext model of one is made here")
    graph = info.graphs[0]
    inputs, outputs = _ports(graph.inputs), _ports(graph.outputs)
    node = helper.make_node(
        "EPContext",
        [tensor.name for tensor in graph.inputs],
        [tensor.name for tensor in graph.outputs],
        name=graph.name,
        domain="com.microsoft",
        main_context=1,
        embed_mode=0,
        ep_cache_context=binary_name,
        ep_sdk_version=info.build_id,
        source="QNNExecutionProvider",
        partition_name=graph.name,  # by this the provider finds the graph inside the binary
    )
    made = helper.make_graph([node], graph.name, inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    with replacing(path) as part:
        onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=8), str(part))


def refuse_other_binary(context_model: Path, binary_name: str) -> None:
    """Make sure that running an EPContext model runs the binary `binary_name` beside it, and nothing else.

    Raises:
        UsageError: it is another model, holds a binary itself, or points at another one.

    """
    hint = "verify a binary with the _ctx.onnx that was made with it"
    try:
        nodes = onnx.load(str(context_model), load_external_data=False).graph.node
    except Exception as error:  # protobuf has errors of its own
        raise UsageError("not an EPContext model", where=str(context_model), hint=hint) from error
    names = set()
    for node in nodes:
        values = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type != "EPContext" or values.get("embed_mode", 1):
            raise UsageError(f"does not only point at {binary_name}", where=str(context_model), hint=hint)
        if values.get("main_context", 1):
            names.add(bytes(values.get("ep_cache_context", b"")).decode("utf-8", "replace"))
    if names != {binary_name}:
        told = ", ".join(map(repr, sorted(names))) or "nothing"
        raise UsageError(f"points at {told}, not at {binary_name}", where=str(context_model), hint=hint)


def _ports(tensors: Sequence[TensorInfo]) -> list[Any]:
    ports = []
    for tensor in tensors:
        if tensor.dtype not in _ELEMENTS:
            raise UsageError(f"{tensor.name} is {tensor.dtype}, which ONNX has not")
        ports.append(helper.make_tensor_value_info(tensor.name, _ELEMENTS[tensor.dtype], tensor.shape))
    return ports
