"""Programs that end by themselves, and those that do not behave."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from qnnci import process
from qnnci.errors import ToolCrashed, ToolMissing


def run(code: str, timeout: float = 60) -> process.Completed:
    return process.run([sys.executable, "-c", code], timeout=timeout)


def test_what_it_printed_and_how_it_ended():
    done = run("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.code, done.output) == (3, "out\nerr\n")


def test_no_program():
    with pytest.raises(ToolMissing, match="/none is not installed"):
        process.run(["/none"], timeout=1)


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(1000)", "import os, time; os.close(1); os.close(2); time.sleep(1000)"]
)
def test_one_that_does_not_end(code):
    with pytest.raises(ToolCrashed, match="did not end within 0 s"):
        run(code, 0.2)


def test_one_that_prints_without_end(monkeypatch):
    monkeypatch.setattr(process, "MOST_BYTES", 1 << 20)
    with pytest.raises(ToolCrashed, match="printed more than 1 MB"):
        run("while True: print('x' * 4096)")


def test_what_it_leaves_running_is_not_waited_for():
    code = "import subprocess as s; p = s.Popen(['sleep', '30']); print(p.pid, flush=True)"
    os.kill(int(run(code, 20).output), signal.SIGKILL)
