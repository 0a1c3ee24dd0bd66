"""The smallest ELF files that say what they are for: machine, and the alignment of their one segment."""

from __future__ import annotations

import struct
from pathlib import Path

X86_64, AARCH64, HEXAGON = 62, 183, 164
_SHARED_OBJECT = 3
_LOAD, _READ = 1, 4


def library(machine: int, *, align: int = 4096, content: bytes = b"") -> bytes:
    """A shared object for `machine` with one PT_LOAD segment of `align` bytes; `content` stands behind it."""
    bits = 1 if machine == HEXAGON else 2
    ident = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
    if bits == 1:
        head = struct.pack("<HHIIIIIHHHHHH", _SHARED_OBJECT, machine, 1, 0, 52, 0, 0, 52, 32, 1, 40, 0, 0)
        segment = struct.pack("<IIIIIIII", _LOAD, 0, 0, 0, 84, 84, _READ, align)
    else:
        head = struct.pack("<HHIQQQIHHHHHH", _SHARED_OBJECT, machine, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
        segment = struct.pack("<IIQQQQQQ", _LOAD, _READ, 0, 0, 0, 120, 120, align)
    return ident + head + segment + content


def write(path: Path, machine: int, *, align: int = 4096, content: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(library(machine, align=align, content=content))


def is_for(path: Path, machine: int) -> bool:
    """Whether the file is an ELF for this machine."""
    head = path.read_bytes()[:20] if path.is_file() else b""
    return head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == machine
