"""Running `qnnci` as a user does: a process of its own, its exit code and all that it said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    code: int
    said: str


def environment(**more: str) -> dict[str, str]:
    """The machine's, without what GitHub or a user may have set."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "QNNCI_"))}
    return {**kept, "CI": "1", **more}


def qnnci(*args: object, cwd: Path, **env: str) -> Ended:
    argv = [sys.executable, "-m", "qnnci", *map(str, args)]
    done = subprocess.run(
        argv, cwd=cwd, env=environment(**env), capture_output=True, text=True, timeout=300, check=False
    )
    return Ended(done.returncode, done.stdout + done.stderr)


def project(folder: Path, graphs: dict[str, object], socs: list[str], **more: object) -> Path:
    """Write qnn.yaml (JSON is YAML)."""
    file = folder / "qnn.yaml"
    file.write_text(json.dumps({"name": "test", "socs": socs, "graphs": graphs, **more}, indent=1))
    return file
