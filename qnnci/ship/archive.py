"""Archives that are the same to the byte for the same files: .tar.bz2, .tar.zst and .zip, streamed, on all cores."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from qnnci.errors import UsageError
from qnnci.files import replacing
from qnnci.ship import bzip2, zipped
from qnnci.ship.member import Member, in_order
from qnnci.ship.parallel import cores

Kind = Literal["tar.bz2", "tar.zst", "zip"]

LIMIT = (1 << 31) - 1  # bytes; GitHub takes no release asset of 2 GiB
EPOCH = 315532800  # 1980-01-01, before which zip has no time
_ZSTD_LEVEL = 12
_RECORD = 10240  # bytes; what a tar file is filled up to


@dataclass(frozen=True, slots=True)
class Archive:
    """A file that was written: `bytes` is its size."""

    path: Path
    sha256: str
    bytes: int


def write(path: Path, members: Iterable[Member], kind: Kind, *, threads: int = 0, limit: int = LIMIT) -> Archive:
    """Write an archive, whole or not at all. It depends on names and contents only, and on SOURCE_DATE_EPOCH.

    Raises:
        UsageError: a name that cannot be, a file that is not what its manifest says, an archive beyond `limit` bytes.
        MachineError: no room on the disk.

    """
    packed = _packers()[kind](in_order(members), modified(), threads or cores())
    digest, size = hashlib.sha256(), 0
    with replacing(path) as part, part.open("wb") as file:
        for data in packed:
            size += len(data)
            if size > limit:
                raise UsageError(
                    f"more than {limit / (1 << 30):.3g} GiB, which is the most that a GitHub release takes of one file",
                    where=path.name,
                    hint="write `{graph}` into the bundle's name: one archive for each graph",
                )
            digest.update(data)
            file.write(data)
    return Archive(path, digest.hexdigest(), size)


def modified() -> int:
    """The time that every file in an archive gets, in seconds since 1970: SOURCE_DATE_EPOCH, else the start of 1980.

    Raises:
        UsageError: SOURCE_DATE_EPOCH is no number of seconds.

    """
    given = os.environ.get("SOURCE_DATE_EPOCH") or str(EPOCH)
    if not given.isascii() or not given.isdecimal() or int(given) >= 1 << 32:
        raise UsageError(f"SOURCE_DATE_EPOCH is {given[:40]!r}, not a number of seconds since 1970")
    return int(given)


def _packers() -> dict[Kind, Callable[[Sequence[Member], int, int], Iterator[bytes]]]:
    return {
        "tar.bz2": lambda members, mtime, threads: bzip2.compress(_tar(members, mtime), threads),
        "tar.zst": lambda members, mtime, threads: _zstd(_tar(members, mtime), threads),
        "zip": zipped.compress,
    }


def _tar(members: Sequence[Member], mtime: int) -> Iterator[bytes]:
    size = 0
    for header, chunks in _tar_parts(members, mtime):
        yield header
        size += len(header)
        length = 0
        for chunk in chunks:
            length += len(chunk)
            yield chunk
        filled = -length % tarfile.BLOCKSIZE
        yield bytes(filled)
        size += length + filled
    end = 2 * tarfile.BLOCKSIZE
    yield bytes(end + -(size + end) % _RECORD)


def _tar_parts(members: Sequence[Member], mtime: int) -> Iterator[tuple[bytes, Iterable[bytes]]]:
    """Header and content of each folder and file, folders before what is in them."""
    folders: set[str] = set()
    for member in members:
        for folder in [str(each) for each in reversed(PurePosixPath(member.name).parents)][1:]:
            if folder not in folders:
                folders.add(folder)
                yield _header(folder, 0, tarfile.DIRTYPE, 0o755, mtime), ()
        yield _header(member.name, member.size, tarfile.REGTYPE, 0o644, mtime), member.chunks()


def _header(name: str, size: int, kind: bytes, mode: int, mtime: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mode, info.mtime = size, kind, mode, mtime
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")


def _zstd(chunks: Iterable[bytes], threads: int) -> Iterator[bytes]:
    import zstandard

    # With any number of workers, the library makes the same bytes; without, others.
    packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True, threads=threads).compressobj()
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()
