"""Files that go into archives beside the binaries, by pattern: README, licences, tokens, test sounds."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from qnnci.errors import UsageError
from qnnci.ship.member import Member


def extras(patterns: Sequence[str], base: Path) -> list[Member]:
    """Files below `base`, named as a copy would name them: a file or folder by its own name, the rest below it.

    Raises:
        UsageError: a pattern that leads out of `base` or that nothing fits.

    """
    found: dict[tuple[str, Path], Member] = {}
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise UsageError(f"{pattern!r} leads out of {base}", hint="add files below the project file's folder")
        members = [member for path in _matches(pattern, base) for member in _members(path, base)]
        if not members:
            raise UsageError(f"nothing is {pattern!r} in {base.absolute()}", hint="see `bundle: {add: …}` or --add")
        found |= {(member.name, member.path or base): member for member in members}
    return list(found.values())


def _matches(pattern: str, base: Path) -> list[Path]:
    # Unlike Path.glob, it leaves out what is hidden.
    names = glob.glob(pattern, root_dir=base, recursive=True)  # noqa: PTH207 - see above
    return [base / name for name in sorted(names) if name]


def _members(path: Path, base: Path) -> Iterator[Member]:
    root = base.resolve()
    files = [path] if path.is_file() else [each for each in sorted(path.rglob("*")) if each.is_file()]
    for file in files:
        if any(part.startswith(".") for part in file.relative_to(path).parts):
            continue  # such as .DS_Store
        if not file.resolve().is_relative_to(root):
            raise UsageError("is a link that leads out of the folder", where=str(file), hint="add the file itself")
        yield Member.of_file(file.relative_to(path.parent).as_posix(), file)
