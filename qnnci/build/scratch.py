"""A folder that a program writes into before what it made is taken over whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qnnci.files import disk_errors


@contextmanager
def fresh(room: Path) -> Iterator[None]:
    """An empty scratch folder while a tool works, and none after it."""
    shutil.rmtree(room, ignore_errors=True)
    with disk_errors(room):
        room.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(room, ignore_errors=True)


def filled(path: Path) -> bool:
    """Whether a program wrote something there, and not a way to somewhere else."""
    # Behind a link stands a file of somebody else, whose mode is not ours to set.
    return path.is_file() and not path.is_symlink() and path.stat().st_size > 0
