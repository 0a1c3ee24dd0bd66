"""Parts of logs for a report: the lines around what was found, and the beginning and end of the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from qnnci.logs.clean import Cleaner

HEAD, TAIL = 30, 90  # lines of a long log
AROUND = 3  # lines before and after
WIDTH = 400  # characters of a line
_CHUNK = 1 << 16
_LEAST_PARTS = 2  # logs/compile.log


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log; `marked` is the one that a finding is about."""

    number: int
    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A log: `around` the line of a finding, and `head` and `tail` of all its `total` lines, which may be all."""

    name: str
    total: int
    around: tuple[Line, ...]
    head: tuple[Line, ...]
    tail: tuple[Line, ...]

    @property
    def left_out(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    @property
    def characters(self) -> int:
        return sum(len(line.text) for part in (self.around, self.head, self.tail) for line in part)


class Logs:
    """The logs of builds, each in a folder as `qnnci build` writes it. `room` is how many characters it gives away."""

    def __init__(self, folders: Sequence[Path], room: int) -> None:
        self._folders, self._room = folders, room

    def excerpt(self, file: str, line: int) -> Excerpt | None:
        """What stands in a log that a finding names; None where it is no log, not here, or the room is used up."""
        found = self._find(file) if file.endswith(".log") and self._room > 0 else None
        if found is None:
            return None
        path, name = found
        with suppress(OSError):
            excerpt = _excerpt(path, name, line)
            self._room -= excerpt.characters
            return excerpt
        return None

    def _find(self, file: str) -> tuple[Path, str] | None:
        """Builds may have been moved since: the longest end of the path that leads to a file inside of a folder."""
        parts = PurePosixPath(file).parts
        for count in range(len(parts), _LEAST_PARTS - 1, -1):
            name = str(PurePosixPath(*parts[-count:]))
            for folder in self._folders:
                with suppress(OSError, ValueError):
                    path = (folder / name).resolve()
                    if path.is_relative_to(folder.resolve()) and path.is_file():
                        return path, name
        return None


def _excerpt(path: Path, name: str, wanted: int) -> Excerpt:
    head: list[Line] = []
    tail: deque[Line] = deque(maxlen=TAIL)
    around: list[Line] = []
    total = 0
    for total, text in enumerate(_lines(path), 1):
        line = Line(total, text, total == wanted)
        if wanted and abs(total - wanted) <= AROUND:
            around.append(line)
        if total <= HEAD:
            head.append(line)
        else:
            tail.append(line)
    return Excerpt(name, total, tuple(around), tuple(head), tuple(tail))


def _lines(path: Path) -> Iterator[str]:
    """Each line that ends in a line feed, without escape sequences; of a longer one its beginning."""
    cleaner, rest = Cleaner(), b""
    with path.open("rb") as stream:
        while data := stream.read(_CHUNK):
            *whole, rest = (rest + cleaner.feed(data)).split(b"\n")
            yield from map(_text, whole)
    *whole, rest = (rest + cleaner.close()).split(b"\n")
    yield from map(_text, [*whole, rest] if rest else whole)


def _text(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
