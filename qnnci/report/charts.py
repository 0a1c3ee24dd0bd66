"""The geometry of a report's charts: everything is a part of the width, in percent. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from qnnci.manifest import Entry, StageTime
from qnnci.report.figures import NONE, cosine, decibel, size

MB = 1 << 20
NINES, DECIBELS = 7.0, 80.0  # where the axes of parity end: fp16 does not get beyond
_IDLE = timedelta(hours=1)  # between two stages: what is older was another build's
_TICKS = 5
_LEAST = 0.25  # percent: a part that is shorter is still seen
_STEPS = (1, 2, 5, 10)
_STAGES = ("source", "export", "prepare", "check", "reference", "convert", "compile", "inspect", "verify")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar, or a dot where it has no width; `kind` is the name of its colour."""

    kind: str
    at: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart: its label, what it holds, and what stands at its end."""

    label: str
    parts: tuple[Part, ...]
    text: str
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Rows under one axis; `ticks` are places and their labels, `legend` kinds and what they mean."""

    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    legend: tuple[tuple[str, str], ...]


# memory


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process maps to run one binary, in bytes; of a binary that does not tell, `whole` is its file."""

    constants: int
    op_data: int
    whole: int
    spill: int
    io: int

    @classmethod
    def of(cls, entry: Entry) -> Memory:
        told = entry.const_bytes is not None and entry.op_data_bytes is not None
        constants, op_data = (entry.const_bytes or 0, entry.op_data_bytes or 0) if told else (0, 0)
        whole = 0 if told else entry.bytes
        return cls(constants, op_data, whole, entry.spill_fill_bytes or 0, entry.io_bytes or 0)

    @property
    def total(self) -> int:
        return self.constants + self.op_data + self.whole + self.spill + self.io


_MEMORY = (
    ("constants", "constants"),
    ("op_data", "op data"),
    ("whole", "the whole file"),
    ("spill", "spill-fill"),
    ("io", "inputs and outputs"),
)


def memory(entries: Sequence[Entry]) -> Chart:
    """A stacked bar for each binary; the mark is the size of its file."""
    most = max((max(Memory.of(each).total, each.bytes) for each in entries), default=0) or 1
    ticks, end = axis(most / MB, lambda value: f"{value:g} MiB")
    bars = []
    for entry in entries:
        needs = Memory.of(entry)
        stacked = [(kind, getattr(needs, kind), f"{name}: {size(getattr(needs, kind))}") for kind, name in _MEMORY]
        bars.append(
            Bar(
                f"{entry.graph} {entry.soc}",
                _stack(stacked, end * MB),
                size(needs.total),
                _share(entry.bytes, end * MB),
            )
        )
    used = {part.kind for bar in bars for part in bar.parts}
    return Chart(tuple(bars), ticks, tuple(pair for pair in _MEMORY if pair[0] in used))


def _stack(stacked: Iterable[tuple[str, int, str]], end: float) -> tuple[Part, ...]:
    parts, at = [], 0.0
    for kind, value, text in stacked:
        if value:
            parts.append(Part(kind, round(at, 3), _share(value, end), text))
            at += value / end * 100
    return tuple(parts)


# parity


@dataclass(frozen=True, slots=True)
class Strip:
    """One output of a graph on all its chips, on two scales: SNR in dB, and how many nines the cosine has."""

    label: str
    snr: tuple[Part, ...]
    snr_gates: tuple[float, ...]
    snr_text: str
    cosine: tuple[Part, ...]
    cosine_gates: tuple[float, ...]
    cosine_text: str
    worst: float


SNR_TICKS = tuple((value / DECIBELS * 100, f"{value:g} dB") for value in (0.0, 20.0, 40.0, 60.0, 80.0))
COSINE_TICKS = tuple((nines / NINES * 100, f"{1 - 10**-nines:g}") for nines in (0, 1, 2, 3, 4, 5, 6))


def strips(entries: Sequence[Entry], settings: Mapping[str, Any]) -> list[Strip]:
    """One for each output of each graph, the worst first. Gates come from the project's settings."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        for output in entry.parity.outputs if entry.parity else ():
            groups.setdefault((entry.graph, output), []).append(entry)
    made = [_strip(graph, output, group, settings) for (graph, output), group in groups.items()]
    return sorted(made, key=lambda each: each.worst)


def _strip(graph: str, output: str, entries: Sequence[Entry], settings: Mapping[str, Any]) -> Strip:
    figures = [(entry, entry.parity.outputs[output]) for entry in entries if entry.parity]
    snrs = [each.snr_db for _, each in figures]
    cosines = [each.cosine for _, each in figures]
    return Strip(
        f"{graph}: {output}",
        tuple(_dot(entry, each.snr_db, _decibels, decibel) for entry, each in figures),
        tuple(map(_decibels, _gates(settings, graph, "snr_db"))),
        _least(snrs, decibel),
        tuple(_dot(entry, each.cosine, _nines, cosine) for entry, each in figures),
        tuple(map(_nines, _gates(settings, graph, "cosine"))),
        _least(cosines, cosine),
        min((-math.inf if snr is None else snr for snr in snrs), default=0.0),
    )


