"""A graph's inputs as the project wants them: every dimension fixed, constants put in, int64 narrowed to int32."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.model.graph import (
    Dim,
    dims_of,
    dtype_name,
    numpy_dtype,
    real_inputs,
    shape_text,
    tensor_type,
    walk,
)
from qnnci.model.names import defined, fresh_name, make_names_unique, rename_reads
from qnnci.project import Input
from qnnci.rules import finding

_SYMBOL = re.compile(r"[A-Za-z_]\w*")  # `?` and `-1` stand for several different dimensions
_INT64, _INT32 = onnx.TensorProto.INT64, onnx.TensorProto.INT32


def fix_inputs(model: Any, inputs: Mapping[str, Input], where: str) -> tuple[dict[str, NDArray[Any]], list[Finding]]:
    """Fix inputs in place; give the constants that were put in, and what is left dynamic or contradicts the graph.

    A symbol that one input's shape decides (`batch`) holds for the other inputs too.

    Raises:
        UsageError: an unknown input name, or a constant that does not fit its input.

    """
    graph = model.graph
    values = {value.name: value for value in real_inputs(graph)}
    for name in inputs:
        _known(name, values, where)
    symbols = _symbols(values, inputs)
    findings: list[Finding] = []
    constants: dict[str, NDArray[Any]] = {}
    for name, value in values.items():
        given, dims = inputs.get(name, Input()), _dims(value)
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        if given.shape is not None and (problem := _contradiction(name, dims, given.shape)):
            findings.append(finding("bad-shape", problem))
            continue
        if dims is not None:
            dims = tuple(symbols.get(dim, dim) if isinstance(dim, str) else dim for dim in dims)
        dims = dims if given.shape is None else given.shape
        array = None if given.value is None else _constant(value, given.value, where)
        if array is not None and dims is not None:
            dims = _aligned(dims, array.shape)
        shape = [dim for dim in dims or () if isinstance(dim, int)]
        if dims is None or len(shape) < len(dims):
            found = _dynamic(name, dims)
            whole = "give its value as a nested list of its whole shape"
            findings.append(found if array is None else replace(found, hint=whole))
        elif array is not None:
            constants[name] = _broadcast(name, array, tuple(shape), where)
            graph.initializer.append(onnx.numpy_helper.from_array(constants[name], name))
            graph.input.remove(value)
        else:
            value.type.CopyFrom(tensor_type(value.type.tensor_type.elem_type, shape))
    return constants, findings


def _known(name: str, values: Iterable[str], where: str) -> None:
    values = list(values)
    if name in values:
        return
    near = difflib.get_close_matches(name, values, n=1)
    raise UsageError(
        f"the graph has no input {name!r}; it has {', '.join(values) or 'none'}",
        where=where,
        hint=f"did you mean {near[0]!r}?" if near else "correct the names under `inputs:`",
    )


def _dims(value: Any) -> tuple[Dim, ...] | None:
    """Return declared dimensions; a 0 is how some exporters write an unknown one."""
    dims = dims_of(value.type)
    return None if dims is None else tuple(dim or None for dim in dims)


def _symbols(values: Mapping[str, Any], inputs: Mapping[str, Input]) -> dict[str, int]:
    """Return the sizes of symbolic dimensions on which all given shapes agree."""
    sizes: dict[str, set[int]] = {}
    for name, given in inputs.items():
        for dim, size in zip(_dims(values[name]) or (), given.shape or (), strict=False):
            if isinstance(dim, str) and _SYMBOL.fullmatch(dim):
                sizes.setdefault(dim, set()).add(size)
    return {symbol: found.pop() for symbol, found in sizes.items() if len(found) == 1}


def _contradiction(name: str, dims: tuple[Dim, ...] | None, shape: tuple[int, ...]) -> str:
    if dims is None or (
        len(dims) == len(shape)
        and all(not isinstance(dim, int) or dim == size for dim, size in zip(dims, shape, strict=True))
    ):
        return ""
    return f"input {name} is {shape_text(dims)} in the graph, {list(shape)} was given"


def _dynamic(name: str, dims: tuple[Dim, ...] | None) -> Finding:
    if dims is None:
        return finding("dynamic-dim", f"the graph gives no shape for input {name}")
    loose = [f"{index} ({dim})" if dim else str(index) for index, dim in enumerate(dims) if not isinstance(dim, int)]
    which = f"dimension {loose[0]} is" if len(loose) == 1 else f"dimensions {', '.join(loose)} are"
    example = ", ".join("…" if not isinstance(dim, int) else str(dim) for dim in dims)
    flag = example.replace(" ", "")
    return finding(
        "dynamic-dim",
        f"input {name} {shape_text(dims)}: {which} not fixed",
        hint=f"give its shape under `inputs:` in qnn.yaml: `{name}: [{example}]`, or `--input {name}={flag}`",
    )


def _constant(value: Any, given: object, where: str) -> NDArray[Any]:
    """Return a project file's number or nested list as an array of the input's type."""
    name, elem = value.name, value.type.tensor_type.elem_type
    hint = f"give numbers that {dtype_name(elem)} can hold"
    try:
        array = np.asarray(given)
        dtype = numpy_dtype(elem)
    except (ValueError, KeyError) as error:
        raise UsageError(f"the value of input {name} is no array: {error}", where=where, hint=hint) from error
    if array.dtype.kind not in "iufb" or dtype.kind not in "iufb":
        raise UsageError(f"the value of input {name} does not fit {dtype_name(elem)}", where=where, hint=hint)
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(cast, array):
        raise UsageError(f"the value {given} of input {name} does not fit {dtype_name(elem)}", where=where, hint=hint)
    return cast


def _aligned(dims: tuple[Dim, ...], shape: tuple[int, ...]) -> tuple[Dim, ...]:
    """Let a constant's own shape decide dimensions that the graph leaves open, aligned at the last axis."""
    own = (None,) * (len(dims) - len(shape)) + shape
    return tuple(dim if isinstance(dim, int) or not size else size for dim, size in zip(dims, own, strict=False))


