"""Several graphs in one context, whose weights they share: planned, compiled, and held against their own binaries."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qnnci import gates
from qnnci.build.cache import key_of
from qnnci.build.calls import Call
from qnnci.build.stage import Stages
from qnnci.build.state import BuildState, SharedState
from qnnci.context.info import ContextInfo
from qnnci.findings import Finding
from qnnci.plan import Target
from qnnci.rules import finding
from qnnci.toolchain.pool import Worker

Json = dict[str, Any]
_MB = 1 << 20


def share(shared: SharedState, folder: Path, compiled: Sequence[Call]) -> Call:
    """Compile once more what was compiled by `compiled`, one stage for each graph, into one context."""
    options = {key: compiled[0].arguments[key] for key in ("soc_id", "vtcm_mb", "optimization")}
    models = tuple(shared.context_model(target) for target in shared.targets)
    graphs = [
        {
            "model": call.arguments["model"],
            "context_model": str(folder / model),
            "fp16": call.arguments["fp16"],
        }
        for call, model in zip(compiled, models, strict=True)
    ]
    arguments = {"graphs": graphs, "binary": str(folder / shared.binary), **options}
    key = key_of(compiled=[call.key for call in compiled], names=[shared.binary, *models])
    return Call(shared.id, "share", folder, arguments, key, (shared.binary, *models), module="shared")


def share_stage(*, graphs: list[Json], binary: str, soc_id: int, vtcm_mb: int, optimization: int) -> Json:
    """In a worker, which is not used again where this fails: what the one binary says, and its graphs in order."""
    from qnnci.context.read import read_context
    from qnnci.toolchain.ort import Member, share_context

    members = [Member(Path(each["model"]), Path(each["context_model"]), each["fp16"]) for each in graphs]
    options = {"soc_id": soc_id, "vtcm_mb": vtcm_mb, "optimization": optimization}
    names = share_context(members, Path(binary), **options)
    return {"info": read_context(Path(binary)).to_json(), "names": names} if names else {}


def judge(names: Sequence[str], info: ContextInfo, size: int, own: Sequence[ContextInfo], sizes: int) -> list[Finding]:
    """Whether the graphs `names` are in a context of `size` bytes as in their `own`, and what that spares. Pure."""
    return list(_judge(names, info, size, own, sizes))


def _judge(
    names: Sequence[str], info: ContextInfo, size: int, own: Sequence[ContextInfo], sizes: int
) -> Iterator[Finding]:
    there = {graph.name: graph for graph in info.graphs}
    if len(info.graphs) != len(names) or len(there) != len(names):
        message = f"the context holds {len(info.graphs)} graphs, {len(there)} by name; {len(names)} were asked for"
        yield finding("context-graphs", message)
        return
    for name, alone in zip(names, own, strict=True):
        graph, before = there.get(name), alone.graphs[0]
        if graph is None or (graph.inputs, graph.outputs) != (before.inputs, before.outputs):
            yield finding("context-graphs", f"{name} has other inputs or outputs in the context than alone")
    if size >= sizes:
        message = f"{size / _MB:.1f} MB in one context, {sizes / _MB:.1f} in {len(names)} of their own"
        yield finding("context-larger", message)
    yield finding("context-not-run", "the emulator does not load contexts with shared weights")


class Contexts:
    """All of them in a build. Methods are called from the threads of a build, each with its worker."""

    def __init__(self, state: BuildState, stages: Stages) -> None:
        self._state, self._stages, self._lock = state, stages, threading.Lock()
        self._calls: dict[Target, Call] = {}

    def compiled(self, target: Target, call: Call) -> SharedState | None:
        """Note that a target has a binary of its own; returns the context of which it was the last."""
        shared = self._state.shared_by(target)
        if shared is None:
            return None
        with self._lock:
            self._calls[target] = call
            return shared if all(each in self._calls for each in shared.targets) else None

    def run(self, shared: SharedState, worker: Worker) -> None:
        """Compile a context and judge it."""
        folder, project = self._state.output / shared.name / shared.soc.name, self._state.project
        done = False
        try:
            call = share(shared, folder, [self._calls[target] for target in shared.targets])
            record = self._stages.run(call, worker)
            done = shared.binary in record.files
        finally:
            if not done:
                worker.stop()
        found = list(record.findings)
        if done and record.data.get("info"):
            shared.made, shared.info = record, ContextInfo.from_json(record.data["info"])
            size = (folder / shared.binary).stat().st_size
            own = [self._state.targets[target] for target in shared.targets]
            shared.separate_bytes = sum(
                (self._state.folder(target) / target.binary).stat().st_size for target in shared.targets
            )
            alone = [each.info for each in own if each.info]
            found += gates.judge_binary(shared.info, size, shared.targets[0], project.gates, project.compile)
            found += judge(record.data["names"], shared.info, size, alone, shared.separate_bytes)
        line = self._state.file.line("contexts", shared.name)
        place = {"file": str(self._state.file.path or ""), "line": line} if self._state.file.path else {}
        here = {"graph": shared.name, "soc": shared.soc.name, "stage": "share"}
        shared.findings += [each.at(**here, **({} if each.file else place)) for each in found]
