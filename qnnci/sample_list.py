"""The SDK's list of input files, as it is written: one sample a line, `path` or `name:=path` for each input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import UsageError

_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """A line and, of a sample, its (`name:=` or empty, file) pairs; none where it is a comment or blank."""

    text: str
    items: tuple[tuple[str, Path], ...]
    where: str


def read_lines(path: Path, folders: Sequence[Path]) -> Iterator[Line]:
    """Read a list whose relative paths start from the first of these folders that has such a file.

    Raises:
        UsageError: the list or a file of it is missing.

    """
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise UsageError("larger than 64 MiB: not an input list", where=str(path))
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        hint = "it has one line for each sample: `path` or `name:=path` for each input"
        raise UsageError(f"cannot read the input list: {error}", where=str(path), hint=hint) from error
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        comment = line.startswith(("#", "%"))  # names of outputs, for qnn-net-run
        yield Line(line, () if comment else tuple(_found(item, folders, where) for item in line.split()), where)


def _found(item: str, folders: Sequence[Path], where: str) -> tuple[str, Path]:
    name, mark, given = item.rpartition(":=")
    for folder in folders:
        file = (folder / given).absolute()
        if file.is_file():
            return name + mark, file
    hint = "paths start from the project file's folder, and a space ends a path"
    raise UsageError(f"there is no file {given}", where=where, hint=hint)
