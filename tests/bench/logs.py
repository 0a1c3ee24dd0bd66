"""The log reader on half a gigabyte, beside grep with the patterns that it looks for."""

from __future__ import annotations

from pathlib import Path

from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed
from tests.support import log_mix


def measure(folder: Path) -> list[Figure]:
    log, patterns = folder / "large.log", folder / "patterns"
    log_mix.write(log, 500_000_000)
    patterns.write_text(log_mix.for_grep())
    size = log.stat().st_size / 1e6
    read = timed([*qnnci("logs", str(log), "--format", "json", "--tool", "qairt-converter")], folder, ends=(0, 1))
    grep = timed(["env", "LC_ALL=C", "grep", "-c", "-i", "-E", "-f", str(patterns), str(log)], folder)
    ours, theirs = size / read.seconds, size / grep.seconds
    return [
        Figure("log of 500 MB", f"{ours:.0f} MB/s", "≥ 30 MB/s", met=ours >= 30),
        Figure("grep -c -E with the same patterns / log reader", f"{theirs:.0f} MB/s = {theirs / ours:.1f}"),
        Figure("log of 500 MB, memory", f"{read.peak_mb} MB", "flat", met=read.peak_mb < 100),
    ]
