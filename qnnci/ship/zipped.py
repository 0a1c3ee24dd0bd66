"""A zip file as a stream, deflated on all cores: pieces end at byte boundaries and know the 32 KB before them."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from qnnci.errors import UsageError
from qnnci.ship.member import Member
from qnnci.ship.parallel import ordered, pieces

PIECE = 1 << 20
_WINDOW = 1 << 15
_MOST = (1 << 32) - 1  # bytes of a member without the zip64 extensions
_MOST_FILES = (1 << 16) - 1
_FLAGS = 0x0808  # sizes follow the data; names are UTF-8
_DEFLATED, _VERSION, _UNIX = 8, 20, 3 << 8
_MODE = 0o100644 << 16
_LEVEL = 9
_FIRST_YEAR = 1980
_LOCAL, _AFTER, _CENTRAL, _END = "<4s5H3L2H", "<4s3L", "<4s6H3L5H2L", "<4s4H2LH"


class _Piece(NamedTuple):
    before: bytes
    data: bytes
    last: bool


@dataclass(slots=True)
class _Entry:
    """A member as the directory at the end tells of it; the checksum and packed size grow while it is written."""

    name: bytes
    size: int
    offset: int
    crc: int = 0
    packed: int = 0


def compress(members: Iterable[Member], mtime: int, threads: int) -> Iterator[bytes]:
    """Pack members, in their order; `mtime` in seconds since 1970, UTC.

    Raises:
        UsageError: a member of 4 GiB or more, or too many of them.

    """
    stamp = _stamp(mtime)
    entries: list[_Entry] = []
    offset = 0
    for member in members:
        if member.size > _MOST or len(entries) == _MOST_FILES:
            what = "too large" if member.size > _MOST else "one file too many"
            raise UsageError(f"{member.name} is {what} for a zip file", hint="choose `archive: tar.bz2`")
        entry = _Entry(member.name.encode(), member.size, offset)
        entries.append(entry)
        fixed = (_VERSION, _FLAGS, _DEFLATED, *stamp, 0, 0, 0, len(entry.name), 0)
        yield struct.pack(_LOCAL, b"PK\3\4", *fixed) + entry.name
        for data in ordered(_deflated, _windows(_summed(member.chunks(), entry)), threads):
            entry.packed += len(data)
            yield data
        yield struct.pack(_AFTER, b"PK\7\x08", entry.crc, entry.packed, entry.size)
        offset += struct.calcsize(_LOCAL) + len(entry.name) + entry.packed + struct.calcsize(_AFTER)
    yield from _directory(entries, stamp, offset)


def _summed(chunks: Iterable[bytes], entry: _Entry) -> Iterator[bytes]:
    for chunk in chunks:
        entry.crc = zlib.crc32(chunk, entry.crc)
        yield chunk


def _windows(chunks: Iterable[bytes]) -> Iterator[_Piece]:
    """Each piece with what stands before it, and whether it is the last: one at least, for an empty file."""
    before, held = b"", b""
    for number, piece in enumerate(pieces(chunks, PIECE)):
        if number:
            yield _Piece(before, held, last=False)
            before = held[-_WINDOW:]
        held = piece
    yield _Piece(before, held, last=True)


def _deflated(piece: _Piece) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=piece.before)
    return packer.compress(piece.data) + packer.flush(zlib.Z_FINISH if piece.last else zlib.Z_SYNC_FLUSH)


def _directory(entries: list[_Entry], stamp: tuple[int, int], offset: int) -> Iterator[bytes]:
    size = 0
    for entry in entries:
        sizes = (entry.crc, entry.packed, entry.size, len(entry.name))
        fixed = (_UNIX | _VERSION, _VERSION, _FLAGS, _DEFLATED, *stamp, *sizes, 0, 0, 0, 0, _MODE, entry.offset)
        row = struct.pack(_CENTRAL, b"PK\1\2", *fixed) + entry.name
        size += len(row)
        yield row
    yield struct.pack(_END, b"PK\5\6", 0, 0, len(entries), len(entries), size, offset, 0)


def _stamp(mtime: int) -> tuple[int, int]:
    """Time and date as zip has them, in steps of two seconds from 1980 on."""
    at = time.gmtime(mtime)
    year = max(at.tm_year, _FIRST_YEAR) - _FIRST_YEAR
    return at.tm_hour << 11 | at.tm_min << 5 | at.tm_sec // 2, year << 9 | at.tm_mon << 5 | at.tm_mday
