"""Each stage as a plain value: what is called with what, what decides its result, which files it leaves. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.build.cache import key_of
from qnnci.plan import Target
from qnnci.project import Compile, Graph, Verify

PREPARED = "prepared.onnx"
REFERENCE = "reference.npz"


@dataclass(frozen=True, slots=True)
class Call:
    """One stage of `what` (a graph's name or a target's id): a function of `qnnci.build.work` and its arguments."""

    what: str
    stage: str
    folder: Path
    arguments: dict[str, Any]
    key: str
    outputs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


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
    )


def check(name: str, folder: Path, prepared: dict[str, str]) -> Call:
    arguments = {"model": str(folder / PREPARED), "inputs": {}}
    return Call(name, "check", folder, arguments, key_of(model=prepared))


def reference(
    name: str, graph: Graph, verify: Verify, folder: Path, source: Path, *, given: Path | None, keys: dict[str, Any]
) -> Call:
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
            "samples": verify.samples,
            "seed": verify.seed,
        },
        key_of(**keys, inputs=inputs, given=_stamps(given) if given else [], samples=verify.samples, seed=verify.seed),
        (REFERENCE,),
    )


def compile_target(
    target: Target, options: Compile, folder: Path, prepared: dict[str, str], route: str, nodes: Sequence[str]
) -> Call:
    arguments = {
        "soc_id": target.soc.id,
        "vtcm_mb": min(options.vtcm_mb or target.soc.vtcm_mb, target.soc.vtcm_mb),
        "optimization": options.optimization,
        "fp16": target.precision == "fp16",
    }
    binary, context_model = target.binary, target.context_model
    paths = {
        "model": str(folder.parent / PREPARED),
        "binary": str(folder / binary),
        "context_model": str(folder / context_model),
    }
    key = key_of(model=prepared, names=[binary, context_model], route=route, **arguments)
    return Call(target.id, "compile", folder, {**paths, **arguments}, key, (binary, context_model), tuple(nodes))


def inspect(target: Target, folder: Path, compiled: dict[str, str]) -> Call:
    path = folder / target.binary
    return Call(target.id, "inspect", folder, {"binary": str(path)}, key_of(binary=compiled[target.binary]))


def verify(
    what: str, folder: Path, context_model: Path, reference: Path, *, soc_id: int, seconds: float, keys: dict[str, Any]
) -> Call:
    arguments = {"soc_id": soc_id, "seconds": seconds}
    paths = {"context_model": str(context_model), "reference": str(reference)}
    return Call(what, "verify", folder, {**paths, **arguments}, key_of(**keys, **arguments))


def _stamps(path: Path) -> list[tuple[str, int, int]]:
    """What a file or folder of given inputs holds, without reading it; empty where it is missing."""
    every = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in every if each.is_file()]
