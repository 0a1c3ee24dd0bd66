"""From a static float graph and AIMET's encodings to QDQ form, with exactly their scales and zero points.

AIMET gives no encoding to what is moved and not computed, nor between a Conv and its Relu: these get their neighbour's.
Biases become int32 with the product of the scales of input and weight, which is what the HTP adds them in.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from qnnci.encodings import Encoding
from qnnci.errors import UsageError
from qnnci.files import disk_errors
from qnnci.findings import Finding
from qnnci.model.axes import Axes, permute
from qnnci.model.kept import float_tensors
from qnnci.model.named import tensor_names
from qnnci.model.ports import to_fixed, to_half
from qnnci.model.qdq import float_nodes, lifted, save
from qnnci.model.renamed import recall
from qnnci.model.rewire import in_order, reread
from qnnci.quantization import Io
from qnnci.rules import finding

# What only moves values: its output has the steps of its first input.
_MOVES = frozenset(
    {
        *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice", "Gather", "Split"),
        *("Expand", "Tile", "DepthToSpace", "SpaceToDepth", "MaxPool", "GlobalMaxPool"),
    }
)
_BIASED = frozenset({"Conv", "ConvTranspose", "Gemm"})
_CHANNELS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1}
_SHOWN = 10  # names in a message
_AS_THEY_ARE: Axes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Encoded:
    """What came out: how many encodings found their tensors, which did not, and the nodes that stayed float."""

    matched: int
    unmatched: tuple[str, ...]
    float_nodes: tuple[str, ...]
    findings: tuple[Finding, ...]


def encode(
    prepared: Path,
    encodings: Mapping[str, Encoding],
    out: Path,
    io: Io = "float32",
    layout: Axes = _AS_THEY_ARE,
) -> Encoded:
    """Write the QDQ form of `prepared` to `out`; nothing where no encoding is of a tensor of it.

    Raises:
        UsageError: an encoding that does not fit its tensor.

    """
    model = onnx.load(str(prepared))
    renamed = recall(model)
    model = lifted(model)
    original = {node.name: list(node.output) for node in model.graph.node}
    floats = float_tensors(model)
    given, lost = match(encodings, tensor_names(model.graph), renamed)
    found = _accounted(encodings, given, lost)
    if given:
        known = {name: each for name, each in given.items() if each.bits and name in floats}
        _spread(model.graph, known, floats)
        _insert(model.graph, known)
        permute(model, layout)
        if io == "ufixed16":
            to_fixed(model, _no_ranges)
        elif io == "float16":
            to_half(model)
        with disk_errors(out.parent):
            out.parent.mkdir(parents=True, exist_ok=True)
            save(model, out)
    left = float_nodes(model.graph, original, floats) if given else []
    if left:
        told = f"{', '.join(left[:_SHOWN])}{' and more' if len(left) > _SHOWN else ''}"
        found.append(finding("encodings-gap", f"{len(left)} nodes have no encoding and stay float: {told}"))
    return Encoded(len(encodings) - len(lost), tuple(lost), tuple(left), tuple(found))


def _no_ranges() -> Mapping[str, tuple[float, float]]:
    hint = "leave `io` at float32, or export encodings of all inputs and outputs"
    raise UsageError("`io: ufixed16` needs encodings of every input and output", hint=hint)


def match(
    encodings: Mapping[str, Encoding], names: Sequence[str], renamed: Mapping[str, str]
) -> tuple[dict[str, Encoding], dict[str, list[str]]]:
    """By the tensor that each is of; and by name those that are of none, with the nearest names."""
    there, given, lost = set(names), {}, {}
    for name, each in encodings.items():
        target = name if name in there else renamed.get(name)
        if target is not None and target in there:
            given[target] = replace(each, name=target)
        else:
            lost[name] = difflib.get_close_matches(name, names, n=2, cutoff=0.5)
    return given, lost


def _accounted(
    encodings: Mapping[str, Encoding], given: Mapping[str, Encoding], lost: Mapping[str, Sequence[str]]
) -> list[Finding]:
    if not lost:
        return []
    told = [f"{name} (near: {', '.join(near)})" if near else name for name, near in lost.items()]
    shown = f"{', '.join(told[:_SHOWN])}{f' and {len(told) - _SHOWN} more' if len(told) > _SHOWN else ''}"
    if not given:
        return [finding("encodings-none", f"none of {len(encodings)} encodings is of a tensor of the graph: {shown}")]
    return [finding("encodings-lost", f"{len(lost)} of {len(encodings)} encodings are of no tensor: {shown}")]


def _spread(graph: Any, known: dict[str, Encoding], floats: set[str]) -> None:
    """Give what has no encoding, and only moves or clips values, that of its neighbour."""
    weights = {each.name for each in graph.initializer}
    readers = Counter(name for node in graph.node for name in node.input)
    outputs = {each.name for each in graph.output}
    for node in graph.node:
        if node.op_type in _MOVES and node.input[0] in known:
            for name in node.output:
                if name in floats:
                    known.setdefault(name, replace(known[node.input[0]], name=name))
    held = {each.name: each for each in graph.initializer}
    for node in reversed(graph.node):
        source = node.input[0] if node.input else ""
        encoding = known.get(node.output[0])
        free = source not in known and source not in weights and source not in outputs and readers[source] == 1
        if encoding and free and source in floats and (node.op_type in _MOVES or _clips(node, encoding, held)):
            known[source] = replace(encoding, name=source)


def _clips(node: Any, encoding: Encoding, held: Mapping[str, Any]) -> bool:
    """Whether the op changes nothing of values that are in the range of its output's encoding."""
    low, high = ends(encoding)
    if node.op_type == "Relu":
        return low >= 0
    if node.op_type != "Clip" or any(name and name not in held for name in node.input[1:]):
        return False
    bounds = [float(onnx.numpy_helper.to_array(held[name])) if name else None for name in node.input[1:3]]
    least, most = (*bounds, None, None)[:2]
    step = encoding.scales[0] / 2
    return (least is None or low >= least - step) and (most is None or high <= most + step)


