"""`qnnci bundle` of twelve binaries, each with the runtime libraries, against `tar cjf` of the same, one by one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.bench import twelve
from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed


def measure(folder: Path) -> list[Figure]:
    entries = twelve.build(folder).entries
    count = fetch_libraries(folder)
    # In turns, so that what else the machine does meets both.
    ours, theirs = zip(*((pack(folder, turn), tar(folder, turn)) for turn in range(2)), strict=True)
    gain = min(theirs) / min(ours)
    return [
        Figure(
            f"tar cjf / qnnci bundle, {len(entries)} binaries with {count} libraries, {os.cpu_count()} cores",
            f"{min(theirs):.1f} s / {min(ours):.1f} s = {gain:.2f}",
            "≥ 1.6",
            met=gain >= 1.6,
        )
    ]


def fetch_libraries(folder: Path) -> int:
    """Put the runtime libraries side by side into `all`, and count them."""
    argv = ("runtime-libs", "--for", "build", "--platform", "linux-aarch64", "--archive", "folder", "-o", "libs")
    timed(qnnci(*argv), folder)
    (folder / "all").mkdir()
    files = [path for path in (folder / "libs").rglob("*") if path.is_file()]
    for path in files:
        shutil.copy(path, folder / "all")
    return len(files)


def pack(folder: Path, turn: int) -> float:
    return timed(qnnci("bundle", "--add", "all", "-o", f"bundles-{turn}"), folder).seconds


def tar(folder: Path, turn: int) -> float:
    (folder / f"tar-{turn}").mkdir()
    binaries = [path.relative_to(folder) for path in sorted((folder / "build").rglob("*.bin"))]
    commands = (["tar", "cjf", f"tar-{turn}/{path.stem}.tar.bz2", str(path), "all"] for path in binaries)
    return sum(timed(command, folder).seconds for command in commands)
