"""The SDK's list of calibration inputs, as its tools find what is in it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import UsageError
from qnnci.sample_list import read_lines


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
    files: list[Path] = []
    form: list[tuple[str, ...]] = []
    told: list[str] = []
    for line in read_lines(path, (base, path.parent)):
        files += [file for _, file in line.items]
        if line.items:
            form.append(tuple(name for name, _ in line.items))
        spelled = " ".join(name + _spelled(file, room, line.where) for name, file in line.items)
        told.append(spelled or line.text)
    if not form:
        raise UsageError("there is no sample in the input list", where=str(path))
    return InputList("\n".join(told) + "\n", tuple(files), tuple(form))


def _spelled(file: Path, room: Path, where: str) -> str:
    """A path that the tools, which split lines at spaces, read as one."""
    for text in (str(file), os.path.relpath(file.resolve(), room.resolve())):
        if len(text.split()) == 1:
            return text
    hint = "the SDK's tools split a line at spaces: move the files, or the project, to a path without any"
    raise UsageError(f"there is a space in the path {file}", where=where, hint=hint)
