"""The parent side of a worker: start it, ask it, watch its time and memory, and say how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci import errors
from qnnci.toolchain.worker import children_of

_WATCH_SECONDS = 0.1
_RETIRE_MB = 1024  # a worker that holds this much after a stage is replaced


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of one request, enforced from outside: wall seconds, and resident MB of a worker with its tools."""

    seconds: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Answer:
    """How a request ended. Exactly one of `result`, `refused` (an exception's text) and `death` is set.

    death: `timeout`, `memory`, `interrupted`, or how a worker ended that we did not stop, such as `SIGSEGV (139)`.
    """

    result: Any = None
    refused: str = ""
    death: str = ""
    seconds: float = 0.0
    peak_mb: int = 0


class Worker:
    """A child process that is started when first asked, and again after it has died. One thread uses it at a time."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None
        self._answers = -1
        self._stopped = threading.Event()

    def ask(self, function: str, arguments: dict[str, Any], *, log: Path, limit: Limit) -> Answer:
        """Run `module:function` with JSON-able arguments in the child; its output goes to `log`.

        Raises:
            QnnciError: the function raised it; the same kind is raised here.

        """
        child = self._start()
        request = json.dumps({"function": function, "arguments": arguments, "log": str(log)})
        started = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it died while idle: the empty answer below says so
            assert child.stdin is not None  # noqa: S101 - it was opened as a pipe
            child.stdin.write(request + "\n")
            child.stdin.flush()
        line, death = self._wait(child, started, limit)
        seconds = time.monotonic() - started
        if death:
            return Answer(death=death, seconds=seconds)
        answer = json.loads(line)
        peak = int(answer.get("peak_mb", 0))
        if resident_mb(child.pid) > _RETIRE_MB:
            self.stop()
        if "error" in answer:
            error = answer["error"]
            raise getattr(errors, error["kind"])(error["message"], hint=error["hint"], where=error["where"])
        return Answer(answer.get("result"), answer.get("refused", ""), answer.get("death", ""), seconds, peak)

    def interrupt(self) -> None:
        """End the child from another thread; a waiting `ask` then answers with a death, and no new child starts."""
        self._stopped.set()
        child = self._child
        if child is not None:
            _kill_family(child)

    def stop(self) -> None:
        """End the child and forget it."""
        child, self._child = self._child, None
        if child is None:
            return
        _kill_family(child)
        child.wait()
        if child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
        os.close(self._answers)

    def _start(self) -> subprocess.Popen[str]:
        if self._stopped.is_set():
            raise KeyboardInterrupt
        if self._child is not None and self._child.poll() is None:
            return self._child
        self.stop()
        reader, writer = os.pipe()
        self._child = subprocess.Popen(
            [sys.executable, "-m", "qnnci.toolchain.worker", str(writer), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writer,),
            start_new_session=True,
            text=True,
            env={**os.environ, "PYTHONSAFEPATH": "1"},  # else an onnx.py in the user's folder would be imported
        )
        os.close(writer)
        self._answers = reader
        return self._child

    def _wait(self, child: subprocess.Popen[str], started: float, limit: Limit) -> tuple[str, str]:
        """Wait for one line of answer: (line, "") or ("", how it died)."""
        received = b""
        while not received.endswith(b"\n"):
            if select.select([self._answers], [], [], _WATCH_SECONDS)[0]:
                chunk = os.read(self._answers, 1 << 16)
                if not chunk:
                    return "", self._obituary(child)
                received += chunk
            elif time.monotonic() - started > limit.seconds:
                self.stop()
                return "", "timeout"
            elif family_mb(child.pid) > limit.memory_mb:
                self.stop()
                return "", "memory"
        return received.decode("utf-8"), ""

    def _obituary(self, child: subprocess.Popen[str]) -> str:
        code = child.wait()
        self.stop()
        if self._stopped.is_set():
            return "interrupted"
        if code < 0:
            return f"{signal.Signals(-code).name} ({128 - code})"
        return f"exit code {code}"


def _kill_family(child: subprocess.Popen[str]) -> None:
    """Kill a worker, the tools that it runs, which share its process group, and what of theirs has left that."""
    others = descendants(child.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    for pid in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """All that a process has started and that still runs, and what those have started."""
    return [each for child in children_of(pid) for each in (child, *descendants(child))]


def family_mb(pid: int) -> int:
    """Resident memory in MB of a process and all that it started."""
    return sum(map(resident_mb, (pid, *descendants(pid))))


def resident_mb(pid: int) -> int:
    """Resident memory of a process in MB; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def machine_mb() -> int:
    """Physical memory of this machine in MB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
