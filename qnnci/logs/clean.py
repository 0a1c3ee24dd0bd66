"""Bytes of a log, in chunks as they come, to whole lines without what only terminals and Windows put into them."""

from __future__ import annotations

import re
import string

LINE = 1 << 16  # bytes of a line that are kept; the rest of a longer one says nothing that is looked for
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?|[ -~]?)")
_HEX = re.compile(rb"0x[0-9a-fA-F]+")
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LETTERS = string.ascii_letters.encode()
_ONLY_LETTERS = bytes(byte if byte in _LETTERS else 0x20 for byte in range(256))


def shape(block: bytes) -> bytes:
    """The block with all digits and addresses alike: what lines that say the same have in common."""
    block = _HEX.sub(b"0x", block) if b"0x" in block else block
    return block.translate(_DIGITS_ALIKE)


def words(block: bytes) -> bytes:
    """The block with a space for everything that is no letter: the same length, so places in both are the same."""
    return block.translate(_ONLY_LETTERS)


class Cleaner:
    """Cuts a stream into blocks of whole lines, which end in a line feed or carriage return.

    NULs go, so that ASCII in UTF-16 becomes ASCII; so do escape sequences. Memory is bounded by the chunk and `LINE`.
    """

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Return the lines that are whole now; empty where none is."""
        data = data.replace(b"\0", b"")
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not cut:
            self._keep(data)
            return b""
        block = bytes(self._rest) + data[:cut]
        self._rest.clear()
        self._keep(data[cut:])
        return _cleaned(block)

    def close(self) -> bytes:
        """Return the last line where nothing ended it."""
        block = bytes(self._rest)
        self._rest.clear()
        return _cleaned(block + b"\n") if block else b""

    def _keep(self, data: bytes) -> None:
        self._rest += data[: LINE - len(self._rest)] if len(self._rest) + len(data) > LINE else data


def _cleaned(block: bytes) -> bytes:
    # A line longer than LINE holds a whole window of half that size.
    half = LINE // 2
    if any(block.find(b"\n", at, at + half) < 0 for at in range(0, len(block) - half + 1, half)):
        parts = re.split(rb"([\r\n])", block)
        block = b"".join(part[:LINE] for part in parts)
    return _ANSI.sub(b"", block) if b"\x1b" in block else block
