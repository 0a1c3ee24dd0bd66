"""The one runner of other programs that end by themselves (pip, uv, git); argv lists only, never a shell."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import ToolCrashed, ToolMissing

MOST_BYTES = 64 << 20
_WATCH_MS = 100


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended; `output` is its stdout and stderr in the order written."""

    argv: tuple[str, ...]
    code: int
    output: str


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run a program to its end and keep what it printed; what it left running is not waited for.

    Raises:
        ToolMissing: there is no such program.
        ToolCrashed: it did not end within `timeout` seconds, or printed more than MOST_BYTES.

    """
    try:
        program = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, **env} if env else None,
        )
    except FileNotFoundError as error:
        raise ToolMissing(f"{argv[0]} is not installed") from error
    with program:
        try:
            output = _hear(program, time.monotonic() + timeout)
        finally:
            program.kill()  # does nothing to one that has ended
    if output is None:
        raise ToolCrashed(f"{argv[0]} did not end within {timeout:.0f} s")
    if len(output) > MOST_BYTES:
        raise ToolCrashed(f"{argv[0]} printed more than {MOST_BYTES >> 20} MB")
    return Completed(tuple(argv), program.returncode, output.decode("utf-8", "replace"))


def _hear(program: subprocess.Popen[bytes], end: float) -> bytes | None:
    """What a program prints until it ends, or until it is too much; None where it goes on beyond `end`."""
    assert program.stdout is not None  # noqa: S101 - it was opened as a pipe
    poll, heard = select.poll(), bytearray()
    poll.register(program.stdout)
    while len(heard) <= MOST_BYTES:
        ended = program.poll() is not None  # asked first: what it printed is in the pipe by then
        if poll.poll(0 if ended else _WATCH_MS):
            chunk = os.read(program.stdout.fileno(), 1 << 16)
            if not chunk:
                return bytes(heard) if _ends(program, end) else None
            heard += chunk
        elif ended:
            break
        if not ended and time.monotonic() > end:
            return None
    return bytes(heard)


def _ends(program: subprocess.Popen[bytes], end: float) -> bool:
    try:
        program.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True
