"""One bzip2 stream, compressed on all cores. Blocks are independent, but they join at bits, not at bytes.

Streams one after the other would be valid too, but not every reader goes on after the first (Java's needs to be told).
"""

from __future__ import annotations

import bz2
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from qnnci.ship.parallel import ordered, pieces

PIECE = 899_000
_FULL = 899_981  # bytes of a block, in which a run of four bytes takes five and a longer one no more than it did
_HEADER = b"BZh9"
_END = 0x177245385090
_CRC, _MAGIC, _START = 32, 48, 32  # bits


@dataclass(frozen=True, slots=True)
class _Block:
    bits: int
    count: int
    crc: int


def compress(chunks: Iterable[bytes], threads: int) -> Iterator[bytes]:
    """Compress chunks of any size; what comes out depends on their bytes only."""
    yield _HEADER
    left = left_bits = crc = 0
    for block in chain.from_iterable(ordered(_blocks, pieces(chunks, PIECE), threads)):
        crc = (crc << 1 | crc >> 31) & 0xFFFFFFFF ^ block.crc
        count = left_bits + block.count
        value = left << block.count | block.bits
        left_bits = count % 8
        left = value & (1 << left_bits) - 1
        yield (value >> left_bits).to_bytes(count // 8, "big")
    count = left_bits + _MAGIC + _CRC
    value = (left << _MAGIC | _END) << _CRC | crc
    padding = -count % 8
    yield (value << padding).to_bytes((count + padding) // 8, "big")


def _blocks(piece: bytes) -> list[_Block]:
    """Compress a piece into one block, or into more where it might not fit."""
    if len(piece) + _runs(piece) <= _FULL:
        return [_block(piece)]
    half = len(piece) // 2
    return [*_blocks(piece[:half]), *_blocks(piece[half:])]


def _runs(piece: bytes) -> int:
    """How many runs of four equal bytes or more there are."""
    data = np.frombuffer(piece, np.uint8)
    same = data[1:] == data[:-1]
    four = same[2:] & same[1:-1] & same[:-2]
    return int(np.count_nonzero(four[1:] & ~four[:-1])) + int(four[:1].any())


def _block(piece: bytes) -> _Block:
    """Compress one piece on its own, and take its block out of that stream."""
    made = bz2.compress(piece, 9)
    stream = int.from_bytes(made, "big")
    padding = next(pad for pad in range(8) if stream >> (pad + _CRC) & (1 << _MAGIC) - 1 == _END)
    count = len(made) * 8 - _START - _MAGIC - _CRC - padding
    bits = stream >> (padding + _CRC + _MAGIC) & (1 << count) - 1
    return _Block(bits, count, stream >> padding & 0xFFFFFFFF)
