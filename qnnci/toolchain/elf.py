"""What an ELF library says of the pages that it can be loaded from."""

from __future__ import annotations

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from qnnci.findings import Finding
from qnnci.rules import finding

PAGE = 16384


def page_size_findings(library: Path) -> list[Finding]:
    """Return an error where a library cannot be loaded from 16 KB pages, as Android 15 and later may have."""
    try:
        with library.open("rb") as file:
            aligned = [int(segment["p_align"]) for segment in ELFFile(file).iter_segments("PT_LOAD")]
    except (ELFError, ValueError, KeyError, OSError) as error:
        return [finding("page-size", f"{library.name} is not read as an ELF library: {error}")]
    if aligned and min(aligned) >= PAGE:
        return []
    smallest = f"pages of {min(aligned)} bytes" if aligned else "no loadable segment"
    return [finding("page-size", f"{library.name} has {smallest}, Android's larger pages need {PAGE}")]