def _dot(entry: Entry, value: float | None, place: Callable[[float], float], shown: Callable[[float], str]) -> Part:
    told = "not finite" if value is None else shown(value)
    kind = "good" if entry.passed and value is not None else "bad"
    return Part(kind, 0.0 if value is None else place(value), 0, f"{entry.soc}: {told}")


def _least(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    known = [value for value in values if value is not None]
    return NONE if not values else shown(min(known)) if len(known) == len(values) else "not finite"


def _gates(settings: Mapping[str, Any], graph: str, metric: str) -> list[float]:
    """Lower bounds of a graph; settings may be anyone's, so what is no bound is passed over."""
    try:
        gates = settings["graphs"][graph]["gates"]["parity"]
        return [float(each["min"]) for each in gates if each["metric"] == metric and "min" in each]
    except (LookupError, TypeError, ValueError):
        return []


def _decibels(value: float) -> float:
    return _inside(value / DECIBELS * 100)


def _nines(value: float) -> float:
    return 100.0 if value >= 1 else _inside(-math.log10(min(1 - value, 1)) / NINES * 100)


def _inside(percent: float) -> float:
    return round(min(max(percent, 0.0), 100.0), 3) if math.isfinite(percent) else 100.0 if percent > 0 else 0.0


# timeline


@dataclass(frozen=True, slots=True)
class Timeline:
    """The newest build: `chart` has a row for each graph and target. `earlier` stages are another build's."""

    chart: Chart
    began: datetime
    seconds: float
    earlier: int


def timeline(stages: Iterable[StageTime]) -> Timeline | None:
    """Where each stage stands in time; None where no stage tells."""
    known = sorted(((at, each) for each in stages if (at := began(each))), key=lambda pair: pair[0])
    if not known:
        return None
    newest = _newest(known)
    start = newest[0][0]
    seconds = max((at - start).total_seconds() + each.seconds for at, each in newest)
    ticks, end = axis(max(seconds, 0.001), duration)
    rows: dict[str, list[Part]] = {}
    busy: dict[str, float] = {}
    for at, each in newest:
        label = f"{each.graph} {each.soc}".strip() or "the build"
        busy[label] = busy.get(label, 0.0) + each.seconds
        left = _share((at - start).total_seconds(), end)
        state = {"done": "", "failed": ", failed", "cached": ", kept from before"}[each.state]
        kind = "failed" if each.state == "failed" else each.stage if each.stage in _STAGES else "other"
        width = max(min(_share(each.seconds, end), 100 - left), _LEAST)
        text = f"{each.stage}: {duration(each.seconds)}{state}"
        rows.setdefault(label, []).append(Part(kind, left, width, text))
    used = {part.kind for parts in rows.values() for part in parts}
    legend = tuple((kind, kind if kind != "other" else "other stages") for kind in (*_STAGES, "other") if kind in used)
    failed = (("failed", "failed"),) if "failed" in used else ()
    bars = tuple(Bar(label, tuple(parts), duration(busy[label])) for label, parts in rows.items())
    return Timeline(Chart(bars, ticks, (*legend, *failed)), start, seconds, len(known) - len(newest))


def _newest(known: Sequence[tuple[datetime, StageTime]]) -> list[tuple[datetime, StageTime]]:
    """What this build did, or else what it found done; of either, what ran since the last long time without any."""
    work = [at for at, each in known if each.state != "cached" and each.stage != "source"]  # looked at in every build
    known = [pair for pair in known if not work or pair[0] >= min(work) or pair[1].state != "cached"]
    first, ended = 0, known[0][0]
    for place, (at, each) in enumerate(known):
        if at - ended > _IDLE:
            first = place
        ended = max(ended, at + timedelta(seconds=each.seconds))
    return list(known[first:])


def began(stage: StageTime) -> datetime | None:
    """When a stage began, where it says so as ISO 8601 with a time zone."""
    try:
        at = datetime.fromisoformat(stage.began)
        at + timedelta(seconds=stage.seconds)
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo and stage.seconds >= 0 else None


def duration(seconds: float) -> str:
    """Seconds, or minutes and hours where these say more."""
    if seconds < 100:  # noqa: PLR2004 - below it, seconds alone read best
        return f"{seconds:.2f} s" if seconds and seconds < 1 else f"{seconds:.1f}".removesuffix(".0") + " s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


# axes


def axis(most: float, shown: Callable[[float], str]) -> tuple[tuple[tuple[float, str], ...], float]:
    """About five ticks from zero to `most`, at round values, and where the axis ends."""
    magnitude = 10 ** math.floor(math.log10(most / _TICKS))
    step = next(each * magnitude for each in _STEPS if each * magnitude * _TICKS >= most * (1 - 1e-9))
    count = math.ceil(most / step - 1e-9)
    end = count * step
    return tuple((round(number / count * 100, 3), shown(number * step)) for number in range(count + 1)), end


def _share(value: float, end: float) -> float:
    return round(min(max(value / end * 100, 0.0), 100.0), 3)
