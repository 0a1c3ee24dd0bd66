"""The export of a graph as stages: what decides its result, what its reference is, and what measures it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qnnci.build.cache import digests, key_of
from qnnci.build.calls import Call
from qnnci.errors import UsageError
from qnnci.files import SCRATCH
from qnnci.model.digests import sha256_of
from qnnci.project import Export, Graph
from qnnci.strict import Command
from qnnci.toolchain.export_venv import own_python

EXPORTED = "exported.onnx"
DATA = "exported.onnx.data"
ORIGINAL = "original.npz"
MEASURED = "measured.json"


def export(name: str, settings: Export, folder: Path, base: Path, cache: Path) -> Call:
    """Run the command of a graph's `export`.

    Raises:
        UsageError: a file that it names cannot be read, or a pattern fits none.

    """
    folder = folder.absolute()
    room = folder / f"{SCRATCH}export"
    places = {"{output}": str(room / EXPORTED), "{reference}": str(room / ORIGINAL)}
    arguments = {
        "command": command(settings.run, places, settings, base, cache),
        "scratch": str(room),
        "folder": str(folder),
        "reference": settings.writes_reference,
    }
    key = key_of(run=settings.run, **decides(settings.run, settings, base, cache, "export"))
    return Call(name, "export", folder, arguments, key, (EXPORTED, DATA, ORIGINAL))


def measure(
    name: str, settings: Export, folder: Path, base: Path, cache: Path, exported: dict[str, str]
) -> Call | None:
    """Run the command that compares an exported graph by a task metric; None where there is none.

    Raises:
        UsageError: as `export` does.

    """
    if settings.compare is None:
        return None
    folder, run = folder.absolute(), settings.compare.command
    room = folder / f"{SCRATCH}measure"
    places = {"{model}": str(folder / EXPORTED), "{report}": str(room / MEASURED)}
    arguments = {
        "command": command(run, places, settings, base, cache),
        "scratch": str(room),
        "folder": str(folder),
        "metric": settings.compare.metric,
    }
    decisive = decides(run, settings, base, cache, "export")
    key = key_of(exported=exported, compare=run, metric=settings.compare.metric, **decisive)
    return Call(name, "measure", folder, arguments, key, (MEASURED,))


def command(run: str, places: dict[str, str], settings: Command, base: Path, cache: Path) -> dict[str, Any]:
    """Return the arguments of `qnnci.toolchain.export_venv.run_command`."""
    base = base.absolute()
    return {
        "argv": [filled(word, places) for word in shlex.split(run)],
        "base": str(base),
        "env": settings.env,
        "requirements": str(base / settings.requirements) if settings.requirements else "",
        "python": settings.python or own_python(),
        "cache": str(cache.absolute()),
    }


def decides(run: str, settings: Command, base: Path, cache: Path, whose: str) -> dict[str, Any]:
    """What decides a command's result beside the command itself; no value of a secret is in it."""
    base = base.absolute()
    further = [base / settings.requirements] if settings.requirements else []
    read = sorted({*files_read(run, settings.inputs, base, whose), *further})
    return {
        "python": settings.python or own_python(),
        "env": settings.env,
        "read": {os.path.relpath(path, base): digest(path, cache) for path in read},
        "requirements": settings.requirements,
    }


def filled(word: str, places: dict[str, str]) -> str:
    """A word of a command with its placeholders filled in."""
    for name, place in places.items():
        word = word.replace(name, place)
    return word


def files_read(run: str, patterns: Sequence[str], base: Path, whose: str) -> list[Path]:
    """Files whose content decides what a command of the project does, as far as it is said: in it, and by patterns.

    Raises:
        UsageError: a pattern that fits no file.

    """
    found = {path for word in shlex.split(run) if (path := base / word).is_file()}
    for pattern in patterns:
        fits = set(_fitting(base, pattern, whose))
        if not fits:
            raise UsageError(f"no file fits {pattern!r} of the {whose}'s inputs", hint=f"they are looked for in {base}")
        found |= fits
    return sorted(found)


def _fitting(base: Path, pattern: str, whose: str) -> Iterator[Path]:
    try:
        yield from (path for path in base.glob(pattern) if path.is_file() and "__pycache__" not in path.parts)
    except (ValueError, NotImplementedError) as error:
        raise UsageError(f"{pattern!r} of the {whose}'s inputs is no pattern: {error}") from error


def digest(path: Path, cache: Path) -> str:
    """The sha256 of a file that a command reads.

    Raises:
        UsageError: it cannot be read.

    """
    try:
        return sha256_of(path, cache)
    except OSError as error:
        raise UsageError(f"cannot read {path}, which the project needs: {error.strerror}") from error


def original(settings: Export | None, folder: Path, base: Path) -> Path | None:
    """Where the inputs and outputs of the original model stand, if there are any."""
    if settings and settings.reference:
        return base / settings.reference
    return folder / ORIGINAL if settings and settings.writes_reference else None


def compare(name: str, graph: Graph, folder: Path, base: Path, exported: dict[str, str]) -> Call | None:
    """Hold an exported graph against the original model's own outputs; None where there are none."""
    reference = original(graph.export, folder, base)
    if reference is None:
        return None
    constants = {key: each.value for key, each in graph.inputs.items() if each.value is not None}
    arguments: dict[str, Any] = {
        "model": str(folder / EXPORTED),
        "reference": str(reference),
        "constants": constants,
    }
    key = key_of(exported=exported, constants=constants, kept=digests(reference))
    return Call(name, "compare", folder, arguments, key)
