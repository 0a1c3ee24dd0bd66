"""Programs run with an eye on their time and memory."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Run:
    """A finished program: wall seconds, and peak resident MB of itself and of it with all its children."""

    seconds: float
    peak_mb: int
    tree_mb: int
    output: str


def timed(argv: Sequence[str], cwd: Path, ends: Sequence[int] = (0,)) -> Run:
    """Run a program and watch its memory; an exit code that is not in `ends` ends the bench with its output."""
    started, peak, tree = time.monotonic(), 0, 0
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(argv, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "CI": "1"})
        watched = psutil.Process(child.pid)
        while child.poll() is None:
            with contextlib.suppress(psutil.Error):  # it may end while it is looked at
                own = watched.memory_info().rss >> 20
                peak = max(peak, own)
                tree = max(tree, own + sum(each.memory_info().rss >> 20 for each in watched.children(recursive=True)))
            time.sleep(0.01)
        seconds = time.monotonic() - started
        output.seek(0)
        said = output.read()
    if child.returncode not in ends:
        sys.exit(f"{' '.join(argv)} ended with {child.returncode}:\n{said}")
    return Run(seconds, peak, tree, said)


def qnnci(*args: str) -> list[str]:
    return [sys.executable, "-m", "qnnci", *args]
