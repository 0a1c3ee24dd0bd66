"""compile.yml against a job for each graph and SoC, as a person would write it: three graphs for eight chips."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.bench.act import ROOT, Cost, act, caller
from tests.bench.graphs import project
from tests.bench.table import Figure

CALL = {
    "on": "workflow_dispatch",
    "jobs": {"call": {"permissions": {"contents": "read"}, "uses": "./.github/workflows/compile.yml"}},
}


def measure(folder: Path) -> list[Figure]:
    return [figure for verify in (False, True) for figure in compare(folder / f"verify-{verify}", verify=verify)]


def compare(folder: Path, *, verify: bool) -> list[Figure]:
    repository = caller(
        folder,
        {
            "qnn.yaml": json.dumps(project() | {"verify": {"enabled": verify}}),
            ".github/workflows/call.yml": json.dumps(CALL),
            ".github/workflows/compile.yml": (ROOT / ".github/workflows/compile.yml").read_text(),
            ".github/workflows/by_hand.yml": (ROOT / "tests/actions/by_hand.yml").read_text(),
        },
    )
    ours, theirs = act(repository, "call.yml"), act(repository, "by_hand.yml")
    gain = theirs.cpu / ours.cpu
    how = "with verification" if verify else "no verification"
    return [
        Figure(
            f"a job for each graph and SoC / compile.yml, CPU, {how}",
            f"{shown(theirs)} / {shown(ours)} = {gain:.1f}",
            "≥ 4",
            met=gain >= 4,
        ),
        Figure(
            f"the same, wall time on {os.cpu_count()} cores",
            f"{theirs.wall:.0f} s / {ours.wall:.0f} s = {theirs.wall / ours.wall:.1f}",
        ),
    ]


def shown(cost: Cost) -> str:
    return f"{cost.cpu:.0f} s (load {cost.load:.1f})"
