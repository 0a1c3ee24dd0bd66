"""Each stage as a plain value: what is called with what, what decides its result, which files it leaves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qnnci.build.cache import digests, key_of
from qnnci.context.info import ContextInfo
from qnnci.plan import Target
from qnnci.project import Compile, Graph, Verify

if TYPE_CHECKING:  # it brings numpy, which the jobs that only judge do without
    from qnnci.build.adapt import Order

PREPARED = "prepared.onnx"
QUANTIZED = "quantized.onnx"
REFERENCE = "reference.npz"


@dataclass(frozen=True, slots=True)
class Call:
    """One stage of `what` (a graph's name or a target's id): a function of a module of `qnnci.build` and its arguments.

    `tool` is set where the stage is one call of a program of the SDK, `quantized` where it is to quantize. `beside` is
    the folder of what it may read in addition to what is in its key.
    """

    what: str
    stage: str
    folder: Path
    arguments: dict[str, Any]
    key: str
    outputs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    tool: str = ""
    quantized: bool = False
    beside: Path = Path()
    module: str = "work"


def inputs_of(graph: Graph) -> dict[str, Any]:
    return {name: each.model_dump(mode="json", exclude_none=True) for name, each in graph.inputs.items()}


def prepare(name: str, graph: Graph, folder: Path, source: Path, source_sha256: str) -> Call:
    inputs = inputs_of(graph)
    shapes = {key: {"shape": each.get("shape"), "value": each.get("value")} for key, each in inputs.items()}
    return Call(
        name,
        "prepare",
        folder,
        {"source": str(source), "folder": str(folder), "inputs": inputs, "simplify": graph.simplify},
        key_of(source=source_sha256, inputs=shapes, simplify=graph.simplify),
        (PREPARED, f"{PREPARED}.data"),
        beside=source.parent,
    )


def check(name: str, folder: Path, prepared: dict[str, str]) -> Call:
    arguments = {"model": str(folder / PREPARED), "inputs": {}}
    return Call(name, "check", folder, arguments, key_of(model=prepared))


def reference(
    name: str,
    graph: Graph,
    verify: Verify,
    folder: Path,
    source: Path,
    *,
    given: Path | None,
    keys: dict[str, Any],
    original: Path | None = None,
    calibration: Path | None = None,
) -> Call:
    """What the source gives on the CPU: of the inputs `given`, else of an `original` model's, else of `calibration`."""
    inputs = inputs_of(graph)
    return Call(
        name,
        "reference",
        folder,
        {
            "source": str(source),
            "model": str(folder / PREPARED),
            "out": str(folder / REFERENCE),
            "inputs": inputs,
            "given": str(given) if given else "",
            "original": str(original) if original else "",
            "calibration": str(calibration) if calibration else "",
            "samples": verify.samples,
            "seed": verify.seed,
        },
        key_of(
            **keys,
            inputs=inputs,
            given=digests(given) if given else [],
            original=digests(original) if original else [],
            samples=verify.samples,
            seed=verify.seed,
        ),
        (REFERENCE,),
    )


def compile_target(
    target: Target,
    options: Compile,
    folder: Path,
    model: Path,
    files: dict[str, str],
    nodes: Sequence[str],
    *,
    fp16: bool,
) -> Call:
    """Compile `model`, whose `files` these are; `fp16` lets float ops run in it."""
    arguments = {
        "soc_id": target.soc.id,
        "vtcm_mb": options.vtcm_for(target.soc),
        "optimization": options.optimization,
        "fp16": fp16,
    }
    binary, context_model = target.binary, target.context_model
    paths = {
        "model": str(model),
        "binary": str(folder / binary),
        "context_model": str(folder / context_model),
    }
    key = key_of(model=files, names=[binary, context_model], route="ort", **arguments)
    return Call(target.id, "compile", folder, {**paths, **arguments}, key, (binary, context_model), tuple(nodes))


def inspect(target: Target, folder: Path, compiled: dict[str, str]) -> Call:
    """Read the binary; where its route made no EPContext model for it, make one."""
    wrapped = target.context_model in compiled
    context_model = folder / target.context_model
    arguments = {"binary": str(folder / target.binary), "context_model": "" if wrapped else str(context_model)}
    key = key_of(binary=compiled[target.binary], wrapped=wrapped)
    return Call(target.id, "inspect", folder, arguments, key, () if wrapped else (target.context_model,))


def verify(
    what: str,
    folder: Path,
    context_model: Path,
    reference: Path,
    *,
    info: ContextInfo,
    soc_id: int,
    seconds: float,
    order: Order,
    keys: dict[str, Any],
    grids: dict[str, Any] | None = None,
    axes: dict[str, Any] | None = None,
) -> Call:
    """Run a binary. `order` is what its route does to axes; names, axes and fixed point are led back by `info`.

    `grids` are the steps of outputs that an 8-bit op is to make, `axes` the order of those that are turned, by name.
    """
    arguments = {"info": info.to_json(), "soc_id": soc_id, "seconds": seconds, "order": order}
    arguments |= {"grids": grids or {}, "axes": axes or {}}
    paths = {"context_model": str(context_model), "reference": str(reference)}
    return Call(what, "verify", folder, {**paths, **arguments}, key_of(**keys, **arguments))