def ends(encoding: Encoding) -> tuple[float, float]:
    """The lowest and the highest real number of a per-tensor encoding."""
    low, high = _range(encoding)
    step, zero = encoding.scales[0], encoding.zero_points[0]
    return (low - zero) * step, (high - zero) * step


def _range(encoding: Encoding) -> tuple[int, int]:
    half = 1 << encoding.bits - 1
    return (-half, half - 1) if encoding.signed else (0, 2 * half - 1)


def _insert(graph: Any, known: Mapping[str, Encoding]) -> None:
    held = {each.name: each for each in graph.initializer}
    _biases(graph, known, held)
    inputs = [each.name for each in graph.input if each.name not in held]
    outputs = {each.name for each in graph.output}
    nodes: list[Any] = []
    for name in inputs:
        if name in known:
            reread(graph, name, f"{name}_dequantized")
            nodes += _pair(graph, known[name], name, f"{name}_dequantized")
    for name, each in held.items():
        if name in known and any(name in node.input for node in graph.node):
            nodes.append(_constant(graph, known[name], each))
    for node in list(graph.node):
        nodes.append(node)
        for index, name in enumerate(node.output):
            if name not in known:
                continue
            if name in outputs:
                node.output[index] = f"{name}_raw"
                nodes += _pair(graph, known[name], f"{name}_raw", name)
            else:
                reread(graph, name, f"{name}_dequantized")
                nodes += _pair(graph, known[name], name, f"{name}_dequantized")
    in_order(graph, nodes)
    read = {name for node in graph.node for name in node.input}
    ordered = onnx.GraphProto()
    ordered.initializer.extend(each for each in graph.initializer if each.name in read)
    del graph.initializer[:]
    graph.initializer.extend(ordered.initializer)


def _pair(graph: Any, encoding: Encoding, source: str, target: str) -> list[Any]:
    if encoding.per_channel:
        raise UsageError(f"the encoding of {encoding.name!r} has a scale for each channel, and is no weight")
    words = _words(graph, encoding)
    name, fixed = encoding.name, f"{encoding.name}_quantized"
    return [
        onnx.helper.make_node("QuantizeLinear", [source, *words], [fixed], name=f"{name}/QuantizeLinear"),
        onnx.helper.make_node("DequantizeLinear", [fixed, *words], [target], name=f"{name}/DequantizeLinear"),
    ]