def _broadcast(name: str, array: NDArray[Any], shape: tuple[int, ...], where: str) -> NDArray[Any]:
    try:
        return np.ascontiguousarray(np.broadcast_to(array, shape)).reshape(shape)
    except ValueError as error:
        raise UsageError(
            f"the value of input {name} has shape {list(array.shape)}, the graph wants {list(shape)}",
            where=where,
            hint="give one number, or a nested list of the input's shape",
        ) from error


def int64_ports(graph: Any) -> list[Finding]:
    """Return one notice for each int64 input and output."""
    sides = (("input", real_inputs(graph)), ("output", graph.output))
    return [
        finding("int64-io", f"{side} {value.name} is int64 and becomes int32")
        for side, values in sides
        for value in values
        if _is_int64(value)
    ]


def narrow_ports(model: Any) -> None:
    """Make int64 inputs and outputs int32, names kept, with the casts inside."""
    graph = model.graph
    make_names_unique(graph)
    used = set().union(*(defined(inner) for inner in walk(graph)))
    for value in filter(_is_int64, real_inputs(graph)):
        wide = fresh_name(f"{value.name}/int64", used)
        rename_reads(graph.node, {value.name: wide})
        graph.node.insert(0, _cast(value.name, wide, _INT64))
        value.type.tensor_type.elem_type = _INT32
    for value in filter(_is_int64, graph.output):
        wide = fresh_name(f"{value.name}/int64", used)
        rename_reads(graph.node, {value.name: wide})
        for node in graph.node:
            node.output[:] = [wide if name == value.name else name for name in node.output]
        for tensor in graph.initializer:
            tensor.name = wide if tensor.name == value.name else tensor.name
        graph.node.append(_cast(wide, value.name, _INT32))
        value.type.tensor_type.elem_type = _INT32


def _is_int64(value: Any) -> bool:
    return bool(value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type == _INT64)


def _cast(source: str, target: str, elem: int) -> Any:
    return onnx.helper.make_node("Cast", [source], [target], name=f"cast/{target}", to=elem)
