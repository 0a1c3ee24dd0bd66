"""What the converters do to an ONNX graph before they write it: shapes, outputs, axis order, dtypes, names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from sdk import says

# Axis orders that the legacy converters leave alone, and what they do to the rest, by rank.
_KEPT = {"NDHWC", "NHWC", "NFC", "NTF", "TNF", "NF", "NC", "F", "NONTRIVIAL"}
_TO_CHANNEL_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


class ConversionError(Exception):
    """What stands after `Encountered Error: `."""


def sanitised(name: str) -> str:
    """A name as a C++ identifier."""
    name = re.sub(r"\W", "_", name)
    return name if name[:1].isalpha() else f"_{name}"


def fix_dims(model: Any, dims: Mapping[str, str]) -> None:
    """Give inputs the shapes of `--input_dim NAME 1,3,8,8`; refuse what stays dynamic."""
    inputs = {value.name: value for value in model.graph.input}
    for name, text in dims.items():
        if name not in inputs:
            raise ConversionError(f"Input {name} not found in the model")
        shape = inputs[name].type.tensor_type.shape
        del shape.dim[:]
        for size in text.split(","):
            shape.dim.add().dim_value = int(size)
    dynamic = [
        value.name
        for value in model.graph.input
        if any(not dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)
    ]
    if dynamic:
        raise ConversionError(f"Missing command line inputs for dynamic inputs {dynamic}")


def simplified(model: Any) -> Any:
    """The model as onnx-simplifier leaves it, which the converters run too; as it was where that fails."""
    import onnxsim

    try:
        simple = onnxsim.simplify(model)[0]
    except Exception as error:  # noqa: BLE001 - it raises whatever its native part raises
        reason = str(error).splitlines()[0]
        says.python("WARNING", f"Onnx model simplification failed due to: {reason}")
        return model
    says.python("INFO", "Simplified model validation is successful")
    return simple


def constants_as_weights(model: Any) -> None:
    """Let constants be initializers, which become raw files."""
    for node in [node for node in model.graph.node if node.op_type == "Constant"]:
        if node.attribute[0].name == "value":
            model.graph.initializer.append(node.attribute[0].t)
            model.graph.initializer[-1].name = node.output[0]
            model.graph.node.remove(node)


def cut_at(model: Any, outputs: Sequence[str]) -> Any:
    """The model with these tensors as its outputs."""
    if not outputs or list(outputs) == [value.name for value in model.graph.output]:
        return model
    known = {output for node in model.graph.node for output in node.output}
    missing = [name for name in outputs if name not in known]
    if missing:
        raise ConversionError(f"Output node {missing[0]} not found in the model")
    inferred = onnx.shape_inference.infer_shapes(model)
    return onnx.utils.Extractor(inferred).extract_model([value.name for value in model.graph.input], list(outputs))


def orders(model: Any, layouts: Mapping[str, str], kept: set[str]) -> dict[str, tuple[int, ...]]:
    """How the legacy converters turn float inputs to channel-last: for each the axes of the graph in the new order.

    `layouts` are those of `--input_layout`, `kept` the inputs of `--preserve_io layout`.
    """
    found = {}
    for value in model.graph.input:
        tensor, layout = value.type.tensor_type, layouts.get(value.name, "").upper()
        order = _TO_CHANNEL_LAST.get(len(tensor.shape.dim))
        if order and layout not in _KEPT and value.name not in kept and tensor.elem_type == TensorProto.FLOAT:
            found[value.name] = order
    return found


def reorder(model: Any, axes: Mapping[str, Sequence[int]]) -> None:
    """Let the inputs have these axes: a Transpose behind each gives the graph what it was made for."""
    for value in model.graph.input:
        if value.name not in axes:
            continue
        order = axes[value.name]
        shape = value.type.tensor_type.shape
        sizes = [dim.dim_value for dim in shape.dim]
        for dim, axis in zip(shape.dim, order, strict=True):
            dim.dim_value = sizes[axis]
        back = [order.index(axis) for axis in range(len(order))]
        dequantize = next((node for node in model.graph.node if value.name in node.input), None)
        if dequantize is None or dequantize.op_type != "DequantizeLinear":
            _put_behind(model, value.name, helper.make_node("Transpose", [], [], perm=back))
            continue
        # The compiler takes fixed-point ops only between a DQ and a Q.
        scale, domain = list(dequantize.input[1:]), dequantize.domain
        _put_behind(model, value.name, helper.make_node("QuantizeLinear", ["", *scale], [], domain=domain))
        _put_behind(model, value.name, helper.make_node("Transpose", [], [], perm=back))
        _put_behind(model, value.name, helper.make_node("DequantizeLinear", ["", *scale], [], domain=domain))


def narrow_integers(model: Any) -> None:
    """INT64 inputs become INT_32: HTP knows no other."""
    for value in model.graph.input:
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            value.type.tensor_type.elem_type = TensorProto.INT32
            _put_behind(model, value.name, helper.make_node("Cast", [], [], to=TensorProto.INT64))


def _put_behind(model: Any, name: str, added: Any) -> None:
    """Insert a node between an input and all its users."""
    inner = f"{name}_as_{added.op_type}"
    for node in model.graph.node:
        node.input[:] = [inner if each == name else each for each in node.input]
    added.name = inner
    added.input[:] = [name, *added.input[1:]]
    added.output[:] = [inner]
    model.graph.node.insert(0, added)


def half(model: Any, *, keep_io: bool) -> Any:
    """The model in 16-bit floats, its inputs and outputs too unless kept."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(model, keep_io_types=keep_io, disable_shape_infer=False)


def name_ports(model: Any) -> None:
    """Give inputs and outputs the names that they have in C++."""
    ports = [value.name for value in (*model.graph.input, *model.graph.output)]
    names = {name: sanitised(name) for name in ports if name != sanitised(name)}
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in model.graph.node:
        node.input[:] = [names.get(each, each) for each in node.input]
        node.output[:] = [names.get(each, each) for each in node.output]


def tensors(model: Any) -> set[str]:
    """Every name that an encoding can be for."""
    made = {output for node in model.graph.node for output in node.output}
    return made | {value.name for value in model.graph.input} | {each.name for each in model.graph.initializer}


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of a graph's input or output."""
    dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return dtype


def shape_of(value: Any) -> tuple[int, ...]:
    """The static shape of a graph's input or output."""
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
