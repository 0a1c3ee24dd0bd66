"""The smallest ELF files that say what they are for: machine, and the alignment of their one segment."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

X86_64, AARCH64, HEXAGON = 62, 183, 164
_SHARED_OBJECT = 3
_LOAD, _DYNAMIC, _READ = 1, 2, 4
_NEEDED, _STRTAB, _STRSZ = 1, 5, 10


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


def linked(machine: int, needed: Sequence[str], *, align: int = 4096, content: bytes = b"") -> bytes:
    """The same with a dynamic section that names the libraries which this one needs."""
    bits = 1 if machine == HEXAGON else 2
    word, start = ("I", 52 + 2 * 32) if bits == 1 else ("Q", 64 + 2 * 56)
    names = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    places = [names.index(b"\0" + name.encode() + b"\0") + 1 for name in needed]
    strings = start + len(content)
    dynamic = strings + len(names)
    tags = [(_STRTAB, strings), (_STRSZ, len(names)), *((_NEEDED, place) for place in places), (0, 0)]
    table = b"".join(struct.pack(f"<2{word}", *tag) for tag in tags)
    whole = dynamic + len(table)
    ident = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
    if bits == 1:
        head = struct.pack("<HHIIIIIHHHHHH", _SHARED_OBJECT, machine, 1, 0, 52, 0, 0, 52, 32, 2, 40, 0, 0)
        load = struct.pack("<IIIIIIII", _LOAD, 0, 0, 0, whole, whole, _READ, align)
        more = struct.pack("<IIIIIIII", _DYNAMIC, dynamic, dynamic, dynamic, len(table), len(table), _READ, 4)
    else:
        head = struct.pack("<HHIQQQIHHHHHH", _SHARED_OBJECT, machine, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
        load = struct.pack("<IIQQQQQQ", _LOAD, _READ, 0, 0, 0, whole, whole, align)
        more = struct.pack("<IIQQQQQQ", _DYNAMIC, _READ, dynamic, dynamic, dynamic, len(table), len(table), 8)
    return ident + head + load + more + content + names + table
