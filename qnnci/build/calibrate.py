"""Calibration as a stage, once for a graph: from what the project names to one file that quantizers are fed with."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.arrays import Arrays, Feeds
from qnnci.build import export
from qnnci.build.adapt import CHANNEL_LAST, Order
from qnnci.build.cache import digests, key_of
from qnnci.build.calls import PREPARED, Call
from qnnci.build.scratch import fresh
from qnnci.build.verdict import shell_code
from qnnci.errors import UsageError
from qnnci.files import SCRATCH, disk_errors
from qnnci.findings import plain
from qnnci.model.feeds import INPUT_LIST
from qnnci.quantization import Calibration
from qnnci.rules import finding
from qnnci.sample_list import read_lines

CALIBRATION = "calibration.npz"
Json = dict[str, Any]


def calibrate(
    name: str, settings: Calibration, ranges: Json, folder: Path, base: Path, cache: Path, prepared: dict[str, str]
) -> Call:
    """Plan it. `ranges` are those of random samples, by input.

    Raises:
        UsageError: a file that is named cannot be read, or a pattern fits none.

    """
    folder, base = folder.absolute(), base.absolute()
    room = folder / f"{SCRATCH}calibrate"
    command: Json = {}
    decides: Json = {}
    if settings.run:
        command = export.command(settings.run, {"{output}": str(room)}, settings, base, cache)
        decides = export.decides(settings.run, settings, base, cache, "calibration")
    files = room if settings.run else base / settings.files if settings.files else None
    arguments = {
        "model": str(folder / PREPARED),
        "out": str(folder / CALIBRATION),
        "files": str(files) if files else "",
        "base": str(base),
        "command": command,
        "scratch": str(room),
        "folder": str(folder),
        "ranges": ranges if settings.random else {},
        "random": settings.random or 0,
        "most": settings.samples,
        "native": settings.native,
        "constant": settings.constant,
    }
    given = _given(base / settings.files, base) if settings.files else []
    said = {key: arguments[key] for key in ("ranges", "random", "most", "native", "constant")}
    key = key_of(model=prepared, run=settings.run, given=given, **said, **decides)
    return Call(name, "calibrate", folder, arguments, key, (CALIBRATION,), module="calibrate")


def _given(path: Path, base: Path) -> list[Any]:
    """What the files hold; of a list, the files that it names and what for."""
    listed = path / INPUT_LIST if path.is_dir() else path
    if not (listed.is_file() and listed.suffix == ".txt"):
        return digests(path)
    lines = [line.items for line in read_lines(listed, (base, listed.parent))]
    return [[name, digests(file)] for items in lines for name, file in (*items, ("", Path()))]


def calibrate_stage(
    *,
    model: str,
    out: str,
    files: str,
    base: str,
    command: Json,
    scratch: str,
    folder: str,
    ranges: Json,
    random: int,
    most: int,
    native: bool,
    constant: list[str],
) -> Json:
    """In a worker: read the samples, after the command that writes them where there is one, and keep them."""
    from qnnci.model import calibration, feeds
    from qnnci.model.reference import specs
    from qnnci.toolchain.export_venv import run_command

    wanted = specs(Path(model))
    with fresh(Path(scratch)):
        if command:
            ended = run_command(**command)
            if ended.code:
                hint = f"read {folder}/logs/calibrate.log; run the command by hand in the project file's folder"
                message = f"exit code {shell_code(ended.code)}: {ended.said}"
                return {"findings": plain([finding("calibration-failed", message, hint=hint)])}
        samples: Iterator[Arrays]
        if random:
            drawn = {name: (low, high) for name, (low, high) in ranges.items()}
            samples = iter(feeds.seeded(wanted, drawn, count=random, seed=0))
        else:
            samples = feeds.read(Path(files), wanted, base=Path(base), native=native)
        with disk_errors(Path(out)):
            try:
                count = calibration.keep(samples, wanted, Path(out), most=most, constant=constant)
            except UsageError as error:
                error.hint = error.hint or "the inputs are held against those of the prepared graph"
                raise
    found = calibration.judged(count, drawn=bool(random))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    return {"samples": count, "peak_mb": peak, "findings": plain(found)}


def unpack(room: Path, *, samples: str, text: str, order: Order, kept: list[str]) -> None:
    """In a worker: write samples as .raw files below `room` and the list `text` of them, for a tool that runs there.

    Float inputs get the axes that the route's converter gives them, but for those that are `kept` as they are.
    """
    feeds = Feeds(Path(samples))
    lines = []
    for index in range(len(feeds)):
        folder = room / "calibration" / f"{index:05}"
        folder.mkdir(parents=True)
        words = []
        for place, (name, array) in enumerate(feeds[index].items()):
            axes = CHANNEL_LAST.get(array.ndim) if order == "channel-last" and name not in kept else None
            turned = array.transpose(axes) if axes and array.dtype.kind == "f" else array
            file = folder / f"{place}.raw"
            np.ascontiguousarray(turned).tofile(file)
            words.append(f"{name}:={file.relative_to(room)}")  # a space in an absolute path would end it
        lines.append(" ".join(words))
    (room / text).write_text("\n".join(lines) + "\n", encoding="utf-8")
