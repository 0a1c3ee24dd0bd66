"""One file of an archive: read once, in chunks, and held against what is known of it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from qnnci.errors import UsageError
from qnnci.files import disk_errors

_CHUNK = 1 << 20
_ODD = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_LONGEST = 255  # bytes of a name, on most file systems


@dataclass(frozen=True, slots=True)
class Member:
    """A file by its name inside the archive: what `path` holds, or `data` where there is no path.

    `sha256` is what the file has to be, empty where nothing says so. Sizes in bytes.
    """

    name: str
    size: int
    path: Path | None = None
    data: bytes = b""
    sha256: str = ""

    @classmethod
    def of_text(cls, name: str, text: str) -> Member:
        data = text.encode()
        return cls(name, len(data), data=data)

    @classmethod
    def of_file(cls, name: str, path: Path, *, sha256: str = "", size: int | None = None) -> Member:
        """A file; where `size` is given, it has to be of that size.

        Raises:
            UsageError: it is not there, or of another size.

        """
        try:
            found = path.stat()
        except OSError as error:
            hint = "bundle from the folder that `qnnci build` wrote, with everything in it"
            raise UsageError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error
        if not path.is_file():
            raise UsageError("is no file", where=str(path))
        if size is not None and found.st_size != size:
            raise _changed(path, f"{found.st_size} bytes, the manifest says {size}")
        return cls(name, found.st_size, path=path, sha256=sha256)

    def under(self, folder: str) -> Member:
        return Member(f"{folder}/{self.name}", self.size, self.path, self.data, self.sha256)

    def chunks(self) -> Iterator[bytes]:
        """What it holds.

        Raises:
            UsageError: it is not what it has to be; told at its end.

        """
        if self.path is None:
            yield self.data
            return
        digest = hashlib.sha256()
        left = self.size
        with disk_errors(self.path), self.path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    break
                digest.update(chunk)
                yield chunk
        if left:
            raise _changed(self.path, "its size changed while it was read")
        if self.sha256 and digest.hexdigest() != self.sha256:
            raise _changed(self.path, f"sha256 {digest.hexdigest()}, the manifest says {self.sha256}")


def _changed(path: Path, how: str) -> UsageError:
    hint = "build it again, or take the folder as the build left it: only what was judged is bundled"
    return UsageError(f"differs from its manifest: {how}", where=str(path), hint=hint)


def in_order(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members by name, whatever order they came in.

    Raises:
        UsageError: a name that could lead out of the archive or that some file system cannot take, or two that are
            alike but for case.

    """
    made = sorted(members, key=lambda each: each.name.encode("utf-8", "surrogatepass"))
    seen: dict[str, str] = {}
    for member in made:
        refuse_odd(member.name)
        other = seen.setdefault(member.name.casefold(), "")
        if other:
            raise UsageError(
                f"two files would be {member.name!r} in the archive"
                if other == member.name
                else f"{other!r} and {member.name!r} are one file where case does not count",
                hint="rename one, or add it in a folder",
            )
        seen[member.name.casefold()] = member.name
    for member in made:
        if file := next((str(each) for each in PurePosixPath(member.name).parents if str(each) in seen.values()), ""):
            raise UsageError(f"{file!r} would be a file and a folder in the archive", hint="rename one of them")
    return tuple(made)


def refuse_odd(name: str) -> None:
    """Refuse a name inside an archive that is unsafe to unpack.

    Raises:
        UsageError: as it says.

    """
    parts = PurePosixPath(name).parts
    if not name or name.startswith("/") or ".." in parts or os.path.normpath(name) != name:
        raise UsageError(f"the name {name!r} could lead out of the archive", hint="give a path below the folder")
    if _ODD.search(name) or any(len(part.encode()) > _LONGEST for part in parts):
        raise UsageError(f"the name {name!r} cannot go into an archive", hint="rename the file: plain characters only")
