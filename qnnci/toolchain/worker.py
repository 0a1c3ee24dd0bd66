"""The child side: a process that does one stage after another for its parent, so that a native crash costs one stage.

Requests come as JSON lines on standard input, answers go as JSON lines to the descriptor given as the first argument;
standard output and error of each stage, native libraries included, go to the stage's own log file. The second argument
is the parent's process id.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qnnci.errors import QnnciError
from qnnci.files import disk_errors

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C stops
    die_with_parent(int(sys.argv[2]))
    answers = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    for line in sys.stdin:
        answers.write(json.dumps(_serve(json.loads(line))) + "\n")
        answers.flush()


def die_with_parent(parent: int) -> None:
    """From now on, a killed parent leaves no compiler behind; nor does one that was killed before this call."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def tool_family() -> Iterator[None]:
    """Inside, a worker waits for a tool: what that starts ends with it, and with the parent, however deep it is.

    A tool like make has children of its own. A signal at a parent's death reaches only us, so we pass it on, which
    takes a worker that does nothing but wait.
    """
    libc, mine = ctypes.CDLL(None), os.getpid()
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what outlives the tool becomes our child
    signal.signal(signal.SIGTERM, lambda *_: _end_all(mine))
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _end_children(mine)


def _end_all(pid: int) -> None:
    _end_children(pid)
    os.kill(pid, signal.SIGKILL)


def _end_children(pid: int) -> None:
    """Kill all descendants; those of a killed one become our own children, so this goes on until there are none."""
    while children := children_of(pid):
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def children_of(pid: int) -> list[int]:
    """The direct children of a process; none where it is gone or the kernel does not say."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    _reset_peak()
    try:
        _log_to(Path(request["log"]))
        module, _, name = request["function"].partition(":")
        result = getattr(importlib.import_module(module), name)(**request["arguments"])
    except QnnciError as error:
        return {"error": {"kind": type(error).__name__, **_said(error)}, "peak_mb": peak_mb()}
    except MemoryError:
        return {"death": "memory", "peak_mb": peak_mb()}
    except Exception as error:  # noqa: BLE001 - ONNX Runtime raises types of its own; the log keeps the traceback
        traceback.print_exc()
        return {"refused": str(error) or type(error).__name__, "peak_mb": peak_mb()}
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return {"result": result, "peak_mb": peak_mb()}


def _said(error: QnnciError) -> dict[str, str]:
    return {"message": error.message, "hint": error.hint, "where": error.where}


def _log_to(path: Path) -> None:
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:  # some containers forbid it: the peak is then that of the whole process so far
        return


def peak_mb() -> int:
    """Peak resident memory in MB since the last reset."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    return 0


if __name__ == "__main__":
    main()
