"""The one way to write and to hash files: whole or not at all, never half under a final name."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from qnnci.errors import MachineError

SCRATCH = ".scratch-"  # begins the names of folders that tools write into before their files are renamed
_PART = re.compile(r"\..+\.[a-z0-9_]{8}\.part")  # the names that `replacing` gives, and hardly anyone else


def default_cache() -> Path:
    """The folder for downloads: `$QNNCI_CACHE`, else ~/.cache/qnnci.

    Raises:
        MachineError: this user has no home folder, and no other is named.

    """
    try:
        return Path(os.environ.get("QNNCI_CACHE") or "~/.cache/qnnci").expanduser().absolute()
    except RuntimeError as error:
        hint = "set QNNCI_CACHE to a folder for downloads, or HOME"
        raise MachineError("this user has no home folder to keep downloads in", hint=hint) from error


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what the machine refuses (full disk, no permission) into a MachineError that names the path."""
    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: "free some space, or choose another disk (`output`, QNNCI_CACHE); finished stages stand",
            errno.EDQUOT: "the quota is used up: free some space; finished stages stand",
            errno.EACCES: "give this user the right to write there, or choose another place (`output`, QNNCI_CACHE)",
            errno.EROFS: "the file system is read-only: choose another place (`output`, QNNCI_CACHE)",
            errno.EEXIST: "a folder is needed there: move the file away, or choose another place (`output`)",
            errno.ENOTDIR: "a file stands where a folder is needed: choose another place (`output`, QNNCI_CACHE)",
            errno.ENAMETOOLONG: "choose a place with a shorter name (`output`, QNNCI_CACHE)",
        }
        if error.errno not in hints:
            raise
        raise MachineError(f"{os.strerror(error.errno)}: {path}", hint=hints[error.errno]) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; on success it is fsynced and renamed, on failure removed."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    part = Path(name)
    try:
        with disk_errors(path):
            yield part
            commit(part, path)
    finally:
        part.unlink(missing_ok=True)


def commit(part: Path, path: Path) -> None:
    """Make the finished file `part` appear as `path`: data first, then the name, then the folder."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.chmod(0o644)  # mkstemp's 0600 would lock out other users of a shared cache
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def locked(lock: Path, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold `lock` alone among all processes and threads; `waiting` is called before a wait. A killed one lets go."""
    with disk_errors(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_leftovers(folder: Path) -> None:
    """Remove what killed runs left under temporary names, anywhere below a folder that nobody else writes to now."""
    for part in folder.rglob(".*.part"):
        if _PART.fullmatch(part.name) and part.is_file():
            part.unlink(missing_ok=True)
    for scratch in folder.rglob(f"{SCRATCH}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def sha256(path: Path) -> str:
    """Hex digest of a file, streamed."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