def _constant(graph: Any, encoding: Encoding, weight: Any) -> Any:
    """A weight as integers, and the node that makes it real again."""
    array, axis = onnx.numpy_helper.to_array(weight), _axis(graph, encoding, weight)
    shape = [-1 if each == axis else 1 for each in range(array.ndim)] if encoding.per_channel else []
    scale, zero = (np.asarray(each).reshape(shape or ()) for each in _values(encoding))
    fixed = np.clip(np.rint(array.astype(np.float64) / scale) + zero, *_range(encoding))
    _hold(graph, f"{encoding.name}_quantized", fixed, encoding)
    names = [f"{encoding.name}_quantized", *_words(graph, encoding)]
    node = onnx.helper.make_node(
        "DequantizeLinear", names, [f"{encoding.name}_dequantized"], name=f"{encoding.name}/DequantizeLinear"
    )
    if encoding.per_channel:
        node.attribute.append(onnx.helper.make_attribute("axis", axis))
    reread(graph, encoding.name, f"{encoding.name}_dequantized")
    return node


def _axis(graph: Any, encoding: Encoding, weight: Any) -> int:
    """The channels' axis: what the file says, else that of the op which reads the weight."""
    if not encoding.per_channel:
        return 0
    axis = encoding.axis
    if axis is None:
        node = next(node for node in graph.node if encoding.name in node.input)
        flipped = node.op_type == "Gemm" and any(each.name == "transB" and each.i for each in node.attribute)
        axis = (0 if flipped else 1) if node.op_type == "Gemm" else _CHANNELS.get(node.op_type, 0)
    axis %= max(len(weight.dims), 1)
    if len(weight.dims) <= axis or weight.dims[axis] != len(encoding.scales):
        shape = list(weight.dims)
        message = f"the encoding of {encoding.name!r} has {len(encoding.scales)} scales, axis {axis} of {shape} has not"
        raise UsageError(message, hint="are the encodings those of this very model?")
    return axis


def _biases(graph: Any, known: Mapping[str, Encoding], held: Mapping[str, Any]) -> None:
    """Biases without an encoding of their own as int32 in the steps that their op adds in."""
    for node in list(graph.node):
        bias = node.input[2] if node.op_type in _BIASED and len(node.input) > 2 else ""  # noqa: PLR2004 - the third
        source, weight = (known.get(name) for name in node.input[:2]) if bias else (None, None)
        if bias not in held or source is None or weight is None or (bias in known and known[bias].bits != 32):  # noqa: PLR2004
            continue
        scales = np.asarray(weight.scales) * source.scales[0]
        values = onnx.numpy_helper.to_array(held[bias])
        if scales.size not in {1, values.size}:
            continue
        name = f"{node.name or node.output[0]}/{bias}"
        fixed = np.clip(np.rint(values.astype(np.float64).ravel() / scales), -(1 << 31), (1 << 31) - 1)
        own = Encoding(name, 32, True, tuple(scales.tolist()), (0,) * scales.size)  # noqa: FBT003 - int32
        _hold(graph, f"{name}_quantized", fixed.reshape(values.shape), own)
        made = onnx.helper.make_node(
            "DequantizeLinear", [f"{name}_quantized", *_words(graph, own)], [f"{name}_dequantized"], name=name
        )
        if scales.size > 1:
            made.attribute.append(onnx.helper.make_attribute("axis", 0))
        graph.node.insert(0, made)
        node.input[2] = f"{name}_dequantized"


def _values(encoding: Encoding) -> tuple[NDArray[Any], NDArray[Any]]:
    scales, zeros = np.asarray(encoding.scales, np.float32), np.asarray(encoding.zero_points)
    return (scales, zeros) if encoding.per_channel else (scales[0], zeros[0])


def _words(graph: Any, encoding: Encoding) -> list[str]:
    """Names of scale and zero point, made where they are not there yet."""
    words = [f"{encoding.name}_scale", f"{encoding.name}_zero_point"]
    if not any(each.name == words[0] for each in graph.initializer):
        scale, zero = _values(encoding)
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(scale), words[0]))
        _hold(graph, words[1], zero, encoding)
    return words


def _hold(graph: Any, name: str, values: Any, encoding: Encoding) -> None:
    kind = getattr(onnx.TensorProto, f"{'' if encoding.signed else 'U'}INT{encoding.bits}")
    array = np.asarray(values).astype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    graph.initializer.append(onnx.numpy_helper.from_array(array, name))
