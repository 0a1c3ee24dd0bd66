"""From a static float graph to QDQ form: onnxruntime.quantization with its QNN settings, ranges from real inputs.

Only in workers: it runs the graph on all samples. Measured on onnxruntime 1.32.0 with onnxruntime-qnn 2.7.0:

- Weights with a scale for each channel must be signed and symmetric; the compiler refuses Conv otherwise.
- 4-bit weights must have such scales too: Conv with a bias is refused without, Gemm with transB gives wrong numbers.
- Below opset 12 the quantizer leaves MaxPool two scales, which v68 refuses; below 13 DequantizeLinear has no axis.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx

from qnnci.arrays import Arrays, Feeds
from qnnci.errors import UsageError
from qnnci.files import SCRATCH, disk_errors
from qnnci.findings import Finding
from qnnci.model.axes import Axes, permute
from qnnci.model.graph import load
from qnnci.model.kept import float_tensors, halve
from qnnci.model.named import known, nodes_of, tensor_names
from qnnci.model.ports import float_ports, to_fixed, to_half
from qnnci.model.qdq import float_nodes, lifted, save
from qnnci.model.reference import Original
from qnnci.quantization import Io, Override, Quantize
from qnnci.rules import finding

_FUSING = 17  # the opset that has LayerNormalization, and axes as fusing expects them
_CHANNELS = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1}  # axis of a weight; Gemm's depends on transB
_AS_THEY_ARE: Axes = MappingProxyType({})
_WHOLE = (8, 16)  # bits of weights that may have one scale


@dataclass(frozen=True, slots=True)
class Quantized:
    """What came out: nodes that stayed float, and the size of the steps of each output that has 8 bits."""

    float_nodes: tuple[str, ...]
    grids: dict[str, float]
    findings: tuple[Finding, ...] = ()


def quantize(
    prepared: Path,
    samples: Path,
    out: Path,
    settings: Quantize,
    *,
    activations: int,
    weight_bits: int,
    layout: Axes = _AS_THEY_ARE,
) -> Quantized:
    """Write the QDQ form of `prepared` to `out`; widths in bits.

    Raises:
        UsageError: names that the graph has not.

    """
    with disk_errors(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=out.parent) as name:
            room, feeds = Path(name), Feeds(samples)
            base = _base(prepared, room)
            original = load(base)
            keep = nodes_of(settings.keep.fp16, original.graph, "keep: {fp16: …}")
            known(settings.tensors, tensor_names(original.graph), "tensors")
            _quantize(base, feeds, room / "qdq.onnx", settings, keep, activations, weight_bits)
            model = onnx.load(str(room / "qdq.onnx"))
            halve(model, original, base.parent, set(keep))
            made = {node.name: list(node.output) for node in original.graph.node}
            floats = tuple(float_nodes(model.graph, made, float_tensors(original)))
            grids = _grids(model.graph)
            unused = tuple(_unused(settings.tensors, model.graph))
            permute(model, layout)
            if settings.io == "ufixed16":
                to_fixed(model, lambda: _ranges(prepared, feeds))
            elif settings.io == "float16":
                to_half(model)
            save(model, out)
    return Quantized(floats, grids, unused)


def change_ports(prepared: Path, out: Path, io: Io, layout: Axes) -> None:
    """Write a graph, float or in QDQ form, with its axes in another order, and with float16 inputs and outputs."""
    model = onnx.load(str(prepared))
    permute(model, layout)
    if io == "float16":
        to_half(model)
    with disk_errors(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
        save(model, out)


def _base(prepared: Path, room: Path) -> Path:
    """The graph as the quantizer takes it best: Gelu and LayerNorm as one op, then a new opset."""
    from onnxruntime.quantization.execution_providers.qnn import qnn_preprocess_model

    model = onnx.load(str(prepared))
    del model.metadata_props[:]  # with any, the step below fails in onnxruntime 1.32.0
    plain, fused, base = (room / f"{name}.onnx" for name in ("plain", "fused", "base"))
    save(lifted(model, _FUSING), plain)
    changed = qnn_preprocess_model(plain, fused, fuse_layernorm=True, save_as_external_data=False)
    save(lifted(onnx.load(str(fused if changed else plain))), base)
    return base


class _Reader:
    """Samples as onnxruntime.quantization reads them; one is held at a time."""

    def __init__(self, feeds: Feeds) -> None:
        self._feeds, self._left = feeds, iter(range(len(feeds)))

    def __len__(self) -> int:
        return len(self._feeds)

    def set_range(self, start_index: int, end_index: int) -> None:
        self._left = iter(range(start_index, end_index))

    def get_next(self) -> Arrays | None:
        index = next(self._left, None)
        return None if index is None else self._feeds[index]


def _quantize(
    base: Path, feeds: Feeds, out: Path, settings: Quantize, keep: list[str], activations: int, weight_bits: int
) -> None:
    from onnxruntime.quantization import CalibrationMethod, QuantType
    from onnxruntime.quantization import quantize as run
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

    methods = {
        "minmax": CalibrationMethod.MinMax,
        "entropy": CalibrationMethod.Entropy,
        "percentile": CalibrationMethod.Percentile,
    }
    signed = {4: QuantType.QInt4, 8: QuantType.QInt8}
    unsigned = {8: QuantType.QUInt8, 16: QuantType.QUInt16}
    graph = load(base).graph
    overrides = _overrides(settings, graph, {"weight": signed, "activation": unsigned}, weight_bits, activations)
    try:
        config = get_qnn_qdq_config(
            base,
            _Reader(feeds),
            calibrate_method=methods[settings.calibrate],
            activation_type=unsigned[activations],
            weight_type=signed[weight_bits] if settings.per_channel else unsigned[8],
            per_channel=settings.per_channel,
            init_overrides=overrides or None,
            stride=1,  # a sample at a time: the histograms of all tensors of all samples would not fit
            nodes_to_exclude=keep or None,
        )
    except ValueError as error:
        hint = "give the tensors on both sides of an op the same width, or those of fewer ops another"
        raise UsageError(f"`tensors` asks for widths that do not go together: {error}", hint=hint) from error
    config.extra_options["CalibPercentile"] = settings.percentile
    run(str(base), str(out), config)


def _overrides(
    settings: Quantize, graph: Any, types: Mapping[str, Mapping[int, Any]], weight_bits: int, activations: int
) -> dict[str, list[dict[str, Any]]]:
    """What the quantizer is told of single tensors."""
    held = {each.name: each for each in graph.initializer}
    axes = _axes(graph) if settings.per_channel else {}
    made: dict[str, list[dict[str, Any]]] = {}
    for name, (op, axis) in axes.items():
        # One channel is no channels to the compiler, which then refuses 4 bits: see above.
        alone = held[name].dims[axis] == 1 and weight_bits not in _WHOLE
        if op == "MatMul" or alone:  # of which the QNN settings of onnxruntime 1.32.0 make no channels by themselves
            kind = types["weight"][_WHOLE[0] if alone else weight_bits]
            made[name] = [{"quant_type": kind, "axis": axis, "symmetric": True}]
    for name, given in settings.tensors.items():
        kind = "weight" if name in axes else "activation"
        bits = given.bits or (weight_bits if kind == "weight" else 8 if name in held else activations)
        if bits not in types[kind]:
            widths = ", ".join(map(str, types[kind]))
            raise UsageError(f"`tensors: {{{name}: …}}` asks for {bits} bits; it can have {widths}")
        told = _told(given, types[kind][bits], bits, signed=kind == "weight")
        if kind == "weight" and given.scale is None:
            told |= {"axis": axes[name][1], "symmetric": True}
        made[name] = [told]
    return made


def _told(given: Override, kind: Any, bits: int, *, signed: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"quant_type": kind} if given.bits or signed else {}
    if given.scale is not None and given.zero_point is not None:
        dtype = np.dtype(f"{'' if signed else 'u'}int{bits}")
        told["scale"] = np.array(given.scale, np.float32)
        told["zero_point"] = np.array(given.zero_point, dtype)
    if given.symmetric is not None:
        told["symmetric"] = given.symmetric
    if given.min is not None and given.max is not None:
        told |= {"rmin": np.float32(given.min), "rmax": np.float32(given.max)}
    return told


def _axes(graph: Any) -> dict[str, tuple[str, int]]:
    """Weights that can have a scale for each channel: by name the op and the axis."""
    held = {each.name: each for each in graph.initializer}
    found = {}
    for node in graph.node:
        name = node.input[1] if len(node.input) > 1 else ""
        if name not in held:
            continue
        if node.op_type == "Gemm":
            flipped = any(each.name == "transB" and each.i for each in node.attribute)
            found[name] = (node.op_type, 0 if flipped else 1)
        elif node.op_type in _CHANNELS and (node.op_type != "MatMul" or len(held[name].dims) == 2):  # noqa: PLR2004
            found[name] = (node.op_type, _CHANNELS[node.op_type])
    return found


def _grids(graph: Any) -> dict[str, float]:
    """The steps of outputs in 8 bits. 65535 steps come out of the emulator too inexact to be told apart."""
    held = {each.name: each for each in graph.initializer}
    outputs = {each.name for each in float_ports(graph)[1]}
    return {
        node.output[0]: float(onnx.numpy_helper.to_array(held[node.input[1]]))
        for node in graph.node
        if node.op_type == "DequantizeLinear"
        and node.output[0] in outputs
        and held[node.input[2]].data_type == onnx.TensorProto.UINT8
    }


def _unused(tensors: Mapping[str, Override], graph: Any) -> list[Finding]:
    """Overrides of what is not quantized, such as of an activation that became part of the op before it."""
    held = {each.name for each in graph.initializer}
    read = {name for node in graph.node if node.op_type == "QuantizeLinear" for name in node.input[:1]}
    made = {name for node in graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    lost = [name for name in tensors if f"{name}_quantized" not in held and name not in read and name not in made]
    message = "the tensor {!r} is not quantized, so what `tensors` says of it does nothing"
    return [finding("override-unused", message.format(name)) for name in lost]


def _ranges(prepared: Path, feeds: Feeds) -> dict[str, tuple[float, float]]:
    """Lowest and highest value of each input and output over all samples."""
    graph = Original(prepared, {})
    found: dict[str, tuple[float, float]] = {}
    for index in range(len(feeds)):
        feed = feeds[index]
        for name, array in {**feed, **graph.run(feed)}.items():
            low, high = found.get(name, (0.0, 0.0))
            found[name] = min(low, float(array.min(initial=0))), max(high, float(array.max(initial=0)))
    return found
