"""A folder in place of an archive: written beside and renamed, so that under its name it is whole."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from qnnci.errors import UsageError
from qnnci.files import SCRATCH, disk_errors
from qnnci.ship.member import Member, in_order


def write(path: Path, members: Iterable[Member], *, mark: str) -> Path:
    """Write files below `path`. What stands there is replaced where it has the file `mark`, which says that it is ours.

    Raises:
        UsageError: something else stands there, or a name or file is not one to write.
        MachineError: no room on the disk.

    """
    if path.is_symlink() or (path.exists() and not (path / mark).is_file()):
        raise UsageError(f"{path} is there already and was not written by qnnci", hint="move it away, or choose `-o`")
    scratch = path.parent / f"{SCRATCH}{path.name}"
    with disk_errors(path):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
    try:
        new, old = scratch / "new", scratch / "old"
        for member in in_order(members):
            target = new / member.name
            with disk_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    for chunk in member.chunks():
                        file.write(chunk)
        with disk_errors(path):
            if path.exists():
                path.rename(old)
            new.rename(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return path
