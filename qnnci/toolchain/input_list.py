"""The SDK's list of calibration inputs: one sample a line, `path` or `name:=path` for each input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import UsageError

_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class InputList:
    """A list whose paths are absolute, so that a tool finds them from any folder; `files` are all that it names."""

    text: str
    files: tuple[Path, ...]
    samples: int


def read_input_list(path: Path, base: Path) -> InputList:
    """Read a list; its relative paths start from the project's folder or from the list's own.

    Raises:
        UsageError: the list or a file of it is missing, or there is no sample in it.

    """
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise UsageError("larger than 64 MiB: not an input list", where=str(path))
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        hint = "it has one line for each sample: `path` or `name:=path` for each input"
        raise UsageError(f"cannot read the input list: {error}", where=str(path), hint=hint) from error
    files: list[Path] = []
    told: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith(("#", "%")) or not line.strip():  # names of outputs, for qnn-net-run
            told.append(line)
            continue
        items = [_absolute(item, (base, path.parent), f"{path}:{number}") for item in line.split()]
        files += [file for _, file in items]
        told.append(" ".join(prefix + str(file) for prefix, file in items))
    samples = sum(1 for line in told if line.strip() and not line.startswith(("#", "%")))
    if not samples:
        raise UsageError("there is no sample in the input list", where=str(path))
    return InputList("\n".join(told) + "\n", tuple(files), samples)


def _absolute(item: str, folders: Sequence[Path], where: str) -> tuple[str, Path]:
    name, mark, given = item.rpartition(":=")
    for folder in folders:
        file = (folder / given).absolute()
        if file.is_file():
            return name + mark, file
    raise UsageError(f"there is no file {given}", where=where, hint="paths start from the project file's folder")
