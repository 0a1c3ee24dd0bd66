"""Log lines in the forms that the tools give theirs."""

from __future__ import annotations

import sys
import time
import traceback
from datetime import datetime, timezone

_NUMBERS = {"INFO": 235, "WARNING": 240, "ERROR": 273}  # lines of the logger's own source
_BEGAN = time.monotonic()


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


def plain(text: str = "") -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def python(level: str, message: str) -> None:
    """A line of the converters and quantizers."""
    plain(f"{_now()} - {_NUMBERS[level]} - {level} - {message}")


def library(level: str, message: str) -> None:
    """A line of qnn-model-lib-generator."""
    plain(f"{_now()} - {level:>7} - qnn-model-lib-generator: {message}")


def native(level: str, message: str) -> None:
    """A line of the C++ tools: INFO, WARNING, ERROR, VERBOSE or DEBUG."""
    milliseconds = (time.monotonic() - _BEGAN) * 1000
    label = level if level in {"WARNING", "VERBOSE"} else f" {level:>5} "
    plain(f"{milliseconds:8.1f}ms [{label}] {message}")


def encountered(error: BaseException) -> int:
    """How a converter ends on an error of its own: the line, the traceback, and its exit code."""
    python("ERROR", f"Encountered Error: {error}")
    traceback.print_exception(error)
    return 1


def stages(spill: int, written: int, read: int) -> None:
    """What the HTP library prints while it prepares a graph; sizes in bytes."""
    names = (
        "Graph Preparation Initializing",
        "Graph Optimizations",
        "Post Graph Optimization",
        "Graph Sequencing for Target",
        "VTCM Allocation",
        "Parallelization Optimization",
        "Finalizing Graph Sequence",
        "Completion",
    )
    for at, name in enumerate(names):
        plain(f"Starting stage: {name}")
        if name == "Finalizing Graph Sequence":
            plain("\n====== DDR bandwidth summary ======")
            plain(f"spill_bytes={spill}\nfill_bytes={spill}")
            plain(f"write_total_bytes={spill + written}\nread_total_bytes={spill + read}\n")
        plain(f"Completed stage: {name} ({97 * (at + 1)} us)")
