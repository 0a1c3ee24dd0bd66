"""What the action adds to `qnnci build`: Silero VAD, everything built before, so that nothing else takes time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from qnnci.files import default_cache
from tests.actions.test_action import environment
from tests.bench.act import ROOT, act, caller, cost
from tests.bench.table import Figure

STEP = {"uses": "./.qnnci", "with": {"python": sys.executable}}
CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"
STEPS = [
    {"uses": CHECKOUT, "with": {"persist-credentials": "false"}},
    {"uses": CHECKOUT, "with": {"repository": "o/r", "path": ".qnnci", "persist-credentials": "false"}},
    {"id": "first", **STEP},
    {"id": "second", **STEP},
]
WORKFLOW = {"on": "workflow_dispatch", "jobs": {"build": {"runs-on": "ubuntu-24.04", "steps": STEPS}}}


def measure(folder: Path) -> list[Figure]:
    repository = caller(
        folder,
        {
            "qnn.yaml": (ROOT / "examples/silero-vad/qnn.yaml").read_text(),
            ".github/workflows/build.yml": json.dumps(WORKFLOW),
        },
    )
    # What is built comes with the checkout: the first step of the job has the same state as the second.
    argv = [sys.executable, "-m", "qnnci", "build"]
    env = environment(folder) | {"PYTHONPATH": str(folder / "ours"), "QNNCI_CACHE": str(default_cache())}
    cost(argv, repository, env)
    plain = min((cost(argv, repository, env) for _ in range(3)), key=lambda each: each.wall)
    done = act(repository, "build.yml")
    first, second = (done.step(step) for step in ("first", "second"))
    return [
        Figure(
            f"action − qnnci build, {name} step of a job",
            f"{step:.2f} s − {plain.wall:.2f} s = {step - plain.wall:.2f} s (load {done.load:.1f})",
            "< 5 s",
            met=step - plain.wall < 5,
        )
        for name, step in (("second", second), ("first, pip's cache warm,", first))
    ]
