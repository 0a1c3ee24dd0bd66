"""The export of a graph as stages: what decides its result, and what its reference is."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from qnnci.build.cache import digests, key_of
from qnnci.build.calls import Call
from qnnci.errors import UsageError
from qnnci.files import SCRATCH
from qnnci.model.digests import sha256_of
from qnnci.project import Export, Graph
from qnnci.toolchain.export_venv import own_python

EXPORTED = "exported.onnx"
DATA = "exported.onnx.data"
ORIGINAL = "original.npz"


def export(name: str, settings: Export, folder: Path, base: Path, cache: Path) -> Call:
    """Run the command of a graph's `export`.

    Raises:
        UsageError: a file that it names cannot be read, or a pattern fits none.

    """
    folder, base = folder.absolute(), base.absolute()
    room, python = folder / f"{SCRATCH}export", settings.python or own_python()
    places = {"{output}": str(room / EXPORTED), "{reference}": str(room / ORIGINAL)}
    arguments = {
        "argv": [_filled(word, places) for word in shlex.split(settings.run)],
        "base": str(base),
        "env": settings.env,
        "requirements": str(base / settings.requirements) if settings.requirements else "",
        "python": python,
        "cache": str(cache.absolute()),
        "scratch": str(room),
        "folder": str(folder),
        "reference": settings.writes_reference,
    }
    read = {os.path.relpath(path, base): _digest(path, cache) for path in files_read(settings, base)}
    key = key_of(run=settings.run, python=python, env=settings.env, read=read, requirements=settings.requirements)
    return Call(name, "export", folder, arguments, key, (EXPORTED, DATA, ORIGINAL))


def _filled(word: str, places: dict[str, str]) -> str:
    for name, place in places.items():
        word = word.replace(name, place)
    return word


def files_read(settings: Export, base: Path) -> list[Path]:
    """Files whose content decides an export, as far as it is said: those in the command, `inputs`, `requirements`.

    Raises:
        UsageError: a pattern of `inputs` that fits no file.

    """
    found = {path for word in shlex.split(settings.run) if (path := base / word).is_file()}
    for pattern in settings.inputs:
        fits = set(_fitting(base, pattern))
        if not fits:
            raise UsageError(
                f"no file fits {pattern!r} of the export's `inputs`", hint=f"they are looked for in {base}"
            )
        found |= fits
    return sorted(found | ({base / settings.requirements} if settings.requirements else set()))


def _fitting(base: Path, pattern: str) -> Iterator[Path]:
    try:
        yield from (path for path in base.glob(pattern) if path.is_file() and "__pycache__" not in path.parts)
    except (ValueError, NotImplementedError) as error:
        raise UsageError(f"{pattern!r} of the export's `inputs` is no pattern: {error}") from error


def _digest(path: Path, cache: Path) -> str:
    try:
        return sha256_of(path, cache)
    except OSError as error:
        raise UsageError(f"cannot read {path}, which the export needs: {error.strerror}") from error


def compare(name: str, graph: Graph, folder: Path, base: Path, exported: dict[str, str]) -> Call | None:
    """Hold an exported graph against the original model's own outputs; None where there are none."""
    if graph.export is None or not (graph.export.reference or graph.export.writes_reference):
        return None
    kept = base / graph.export.reference if graph.export.reference else None
    constants = {key: each.value for key, each in graph.inputs.items() if each.value is not None}
    arguments: dict[str, Any] = {
        "model": str(folder / EXPORTED),
        "reference": str(kept or folder / ORIGINAL),
        "constants": constants,
    }
    key = key_of(exported=exported, constants=constants, kept=digests(kept) if kept else [])
    return Call(name, "compare", folder, arguments, key)
