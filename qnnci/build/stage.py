"""One stage: skipped where it is done already, else asked of a worker; what went wrong becomes findings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from qnnci.build import cache, calls
from qnnci.build.cache import Record
from qnnci.build.calls import Call
from qnnci.build.state import Ran
from qnnci.build.verdict import shell_code, tool_findings
from qnnci.ci import run_url
from qnnci.findings import Finding, worst
from qnnci.logs.reader import read
from qnnci.model.source import Source
from qnnci.project import Graph
from qnnci.rules import finding
from qnnci.toolchain.pool import Answer, Limit, Worker

# Stages whose errors are not a model's: they are looked at anew each time.
_RETRIED = frozenset({"examine", "export", "measure", "metric", "calibrate"})
# Whose logs alone have the rest of what a user's command said.
_COMMANDS = frozenset({"export", "measure", "metric", "calibrate"})

State = Literal["start", "done", "cached", "failed"]


@dataclass(frozen=True, slots=True)
class Event:
    """Progress: a stage of a graph or target began or ended. `seconds` is wall time, 0 at the start."""

    what: str
    stage: str
    state: State
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Stages:
    """How stages are run in one build. `base` is the folder that file names in findings start from.

    `ran` gets every stage when it ends.
    """

    base: Path
    limit: Limit
    listen: Callable[[Event], None]
    ran: list[Ran] = field(default_factory=list)

    def run(self, call: Call, worker: Worker, *, files: bool = True) -> Record:
        """Do one stage, or find it done. A failed one is not kept, so that the next build tries it again.

        Without `files`, one is done even where what it wrote is gone: nobody needs that any more.

        Raises:
            QnnciError: the stage's input is bad, or the machine refuses.

        """
        kept = cache.load(call.folder, call.stage, call.key, beside=call.beside, files=files)
        if kept is not None:
            self._ended(call, "cached", kept)
            return kept
        began = now("milliseconds")
        self.listen(Event(call.what, call.stage, "start"))
        try:
            record = self._ask(call, worker, began)
        except BaseException:
            self._ended(call, "failed", Record(began=began))
            raise
        self._ended(call, "failed" if worst(record.findings) == "error" else "done", record)
        return record

    def _ended(self, call: Call, state: Literal["done", "cached", "failed"], record: Record) -> None:
        self.listen(Event(call.what, call.stage, state, record.seconds))
        self.ran.append(Ran(call.what, call.stage, state, record.began, record.seconds, record.peak_mb))

    def _ask(self, call: Call, worker: Worker, began: str) -> Record:
        log = call.folder / "logs" / f"{call.stage}.log"
        before = {name: _stamp(call.folder / name) for name in call.outputs}
        function = "tool" if call.tool else call.stage
        answer = worker.ask(f"qnnci.build.{call.module}:{function}_stage", call.arguments, log=log, limit=self.limit)
        written = {name: "" for name in call.outputs if _stamp(call.folder / name) not in {None, before[name]}}
        place = os.path.relpath(log, self.base)
        broken = broken_findings(answer, call, self.limit, _lines(log), wrote=bool(written))
        if broken:
            blamed = tuple(each.at(file=place) for each in broken)
            return Record(findings=blamed, seconds=answer.seconds, began=began)
        data = {**(answer.result or {}), "at": now(), "by": run_url()}
        if call.tool:
            with log.open("rb") as stream:
                report = read(stream, call.tool, shell_code(data["exit_code"]), quantized=call.quantized)
            told = [each.at(file=place).to_json() for each in tool_findings(call, data, report)]
            data |= {"facts": report.facts.to_json(), "findings": [*data["findings"], *told]}
        said = tuple(Finding.from_json(each) for each in data.pop("findings", []))
        if call.stage in _COMMANDS:
            said = tuple(each.at(file=place) for each in said)
        peak_mb = max(answer.peak_mb, data.pop("peak_mb", 0))
        record = Record(data, said, written, answer.seconds, peak_mb, began=began)
        # What went wrong in a tool, or with the machine, is tried again; what was measured of a model is kept.
        if (call.outputs and not written) or ((call.tool or call.stage in _RETRIED) and worst(said) == "error"):
            return replace(record, files={})
        return cache.save(call.folder, call.stage, call.key, record)


def prepare(stages: Stages, name: str, graph: Graph, folder: Path, source: Source, worker: Worker) -> Record:
    """Prepare a graph; where onnxsim takes the worker down with it, again without onnxsim."""
    record = stages.run(calls.prepare(name, graph, folder, source.path, source.sha256), worker)
    crash = next((each for each in record.findings if each.rule == "stage-crashed"), None)
    if crash is None or not graph.simplify:
        return record
    plain = graph.model_copy(update={"simplify": False})
    record = stages.run(calls.prepare(name, plain, folder, source.path, source.sha256), worker)
    told = finding("simplify-failed", f"onnxsim crashed ({crash.message}); the graph goes on unsimplified")
    return replace(record, findings=(told, *record.findings))


def broken_findings(answer: Answer, call: Call, limit: Limit, log: Iterable[str], *, wrote: bool) -> list[Finding]:
    """Return why a stage did not do its work; none where it did. Pure: the log comes in as lines."""
    if answer.death:
        return [_death(answer.death, call.stage, limit)]
    if call.tool or call.stage != "compile":
        rule = "verify-failed" if call.stage == "verify" else "stage-failed"
        return [finding(rule, answer.refused)] if answer.refused else []
    if wrote and not answer.refused:
        return []
    report = read(log, "onnxruntime-qnn", nodes=frozenset(call.nodes))
    told = [text for text in (answer.refused, *report.last_errors()) if text]
    rule = "stage-failed" if answer.refused else "nothing-written"
    return [*report.causes] or [finding(rule, "; ".join(told) or "no binary was written")]


def _lines(log: Path) -> Iterator[str]:
    """The lines of a log, however broken its bytes; a missing log has none."""
    with contextlib.suppress(OSError), log.open(encoding="utf-8", errors="replace", newline="\n") as stream:
        yield from (line.rstrip("\n") for line in stream)


def _death(how: str, stage: str, limit: Limit) -> Finding:
    told = {
        "timeout": ("stage-timeout", f"was stopped after {limit.seconds:.0f} s"),
        "memory": ("stage-memory", f"was stopped for its memory (limit {limit.memory_mb} MB)"),
        "SIGKILL (137)": ("stage-memory", "was killed from outside, as the kernel does where memory runs out"),
    }
    rule, message = told.get(how, ("stage-crashed", f"ended with {how}"))
    return finding(rule, f"{stage} {message}")


def now(timespec: str = "seconds") -> str:
    return datetime.now(timezone.utc).isoformat(timespec=timespec)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_ino) if stat.st_size else None
