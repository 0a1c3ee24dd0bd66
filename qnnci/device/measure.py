"""What a task costs on a device: wall time, CPU, battery, heat. The device looks; the connection may come and go."""

from __future__ import annotations

import re
import statistics
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qnnci import logs
from qnnci.device import ticks, vitals
from qnnci.device.room import Room
from qnnci.device.run import NET_RUN
from qnnci.errors import MachineError, ToolCrashed
from qnnci.findings import Finding
from qnnci.logs import LogReport
from qnnci.manifest import DeviceRun, Spread
from qnnci.rules import finding

EVERY = 2.0  # seconds between looks at the process
_LOST = 300.0  # seconds without an answer after which a device is given up
_PAUSES = (0.2, 20.0)  # seconds between questions whether it has ended: at first, and at most
_ASLEEP = 3  # looks that may be missed before it is told
_WARM = 1  # Android's status from which a device is slowed down

Processor = Literal["npu", "cpu"]


@dataclass(frozen=True, slots=True)
class Task:
    """One program to measure, with the files of the room that it needs."""

    processor: Processor
    command: str


@dataclass(frozen=True, slots=True)
class Took:
    """One run of a task, and what it said."""

    run: DeviceRun
    code: int
    log: str
    report: LogReport


def once(place: Room, task: Task, *, limit: float, every: float = EVERY) -> Took:
    """Run a task to its end.

    Raises:
        MachineError: the device was away for too long.
        ToolCrashed: no end within `limit` seconds.

    """
    before = vitals.read(place.link)
    place.start(task.command, every)
    try:
        code, seconds = _wait(place, limit)
    except BaseException:
        place.stop()
        raise
    after = vitals.read(place.link)
    texts = _texts(place)
    hz = texts.get("hz", "").strip()
    used = ticks.usage(ticks.samples(texts.get("samples.txt", "")), int(hz) if re.fullmatch(r"\d{1,5}", hz) else 100)
    run = DeviceRun(
        processor=task.processor,
        seconds=round(seconds, 2),
        cpu_percent=used.cpu_percent,
        threads=dict(used.threads),
        asleep_seconds=round(used.gap - every, 1) if used.gap > _ASLEEP * every else 0.0,
        before=before,
        after=after,
    )
    log = texts.get("log.txt", "")
    tool = NET_RUN if task.command.startswith(f"./{NET_RUN} ") else None
    return Took(run, code, log, logs.read(log.splitlines(), tool, code))


def _wait(place: Room, limit: float) -> tuple[int, float]:
    """Ask until it has ended. Wi-Fi that is gone for a while, or a cable that is pulled, ends nothing."""
    began = heard = time.monotonic()
    pause, most = _PAUSES
    while True:
        try:
            ended = place.ended()
            heard = time.monotonic()
        except (MachineError, ToolCrashed):
            if time.monotonic() - heard > _LOST:
                raise
            ended = None
        if ended:
            return ended
        if time.monotonic() - began > limit:
            raise ToolCrashed(
                f"the task did not end within {limit:.0f} s", where=place.link.address, hint="allow more: `--seconds`"
            )
        time.sleep(pause)
        pause = min(pause * 2, most)


def _texts(place: Room) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="qnnci-device-") as name:
        path = Path(name) / "made.tar"
        place.fetch("$(ls hz samples.txt log.txt 2>/dev/null)", path)
        with tarfile.open(path, "r:") as tar:
            found = {member.name.removeprefix("./"): tar.extractfile(member) for member in tar if member.isreg()}
            return {name: file.read().decode("utf-8", "replace") for name, file in found.items() if file}


def spread(values: Iterable[float | None]) -> Spread | None:
    """Middle, least and most of those that are known; None where one is not, or there are none."""
    known = list(values)
    if not known or None in known:
        return None
    numbers = [each for each in known if each is not None]
    return Spread(median=round(statistics.median(numbers), 3), low=min(numbers), high=max(numbers))


def doubts(runs: Sequence[DeviceRun]) -> list[Finding]:
    """What makes figures mean less than they seem to."""
    return list(_doubts(runs))


def _doubts(runs: Sequence[DeviceRun]) -> Iterator[Finding]:
    if any(run.before.charging or run.after.charging for run in runs):
        yield finding("device-charging", "the battery was being charged, so its figures say nothing")
    slept = max((run.asleep_seconds for run in runs), default=0.0)
    if slept:
        yield finding("device-slept", f"the device did nothing for {slept:.0f} s in the middle of a run")
    warm = max((run.before.thermal_status or 0 for run in runs), default=0)
    hot = max((run.after.thermal_status or 0 for run in runs), default=0)
    if max(warm, hot) >= _WARM:
        when = "when a run began" if warm >= _WARM else "when a run ended"
        yield finding("device-hot", f"the device's thermal status was {vitals.STATUS[max(warm, hot)]} {when}")
    if any(run.cpu_percent is None for run in runs):
        yield finding("device-short", "a run was too short to tell its share of the CPU")
