"""What an ELF library says of itself: its machine, the pages that it can be loaded from, and what it needs."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from qnnci.findings import Finding
from qnnci.rules import finding

PAGE = 16384
AARCH64, HEXAGON = 183, 164
_ODD = (ELFError, ValueError, KeyError, LookupError, AttributeError, TypeError, OverflowError, AssertionError, OSError)
_MACHINE = 18  # offset of e_machine, alike in 32 and 64 bits


@dataclass(frozen=True, slots=True)
class Elf:
    """`machine` is e_machine's number, `aligned` the alignment of each loadable segment in bytes."""

    machine: int
    aligned: tuple[int, ...]
    needed: tuple[str, ...]


def read(path: Path) -> Elf | str:
    """What a library says; text on why not, where it is no ELF library that can be read."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
            elf = ELFFile(file)
            loaded = tuple(int(segment["p_align"]) for segment in elf.iter_segments("PT_LOAD"))
            tags = [tag for part in elf.iter_segments("PT_DYNAMIC") for tag in part.iter_tags("DT_NEEDED")]
            order = "<" if elf.little_endian else ">"
            machine = int(struct.unpack_from(f"{order}H", head, _MACHINE)[0])
            return Elf(machine, loaded, tuple(str(tag.needed) for tag in tags))
    except (*_ODD, struct.error) as error:
        return f"{error or type(error).__name__}"[:200]


def page_size_findings(library: Path) -> list[Finding]:
    """Return an error where a library cannot be loaded from 16 KB pages, as Android 15 and later may have."""
    elf = read(library)
    if isinstance(elf, str):
        return [finding("page-size", f"{library.name} is not read as an ELF library: {elf}")]
    if elf.aligned and min(elf.aligned) >= PAGE:
        return []
    smallest = f"pages of {min(elf.aligned)} bytes" if elf.aligned else "no loadable segment"
    return [finding("page-size", f"{library.name} has {smallest}, Android's larger pages need {PAGE}")]
