"""What it costs to install qnnci as actions/setup does, and as the actions do that read no models (`light`)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.actions.test_action import environment
from tests.bench.act import ROOT, cost
from tests.bench.table import Figure

WANTED = {"": [str(ROOT)], "light": ["--requirement", str(ROOT / "actions/light.txt")]}


def measure(folder: Path) -> list[Figure]:
    return [figure for kind in WANTED for figure in install(folder / (kind or "full"), kind)]


def install(folder: Path, kind: str) -> list[Figure]:
    folder.mkdir()
    env = environment(folder) | {"QNNCI_INPUT_PYTHON": sys.executable, "GITHUB_OUTPUT": str(folder / "output")}
    # Beforehand: what pip reads again comes from its cache, as after actions/cache.
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder / "wheels"), *WANTED[kind]]
    subprocess.run(pip, env=env, check=True, capture_output=True)
    wheels = [path for path in (folder / "wheels").iterdir() if not path.name.startswith("qnnci-")]
    argv: list[str | Path] = ["bash", ROOT / "actions/install.sh", *([kind] if kind else [])]
    runs = []
    for turn in range(3):
        (folder / str(turn)).mkdir()
        runs.append(cost(argv, folder, env | {"RUNNER_TEMP": str(folder / str(turn))}))
    best = min(runs, key=lambda run: run.wall)
    again = cost(argv, folder, env | {"RUNNER_TEMP": str(folder / "0")})
    named = f"install {kind}".strip()
    return [
        Figure(f"{named}, downloaded", f"{len(wheels)} wheels, {megabytes(wheels)} MB"),
        Figure(f"{named}, on disk", f"{megabytes((folder / '0').rglob('*'))} MB"),
        Figure(f"{named}, wheels on this machine", f"{best.wall:.1f} s, {best.cpu:.1f} s CPU (load {best.load:.1f})"),
        Figure(f"{named}, in a later step of the job", f"{again.wall:.2f} s"),
    ]


def megabytes(files: Iterable[Path]) -> int:
    return round(sum(path.stat().st_size for path in files if path.is_file() and not path.is_symlink()) / 1e6)
