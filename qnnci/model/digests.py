"""SHA-256 digests of files, remembered in the cache so that an unchanged 4 GB file is read once only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from qnnci import files
from qnnci.errors import MachineError

# A file written twice within one tick of the file system's clock looks unchanged, so young ones are not remembered.
TICK_NS = 50_000_000


def sha256_of(path: Path, cache: Path) -> str:
    """The digest of a file that others may change: remembered for its path, size, time and inode.

    Raises:
        OSError: the file cannot be read.

    """
    before = _stat(path)
    record = _recall(path, cache)
    if record and record["stat"] == before:
        return str(record["sha256"])
    digest = files.sha256(path)
    if _stat(path) == before and time.time_ns() - path.stat().st_mtime_ns > TICK_NS:
        remember(path, cache, digest)
    return digest


def intact(path: Path, cache: Path) -> str | None:
    """The digest that was remembered for a cached file, if the file is still there with that content."""
    record = _recall(path, cache)
    if record is None or not path.is_file():
        return None
    digest = str(record["sha256"])
    if record["stat"] == _stat(path):
        return digest
    if files.sha256(path) != digest:
        return None
    remember(path, cache, digest)
    return digest


def remember(path: Path, cache: Path, digest: str) -> None:
    """Note the digest of a finished file. A cache that cannot be written only costs time later."""
    with contextlib.suppress(OSError, MachineError):
        files.write_json(_record(path, cache), {"stat": _stat(path), "sha256": digest})


def _recall(path: Path, cache: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(_record(path, cache).read_bytes())
    except (OSError, ValueError):
        return None
    known = isinstance(record, dict) and isinstance(record.get("sha256"), str) and "stat" in record
    return record if known else None


def _record(path: Path, cache: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()
    return cache / "sha256" / f"{name}.json"


def _stat(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino]
