"""Twelve binaries of PP-OCRv4's recogniser, for what is measured of finished builds."""

from __future__ import annotations

import json
from pathlib import Path

from qnnci.manifest import Manifest, load
from tests.bench.graphs import SOCS, project
from tests.bench.timed import qnnci, timed

MORE_SOCS = ("QCS8625", "SC8380XP", "SA8255", "QCS8300")


def build(folder: Path) -> Manifest:
    """Build them into `build`, without verification."""
    made = {**project(), "socs": [*SOCS, *MORE_SOCS], "verify": {"enabled": False}, "license": "Apache-2.0"}
    made["graphs"] = {"recogniser": made["graphs"]["recogniser"]}
    (folder / "qnn.yaml").write_text(json.dumps(made))
    timed(qnnci("build"), folder)
    return load(folder / "build/manifest.json")
