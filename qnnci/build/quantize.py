"""Quantizing as a stage of route `ort`, once for a graph and precision: from the prepared graph to its QDQ form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from qnnci.build.cache import digests, key_of
from qnnci.build.calibrate import CALIBRATION
from qnnci.build.calls import PREPARED, QUANTIZED, Call
from qnnci.findings import Finding, plain
from qnnci.plan import Target
from qnnci.project import Precision
from qnnci.quantization import Io, Quantize
from qnnci.rules import finding

Json = dict[str, Any]

# Bits of activations and weights.
WIDTHS: dict[Precision, tuple[int, int]] = {"w8a8": (8, 8), "w8a16": (16, 8), "w4a16": (16, 4)}


def conversions(
    graph: str,
    precision: Precision,
    settings: Quantize,
    folder: Path,
    prepared: dict[str, str],
    calibration: dict[str, str],
    encodings: Path | None,
    layout: Mapping[str, Sequence[int]],
) -> list[Call]:
    """Plan it: nothing for a graph that is float or fixed point already, and keeps its ports.

    Raises:
        UsageError: the encodings cannot be read.

    """
    room, what = folder / precision, f"{graph}-{precision}"
    paths = {"prepared": str(folder / PREPARED), "out": str(room / QUANTIZED)}
    said: Json = {"layout": {name: list(axes) for name, axes in layout.items()}}
    keys: Json = {"model": prepared}
    if precision != "fp16" and encodings is not None:
        stage, said["io"], paths["encodings"] = "encode", settings.io, str(encodings)
        keys["encodings"] = digests(encodings)
    elif precision != "fp16" and calibration:
        activations, weights = WIDTHS[precision]
        said |= {"settings": settings.model_dump(mode="json"), "activations": activations, "weights": weights}
        stage, paths["samples"], keys["calibration"] = "quantize", str(folder / CALIBRATION), calibration
    elif layout or (precision == "fp16" and settings.io == "float16"):
        stage, said["io"] = "ports", settings.io if precision == "fp16" else "float32"
    else:
        return []
    outputs = (QUANTIZED, f"{QUANTIZED}.data")
    return [Call(what, stage, room, {**paths, **said}, key_of(**keys, **said), outputs, module="quantize")]


def refusals(target: Target, settings: Quantize, *, quantized: bool, calibrated: bool) -> list[Finding]:
    """What cannot be, before anything is quantized. `quantized` says that the graph holds QDQ pairs."""
    found = []
    calibrated = calibrated or settings.encodings is not None
    fixed = target.precision != "fp16"
    if quantized and not fixed:
        message = f"the graph holds quantized ops, the precision is {target.precision}"
        found.append(finding("quantized-source", message))
    if quantized and fixed and (calibrated or settings != Quantize()):
        message = "the graph is quantized already: `calibration` and `quantize` do nothing"
        hint = "give the float graph to have it quantized here, or leave these keys out"
        found.append(finding("quantized-source", message, hint=hint))
    if fixed and not quantized and not calibrated:
        found.append(finding("quantize-needed", f"{target.precision} without calibration inputs, of a float graph"))
    if fixed and not quantized and target.precision == "w4a16" and not settings.per_channel:
        found.append(finding("int4-weights", "w4a16 with `per_channel: false`"))
    if settings.io == "ufixed16" and not fixed:
        found.append(finding("port-type", f"`io: ufixed16` of {target.soc.name}, whose precision is fp16"))
    if not target.soc.fp16 and (settings.io == "float16" or (fixed and not quantized and settings.keep.fp16)):
        what = "float16 inputs and outputs" if settings.io == "float16" else "nodes that `keep` leaves in fp16"
        hint = "leave this chip out (`socs` of the graph), or give it a graph of its own without them"
        found.append(finding("fp16-unsupported", f"{what}: {target.soc.name} has no fp16", hint=hint))
    return found


def computes_float(target: Target, settings: Quantize, *, quantized_here: bool) -> bool:
    """Whether the compiler is to let float ops run: all of an fp16 graph, or those that `keep` names."""
    left = bool(settings.keep.fp16) or settings.encodings is not None
    return target.precision == "fp16" or (quantized_here and target.soc.fp16 and left)


def quantize_stage(
    *, prepared: str, samples: str, out: str, settings: Json, activations: int, weights: int, layout: Json
) -> Json:
    """In a worker: write the QDQ form, and say what of it stayed float."""
    from qnnci.arrays import Feeds
    from qnnci.model.quantize import quantize

    asked = Quantize.model_validate(settings)
    made = quantize(
        Path(prepared), Path(samples), Path(out), asked, activations=activations, weight_bits=weights, layout=layout
    )
    facts = {
        "activations": activations,
        "weights": weights,
        "per_channel": asked.per_channel,
        "calibrate": asked.calibrate,
        "samples": len(Feeds(Path(samples))),
        "float_nodes": len(made.float_nodes),
    }
    return {
        "facts": {"float_ops": made.float_nodes},
        "quantization": facts,
        "grids": made.grids if asked.io == "float32" else {},
        "findings": plain(made.findings),
    }


def encode_stage(*, prepared: str, out: str, encodings: str, io: str, layout: Json) -> Json:
    """In a worker: write the QDQ form that AIMET's encodings say; account for each of them."""
    from qnnci.encodings import read
    from qnnci.model.encoded import encode

    made = encode(Path(prepared), read(Path(encodings)), Path(out), cast("Io", io), layout)
    facts = {"encodings": made.matched, "unmatched": len(made.unmatched), "float_nodes": len(made.float_nodes)}
    told = {"facts": {"float_ops": made.float_nodes}, "quantization": facts, "grids": {}}
    return {**told, "findings": plain(made.findings)}


def ports_stage(*, prepared: str, out: str, io: str, layout: Json) -> Json:
    """In a worker: write the graph with other types or axes of its inputs and outputs."""
    from qnnci.model.quantize import change_ports

    change_ports(Path(prepared), Path(out), cast("Io", io), layout)
    return {"facts": {}, "findings": []}
