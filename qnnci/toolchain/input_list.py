"""The SDK's list of calibration inputs: one sample a line, `path` or `name:=path` for each input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import UsageError

_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class InputList:
    """A list whose paths a tool finds, absolute unless that holds a space; `files` are all that it names.

    `form` says for each sample which input each file is for, empty where the order decides. With what is in the files,
    it is all that the list says, wherever they stand.
    """

    text: str
    files: tuple[Path, ...]
    form: tuple[tuple[str, ...], ...]

    @property
    def samples(self) -> int:
        return len(self.form)


def read_input_list(path: Path, base: Path, room: Path) -> InputList:
    """Read a list; its relative paths start from the project's folder or from the list's own.

    `room` is a folder as deep, and in the same place, as those that the tools run in.

    Raises:
        UsageError: the list or a file of it is missing, there is no sample in it, or the tools could not read it.

    """
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise UsageError("larger than 64 MiB: not an input list", where=str(path))
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        hint = "it has one line for each sample: `path` or `name:=path` for each input"
        raise UsageError(f"cannot read the input list: {error}", where=str(path), hint=hint) from error
    files: list[Path] = []
    form: list[tuple[str, ...]] = []
    told: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(("#", "%")) or not line.strip():  # names of outputs, for qnn-net-run
            told.append(line)
            continue
        items = [_absolute(item, (base, path.parent), f"{path}:{number}") for item in line.split()]
        files += [file for _, file in items]
        form.append(tuple(name for name, _ in items))
        told.append(" ".join(name + _spelled(file, room, f"{path}:{number}") for name, file in items))
    if not form:
        raise UsageError("there is no sample in the input list", where=str(path))
    return InputList("\n".join(told) + "\n", tuple(files), tuple(form))


def _absolute(item: str, folders: Sequence[Path], where: str) -> tuple[str, Path]:
    name, mark, given = item.rpartition(":=")
    for folder in folders:
        file = (folder / given).absolute()
        if file.is_file():
            return name + mark, file
    hint = "paths start from the project file's folder, and a space ends a path"
    raise UsageError(f"there is no file {given}", where=where, hint=hint)


def _spelled(file: Path, room: Path, where: str) -> str:
    """A path that the tools, which split lines at spaces, read as one."""
    for text in (str(file), os.path.relpath(file.resolve(), room.resolve())):
        if len(text.split()) == 1:
            return text
    hint = "the SDK's tools split a line at spaces: move the files, or the project, to a path without any"
    raise UsageError(f"there is a space in the path {file}", where=where, hint=hint)
