"""Reads a log as it comes, in time and memory that do not depend on what most of its lines say.

Nearly all lines of a verbose log are harmless, and Python is slow line by line. So a block's words are held against
those that patterns name, which costs about as much as splitting it; only a line with such a word is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import BinaryIO

from qnnci.logs.clean import Cleaner, shape, words
from qnnci.logs.lines import behind_prefix, counts, prefixed
from qnnci.logs.patterns import ERRORS, QUIET, Pattern, Wanted, by_word, patterns, triggers
from qnnci.logs.story import LogReport, Seen, Story

_CHUNK = 1 << 18
_PIECE = 4096  # bytes that regexes see at once, so that no line can make them slow
_PLANS = 1 << 14  # lines, with all digits alike, of which it is known which patterns to try
_KNOWN = 4096  # findings that are recognised when they come again
_SHAPES = 1 << 16  # lines, with all digits alike, that are known to be harmless
_HEAD = 200  # lines in which a tool names itself
_FRAMES = 500  # lines of a traceback before it is taken for something else
_TRACEBACK = b"Traceback"
_EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:: |(?<=Error)$|(?<=Exception)$|(?<=Interrupt)$|(?<=Exit)$)")
_BANNER = re.compile(rb"\b((?:qnn|qairt|snpe|genie)-[\w-]+)(?: pid:\d|:? build version|: )")


class Reader:
    """A log on its way: `feed` chunks of bytes, then `close`. How the bytes are cut into chunks makes no difference."""

    def __init__(self, tool: str | None = None, *, nodes: Collection[str] = (), wanted: Wanted = "findings") -> None:
        self._tool = tool or ""
        self._clean = Cleaner()
        self._story = Story(nodes)
        self._all = wanted == "all"
        self._triggers = triggers(wanted) | {_TRACEBACK}
        self._lines = 0
        self._frames = 0  # of the traceback that is being read, from 1; 0 outside
        self._listing = ""  # the fact whose names the next lines list
        self._calm: set[bytes] = set()
        self._plans: dict[bytes, tuple[Pattern, ...]] = {}
        self._known: dict[tuple[str, str], Seen] = {}
        self._patterns = patterns()
        self._exception = next(each for each in self._patterns if each.kind == "python-exception")

    def feed(self, data: bytes) -> None:
        for at in range(0, len(data), _CHUNK):
            self._block(self._clean.feed(data[at : at + _CHUNK]))

    def close(self, exit_code: int | None = None, *, quantized: bool = False) -> LogReport:
        """End the log and judge it. `quantized`: a quantized model was asked for, so a float one is an error."""
        self._block(self._clean.close())
        return self._story.report(exit_code=exit_code, quantized=quantized, tool=self._tool, lines=self._lines)

    # blocks to lines

    def _block(self, block: bytes) -> None:
        """Look at the lines that are not known to be harmless; nearly all are, up to their digits."""
        lines = _split(block)
        shapes = _split(shape(block))
        if not self._tool and self._lines < _HEAD:
            self._find_tool(lines[: _HEAD - self._lines])
        fresh = self._fresh(set(shapes))
        if fresh or self._follows():
            number = self._lines
            for line, alike in zip(lines, shapes, strict=True):
                number += 1
                if alike not in fresh and not self._follows():
                    continue
                parts = line.split(b"\r") if b"\r" in line else [line]
                harmless = [self._line(part, number) for part in parts]
                if all(harmless) and not self._all:
                    self._calm.add(alike)
                    fresh.discard(alike)
        self._lines += block.count(b"\n")

    def _fresh(self, shapes: set[bytes]) -> set[bytes]:
        """Those that are not known to be harmless and hold a word that some pattern looks for."""
        shapes -= self._calm
        if len(self._calm) + len(shapes) > _SHAPES:
            self._calm.clear()
        if self._triggers.isdisjoint(words(b"\n".join(shapes)).split()):
            self._calm |= shapes
            return set()
        fresh = {each for each in shapes if not self._triggers.isdisjoint(words(each).split())}
        self._calm |= shapes - fresh
        return fresh

    def _find_tool(self, lines: list[bytes]) -> None:
        for line in lines:
            if banner := _BANNER.search(line[:_PIECE]):
                self._tool = banner[1].decode()
                return

    def _follows(self) -> bool:
        return bool(self._frames or self._listing)

    def _line(self, raw: bytes, number: int) -> bool:
        """Read one line; returns whether it is harmless wherever it stands and whatever its digits are."""
        if self._listing and self._listed(raw):
            return False
        if self._frames:
            self._in_traceback(raw, number)
            return False
        if _TRACEBACK in raw and b"most recent call last" in raw:
            self._frames = 1
            return False
        return self._judge(raw, number)

    # what goes over several lines

    def _listed(self, raw: bytes) -> bool:
        text = raw[:_PIECE].decode("utf-8", "replace")
        if not prefixed(text) and self._story.facts.item(self._listing, text):
            return True
        self._listing = ""
        return False

    def _in_traceback(self, raw: bytes, number: int) -> None:
        """Frames are skipped; the exception's line ends it. Other streams' lines between them are read as always."""
        self._frames += 1
        text = raw[:_PIECE].decode("utf-8", "replace")
        body = text.removeprefix("|").removeprefix(" ") if text.startswith("|") else text
        has_prefix = prefixed(body)
        body = behind_prefix(body) if has_prefix else body
        if self._frames > _FRAMES:
            self._frames = 0
        if not has_prefix and (not body.strip() or body[0].isspace()):
            return
        if _EXCEPTION.match(body):
            self._frames = 0
            self._judge(raw, number, otherwise=self._exception)
        else:
            self._judge(raw, number)

    # one line

    def _judge(self, raw: bytes, number: int, otherwise: Pattern | None = None) -> bool:
        if len(raw) <= _PIECE:
            return self._piece(raw, raw, number, otherwise)
        starts = range(0, len(raw), _PIECE)
        harmless = [self._piece(raw[at : at + _PIECE], raw[at:], number, otherwise) for at in starts]
        return all(harmless)

    def _piece(self, raw: bytes, whole: bytes, number: int, otherwise: Pattern | None) -> bool:
        text = raw.decode("utf-8", "replace")
        plan = self._plan(raw, text)
        pattern, match = next(((each, found) for each in plan if (found := _searched(each, text))), (otherwise, None))
        if pattern is None or (pattern.role in QUIET and not pattern.fact):
            if pattern and self._all:
                self._story.kinds[pattern.kind] += 1
            return not any(each.counts_digits for each in plan)
        groups = match.groupdict() if match else {}
        if pattern.each:
            for part in pattern.parts.finditer(whole.decode("utf-8", "replace")):
                self._story.take(pattern, text, part.groupdict(), number)
        elif pattern.fact:
            self._story.take(pattern, text, groups, number)
            self._listing = pattern.fact if self._story.facts.learn(pattern.fact, groups) else ""
        elif pattern.role in ERRORS or pattern.role == "note":
            self._tell(pattern, text, groups, number)
        else:
            self._story.take(pattern, text, groups, number)
        return False

    def _tell(self, pattern: Pattern, text: str, groups: dict[str, str | None], number: int) -> None:
        """Count a finding's line, quickly where only its time differs from one before."""
        body = behind_prefix(text)
        key = (pattern.source, body)
        if key in self._known:
            self._story.again(self._known[key], pattern.kind)
            return
        seen = self._story.take(pattern, text, groups, number)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        if seen:
            self._known[key] = seen

    def _plan(self, raw: bytes, text: str) -> tuple[Pattern, ...]:
        """Which patterns to try on a line: all that its digits decide about, up to the first that surely fits."""
        alike = shape(raw)
        if alike not in self._plans:
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[alike] = tuple(self._planned(raw, text))
        return self._plans[alike]

    def _planned(self, raw: bytes, text: str) -> Iterator[Pattern]:
        index = by_word()
        places = {place for word in set(words(raw).split()) if word in index for place in index[word]}
        for place in sorted(places):
            pattern = self._patterns[place]
            if pattern.only and self._tool not in pattern.tools:
                continue
            if pattern.counts_digits:
                if counts(pattern, text):
                    yield pattern
            elif _searched(pattern, text) and counts(pattern, text):
                yield pattern
                return


def _searched(pattern: Pattern, text: str) -> re.Match[str] | None:
    return pattern.regex.search(behind_prefix(text) if pattern.anchored else text)


def _split(block: bytes) -> list[bytes]:
    """The lines of a block that ends with one; a carriage return is left in, unless a line feed follows."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def read(
    source: Iterable[str] | BinaryIO,
    tool: str | None = None,
    exit_code: int | None = None,
    *,
    quantized: bool = False,
    nodes: Collection[str] = (),
    wanted: Wanted = "findings",
) -> LogReport:
    """Read a whole log: lines of text, or a stream of bytes.

    `nodes` are the names in the graph, which names of the compiler's own making are led back to. `wanted="all"` reads
    harmless lines too, to count their kinds.
    """
    reader = Reader(tool, nodes=nodes, wanted=wanted)
    if hasattr(source, "read"):
        while chunk := source.read(_CHUNK):
            reader.feed(chunk)
    else:
        lines = iter(source)
        while batch := list(islice(lines, 1000)):
            reader.feed("".join(f"{line}\n" for line in batch).encode("utf-8", "replace"))
    return reader.close(exit_code, quantized=quantized)
