"""What /proc says of a process over time, to shares of a CPU. Pure.

Every few seconds `watch.sh` on the device writes `@ <uptime>`, then the line of /proc/<pid>/stat of the process and of
its children, and behind `-` those of its threads.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_UTIME, _STIME = 11, 12  # fields behind the name, the state being 0: proc(5) counts them as 14 and 15
_TICKS_A_SECOND = 100
_BUSIEST = 8


@dataclass(frozen=True, slots=True)
class Task:
    """A process or thread and the ticks that it has run for, in user and kernel mode together."""

    id: int
    name: str
    ticks: int


@dataclass(slots=True)
class Sample:
    """One look; `at` is the device's uptime in seconds, sleep included."""

    at: float
    processes: list[Task] = field(default_factory=list)
    threads: list[Task] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Usage:
    """Shares in percent of one core, so 800 on eight busy ones; None where there were not two looks.

    `threads` are the busiest by name, those of one name together. `gap` is the longest time without a look, in seconds.
    """

    cpu_percent: float | None
    threads: tuple[tuple[str, float], ...]
    looks: int
    gap: float


def stat(line: str) -> Task | None:
    """Read a line of /proc/<pid>/stat; names may hold spaces and brackets. None where it is none."""
    head, bracket, tail = line.rpartition(") ")
    match = re.fullmatch(r"(\d{1,10}) \((.*)", head, re.DOTALL)
    fields = tail.split()
    if not (match and bracket and len(fields) > _STIME):
        return None
    user, system = fields[_UTIME], fields[_STIME]
    if not re.fullmatch(r"\d{1,18}", user, re.ASCII) or not re.fullmatch(r"\d{1,18}", system, re.ASCII):
        return None
    return Task(int(match[1]), match[2], int(user) + int(system))


def samples(text: str) -> list[Sample]:
    """Read what `watch.sh` wrote; lines that are cut short or odd are left out."""
    found: list[Sample] = []
    threads = False
    for line in text.splitlines():
        if match := re.fullmatch(r"@ (\d{1,10}(?:\.\d{1,9})?)", line, re.ASCII):
            found.append(Sample(float(match[1])))
            threads = False
        elif line == "-":
            threads = True
        elif found and (task := stat(line)):
            (found[-1].threads if threads else found[-1].processes).append(task)
    return [each for each in found if each.processes]


def usage(looks: Sequence[Sample], hz: int = _TICKS_A_SECOND) -> Usage:
    """Shares over the whole time between the first look and the last; what began in between counts from 0."""
    seconds = looks[-1].at - looks[0].at if looks else 0.0
    gap = max((later.at - earlier.at for earlier, later in itertools.pairwise(looks)), default=0.0)
    if seconds <= 0 or hz <= 0:
        return Usage(None, (), len(looks), max(gap, 0.0))
    share = 100 / hz / seconds
    by_name: dict[str, int] = {}
    for name, ticks in _spent([look.threads for look in looks]):
        by_name[name] = by_name.get(name, 0) + ticks
    busiest = sorted(by_name.items(), key=lambda each: -each[1])[:_BUSIEST]
    total = sum(ticks for _, ticks in _spent([look.processes for look in looks])) * share
    threads = tuple((name, round(ticks * share, 1)) for name, ticks in busiest if ticks)
    return Usage(round(total, 1), threads, len(looks), gap)


def _spent(looks: Sequence[Iterable[Task]]) -> list[tuple[str, int]]:
    """Name and ticks between the first look and the last, for each that was seen."""
    first = {task.id: task.ticks for task in looks[0]}
    most: dict[int, Task] = {}
    for task in (each for look in looks for each in look):
        if task.id not in most or task.ticks >= most[task.id].ticks:
            most[task.id] = task
    return [(task.name, task.ticks - first.get(task.id, 0)) for task in most.values()]
