"""What it costs to install qnnci as the actions do, with nothing cached and with pip's cache warm."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.actions.test_action import environment
from tests.bench.act import ROOT, cost
from tests.bench.table import Figure


def measure(folder: Path) -> list[Figure]:
    return [figure for kind in ("", "light") for figure in install(folder / (kind or "all"), kind)]


def install(folder: Path, kind: str) -> list[Figure]:
    folder.mkdir()
    env = environment(folder) | {"QNNCI_INPUT_PYTHON": sys.executable, "PIP_CACHE_DIR": str(folder / "pip")}
    named, figures = f"install{' light' if kind else ''}", []
    for state in ("nothing cached", "pip's cache warm"):
        temp = folder / state
        temp.mkdir()
        more = {"RUNNER_TEMP": str(temp), "GITHUB_OUTPUT": str(folder / "output")}
        argv: list[str | Path] = ["bash", ROOT / "actions/install.sh", *([kind] if kind else [])]
        done = cost(argv, folder, env | more)
        figures.append(Figure(f"{named}, {state}", f"{done.wall:.1f} s, {done.cpu:.1f} s CPU (load {done.load:.1f})"))
    figures.append(Figure(f"{named}, downloaded / on disk", f"{size(folder / 'pip')} MB / {size(temp)} MB"))
    return figures


def size(folder: Path) -> int:
    """MB of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1_000_000
