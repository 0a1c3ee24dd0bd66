"""What a stage has done, kept beside its files: a stage is skipped when its key and its files are still the same."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from qnnci.files import sha256, write_json
from qnnci.findings import Finding


@dataclass(frozen=True, slots=True)
class Record:
    """A finished stage. `files` maps names (relative to the stage's folder) to sha256; `began` is UTC, as ISO 8601."""

    data: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    peak_mb: int = 0
    cached: bool = False
    began: str = ""


def key_of(**parts: Any) -> str:
    """One digest over everything that decides a stage's result: inputs, options, tool versions and qnnci's own code."""
    return _digest({**parts, "tools": tool_versions(), "code": _code()})


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()


@cache
def tool_versions() -> dict[str, str]:
    """Versions of what takes part in a build, without importing any of it."""
    found = {}
    for name in ("qnnci", "onnx", "onnxruntime", "onnxruntime-qnn", "onnxsim", "numpy", "jiwer"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


@cache
def _code() -> str:
    # A version number alone would keep results of older code in a checkout or a fork.
    digest = hashlib.sha256()
    root = files("qnnci")
    for part in (root, *(root / name for name in ("model", "toolchain", "context", "build", "data"))):
        for file in sorted(part.iterdir(), key=lambda each: each.name):
            if file.is_file() and file.name.endswith((".py", ".csv")):
                digest.update(file.read_bytes())
    return digest.hexdigest()


def load(folder: Path, stage: str, key: str, *, beside: Path = Path(), files: bool = True) -> Record | None:
    """The record of a stage that was done with this very key and whose files are untouched; or, without `files`, gone.

    Nothing in it is an absolute path: a folder that was moved to another machine is still done. `beside` is where
    the files start that it read in addition to those in its key.
    """
    kept = _kept(folder, stage)
    if kept.get("key") != key:
        return None
    if files and not all(_same(folder / name, seen) for name, seen in kept["files"].items()):
        return None
    if not all(_same(beside / name, seen) for name, seen in kept["data"].get("reads", {}).items()):
        return None
    return Record(
        data=kept["data"],
        findings=tuple(Finding.from_json(each) for each in kept["findings"]),
        files={name: seen["sha256"] for name, seen in kept["files"].items()},
        seconds=kept["seconds"],
        peak_mb=kept["peak_mb"],
        cached=True,
        began=kept["began"],
    )


def _kept(folder: Path, stage: str) -> dict[str, Any]:
    """The record as `save` wrote it; empty where there is none, or one that anything else wrote or damaged."""
    try:
        kept = json.loads(_path(folder, stage).read_bytes())
        return kept if kept.pop("digest") == _digest(kept) else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def save(folder: Path, stage: str, key: str, record: Record) -> Record:
    """Keep a finished stage; returns the record with the sha256 of its files filled in."""
    seen = {name: _seen(folder / name) for name in record.files}
    kept = {
        "key": key,
        "data": record.data,
        "findings": [each.to_json() for each in record.findings],
        "files": seen,
        "seconds": record.seconds,
        "peak_mb": record.peak_mb,
        "began": record.began,
    }
    _remove_stale(folder, stage, set(record.files))
    write_json(_path(folder, stage), {**kept, "digest": _digest(kept)})
    digests = {name: str(each["sha256"]) for name, each in seen.items()}
    return replace(record, files=digests)


def forget(folder: Path, stage: str) -> None:
    """Have a stage done again."""
    _path(folder, stage).unlink(missing_ok=True)


def _remove_stale(folder: Path, stage: str, current: set[str]) -> None:
    """Files that this stage made earlier under other names, such as another precision's binary."""
    for name in set(_kept(folder, stage).get("files", ())) - current:
        (folder / name).unlink(missing_ok=True)


def _path(folder: Path, stage: str) -> Path:
    return folder / ".stages" / f"{stage}.json"


def seen_beside(paths: Iterable[Path], folder: Path) -> dict[str, dict[str, Any]]:
    """What files that a stage reads beside those in its key are like, by name from `folder`; nothing of missing ones.

    A stage that gives these as `reads` is done again when they change.
    """
    found = {}
    for path in paths:
        with suppress(OSError):
            found[os.path.relpath(path, folder)] = _seen(path)
    return found


def digests(path: Path) -> list[tuple[str, str]]:
    """Names and sha256 of a file, or of all files below a folder; empty where it is missing. Fit for a key."""
    every = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(os.path.relpath(each, path), sha256(each)) for each in every if each.is_file()]


def _seen(path: Path) -> dict[str, Any]:
    stat = path.stat()
    return {"bytes": stat.st_size, "times": _times(stat), "sha256": sha256(path)}


def _times(stat: os.stat_result) -> list[int]:
    """Of the content and of the inode: unlike the first, the second cannot be set."""
    return [stat.st_mtime_ns, stat.st_ctime_ns]


def _same(path: Path, seen: dict[str, Any]) -> bool:
    try:
        stat = path.stat()
        if stat.st_size != seen["bytes"]:
            return False
        return bool(_times(stat) == seen["times"] or sha256(path) == seen["sha256"])
    except OSError:  # gone, or no longer ours to read
        return False
