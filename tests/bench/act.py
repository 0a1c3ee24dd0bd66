"""Workflows run by act on this machine, in host mode, with all CPU seconds that they take."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.files import default_cache
from tests.actions.test_action import BIN, LOCAL, copy_project, environment, stand_ins

ROOT = Path(__file__).resolve().parents[2]
SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>


@dataclass(frozen=True)
class Cost:
    """Wall seconds, CPU seconds (user and system) of a program with all its descendants, and the load before it."""

    wall: float
    cpu: float
    load: float
    output: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    def step(self, *step: str) -> float:
        """Wall seconds of a step that succeeded."""
        found = [event for event in self.events if event.get("stepID") == [*step] and "executionTime" in event]
        if not found or found[0]["stepResult"] != "success":
            sys.exit(f"step {step} did not succeed:\n{self.output[-5000:]}")
        return float(found[0]["executionTime"]) / 1e9


def cost(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> Cost:
    """Run a program; one that fails ends the bench with its output.

    The kernel adds a process to its parent's children's time when the parent waits for it. Whom nobody waits for is
    handed to this process, which waits for it too: each is counted once, none is lost.
    """
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    load, started, before = os.getloadavg()[0], time.monotonic(), _children()
    done = subprocess.run(
        [*argv], cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    wall = time.monotonic() - started
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{done.stdout[-10000:]}")
    return Cost(wall, _children() - before, load, done.stdout)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def caller(folder: Path, files: Mapping[str, str]) -> Path:
    """A model repository with these files, and beside it a copy of ours."""
    copy_project(folder / "ours")
    for name, text in files.items():
        (folder / "caller" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "caller" / name).write_text(text)
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "b"]):
        subprocess.run(["git", *command], cwd=folder / "caller", check=True)
    return folder / "caller"


def act(repository: Path, workflow: str) -> Cost:
    """Run a workflow of a caller, with GitHub's own services stood in for but for Python: its installs are real."""
    of_python = ROOT / "tests/bench/setup-python"
    local = [part.replace(f"={LOCAL / of_python.name}", f"={of_python}") for part in stand_ins()]
    work = repository.parent / Path(workflow).stem
    shutil.rmtree(work, ignore_errors=True)
    (work / "artifacts").mkdir(parents=True)
    env = {
        "TEST_PYTHON": sys.executable,
        "TEST_CALLER": str(repository),
        "TEST_QNNCI": str(repository.parent / "ours"),
        "TEST_ARTIFACTS": str(work / "artifacts"),
        "QNNCI_CACHE": str(default_cache()),
    }
    argv: list[str | Path] = [
        BIN / "act", "workflow_dispatch", "--json", "--no-skip-checkout", "-P", "ubuntu-24.04=-self-hosted",
        "-W", f".github/workflows/{workflow}",
        *local,
        *(part for name, value in env.items() for part in ("--env", f"{name}={value}")),
    ]  # fmt: skip
    return cost(argv, repository, environment(work))
