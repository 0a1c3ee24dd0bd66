"""What a Windows library says of the machine that it is for."""

from __future__ import annotations

import struct
from pathlib import Path

ARM64 = 0xAA64  # ARM64EC libraries, which ARM64 processes do not load, say x64 here
_OFFSET = 0x3C  # where the PE header's own offset stands


def machine(path: Path) -> int | None:
    """The number of the machine in the COFF header; None where the file is no PE image."""
    try:
        with path.open("rb") as file:
            head = file.read(_OFFSET + 4)
            if head[:2] != b"MZ":
                return None
            file.seek(struct.unpack_from("<I", head, _OFFSET)[0])
            signature, number = struct.unpack("<4sH", file.read(6))
    except (struct.error, OSError, ValueError):
        return None
    return int(number) if signature == b"PE\0\0" else None
