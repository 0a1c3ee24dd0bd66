"""A manifest as the report page reads it: a row for each target, its problems numbered, figures beside their text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from qnnci.findings import Finding
from qnnci.manifest import Entry, Figures, Manifest, StageTime, Task
from qnnci.report import charts
from qnnci.report.excerpts import Excerpt, Logs
from qnnci.report.exports import export_lines
from qnnci.report.figures import worst
from qnnci.report.problems import Problem, problems
from qnnci.rules import RULES

# What a page holds at most, so that 200 targets stay below 2 MB; manifest.json has everything.
PROBLEMS, OUTPUTS, STRIPS, STAGES = 250, 600, 60, 1200
REASONS = 4  # of one row
ROOM = 500_000  # characters of logs

Verdict = Literal["passed", "failed", "not built"]


@dataclass(frozen=True, slots=True)
class Told:
    """A problem with its number on the page, the rule's title, and what its log says."""

    number: int
    title: str
    problem: Problem
    excerpt: Excerpt | None

    @property
    def severity(self) -> str:
        return self.problem.finding.severity


@dataclass(frozen=True, slots=True)
class Row:
    """A target; `entry` is None where no binary came of it. `more` reasons are not among the first ones."""

    graph: str
    soc: str
    verdict: Verdict
    entry: Entry | None
    cosine: str
    snr: str
    reasons: tuple[Told, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Output:
    """One output's figures on one chip; `runner` is what ran the binary."""

    entry: Entry
    runner: str
    name: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the page shows; each `…_left` counts what did not fit."""

    manifest: Manifest
    rows: tuple[Row, ...]
    told: tuple[Told, ...]
    told_left: int
    memory: charts.Chart
    needs: tuple[tuple[Entry, charts.Memory], ...]
    strips: tuple[charts.Strip, ...]
    strips_left: int
    outputs: tuple[Output, ...]
    outputs_left: int
    timeline: charts.Timeline | None
    stages: tuple[StageTime, ...]
    stages_left: int
    exports: dict[str, str]
    tasks: tuple[tuple[Entry, Task], ...]
    sources: tuple[Entry, ...]
    settings: str
    counts: dict[str, int]


def view(manifest: Manifest, logs: Logs) -> View:
    """What a manifest says, and what the logs say of its errors and warnings, as far as a page goes."""
    found = problems([Finding(**record.model_dump()) for record in manifest.findings])
    told = tuple(_told(number, each, logs) for number, each in enumerate(found[:PROBLEMS], 1))
    rows = _rows(manifest, told)
    strips = charts.strips(manifest.entries, manifest.settings)
    outputs = _outputs(manifest.entries)
    counts: dict[str, int] = dict.fromkeys(("passed", "failed", "not built", "error", "warning", "notice"), 0)
    for each in [*(row.verdict for row in rows), *(problem.finding.severity for problem in found)]:
        counts[each] += 1
    return View(
        manifest=manifest,
        rows=rows,
        told=told,
        told_left=len(found) - len(told),
        memory=charts.memory(manifest.entries),
        needs=tuple((each, charts.Memory.of(each)) for each in manifest.entries),
        strips=tuple(strips[:STRIPS]),
        strips_left=max(len(strips) - STRIPS, 0),
        outputs=tuple(outputs[:OUTPUTS]),
        outputs_left=max(len(outputs) - OUTPUTS, 0),
        timeline=charts.timeline(manifest.stages),
        stages=manifest.stages[:STAGES],
        stages_left=max(len(manifest.stages) - STAGES, 0),
        exports=export_lines(manifest.entries),
        tasks=tuple((each, each.task) for each in manifest.entries if each.task),
        sources=tuple({each.graph: each for each in manifest.entries}.values()),
        settings=_pretty(manifest.settings),
        counts=counts,
    )


def _told(number: int, problem: Problem, logs: Logs) -> Told:
    finding = problem.finding
    title = RULES[finding.rule].title if finding.rule in RULES else finding.rule
    return Told(number, title, problem, logs.excerpt(finding.file, finding.line))


def _rows(manifest: Manifest, told: Sequence[Told]) -> tuple[Row, ...]:
    """A row for each target that was asked for, built, or found to be wrong, in this order."""
    entries = {(each.graph, each.soc): each for each in manifest.entries}
    wanted = [(each.graph, each.soc) for each in manifest.targets]
    blamed = [(each.graph, each.soc) for each in manifest.findings if each.graph and each.soc]
    return tuple(_row(*target, entries.get(target), told) for target in dict.fromkeys((*wanted, *entries, *blamed)))


def _row(graph: str, soc: str, entry: Entry | None, told: Sequence[Told]) -> Row:
    verdict: Verdict = "not built" if entry is None else "passed" if entry.passed else "failed"
    own = [
        each
        for each in told
        if each.problem.finding.graph in {graph, ""} and (soc in each.problem.socs or not each.problem.socs)
        if each.severity != "notice"
    ]
    cosine, snr = worst(entry.parity if entry else None)
    return Row(graph, soc, verdict, entry, cosine, snr, tuple(own[:REASONS]), max(len(own) - REASONS, 0))


def _outputs(entries: Sequence[Entry]) -> list[Output]:
    """All outputs, the worst first; one without a figure is worse than any."""
    found = [
        Output(entry, entry.parity.runner, name, each)
        for entry in entries
        if entry.parity
        for name, each in entry.parity.outputs.items()
    ]
    return sorted(found, key=lambda each: (each.figures.snr_db is not None, each.figures.snr_db or 0.0))


def _pretty(settings: dict[str, Any]) -> str:
    """The settings as JSON; of very long ones the beginning."""
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    lines = list(islice(text.splitlines(), 2000))
    return "\n".join(line[:500] for line in lines)
