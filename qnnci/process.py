"""The one runner of other programs that end by themselves (pip, uv, git); argv lists only, never a shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import ToolCrashed, ToolMissing


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
    """Run a program to its end and keep what it printed.

    Raises:
        ToolMissing: there is no such program.
        ToolCrashed: it did not end within `timeout` seconds.

    """
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            check=False,
        )
    except FileNotFoundError as error:
        raise ToolMissing(f"{argv[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise ToolCrashed(f"{argv[0]} did not end within {timeout:.0f} s") from error
    return Completed(tuple(argv), done.returncode, done.stdout.decode("utf-8", "replace"))
