"""A release that was downloaded: its sums, and the binaries in its archives, read as streams. Nothing is unpacked.

An archive is somebody's: no path in it is written to, and it may unfold to so many bytes and members only.
"""

from __future__ import annotations

import errno
import hashlib
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import zstandard

from qnnci.errors import UsageError

MOST_BYTES = 64 << 30  # of all that one archive holds
MOST_FILES = 100_000
_Zstd = zstandard.ZstdError
_CHUNK = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S.*)")
ARCHIVES = (".tar.bz2", ".tar.zst", ".zip")


def listed(text: str) -> dict[str, str]:
    """Names to sha256 of a SHA256SUMS file.

    Raises:
        UsageError: a line of another form, or one name twice.

    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in found:
            raise UsageError(f"line {number} of SHA256SUMS does not hold", hint="download the release again")
        found[match[2]] = match[1]
    return found


def take(archive: Path, wanted: Mapping[str, int], folder: Path) -> dict[str, Path]:
    """Copy those files in an archive that are wanted into `folder`, under names of our own; both by their sha256.

    `wanted` has their sizes: what is larger than all of these is not read.

    Raises:
        UsageError: it is damaged, or holds more than it may.

    """
    found: dict[str, Path] = {}
    most = max(wanted.values(), default=0)
    try:
        for number, (stream, size) in enumerate(_files(archive)):
            part = folder / f"{archive.name}.{number}"
            digest = _copied(stream, part) if size <= most else ""
            if digest in wanted and digest not in found:
                found[digest] = part
            else:
                part.unlink(missing_ok=True)
    except UsageError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise _damaged(archive, error) from error
    except (EOFError, ValueError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error, _Zstd) as error:
        raise _damaged(archive, error) from error
    return found


def _damaged(archive: Path, error: Exception) -> UsageError:
    told = str(error) or type(error).__name__
    return UsageError(f"damaged: {told[:200]}", where=archive.name, hint="download it again")


def _files(archive: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The files in an archive, one after the other, with the sizes that it gives them."""
    total = 0
    for number, (stream, size) in enumerate(_zipped(archive) if archive.name.endswith(".zip") else _tarred(archive)):
        total += size
        if number >= MOST_FILES or total > MOST_BYTES:
            message = f"it unfolds to over {MOST_BYTES >> 30} GB or {MOST_FILES:,} files"
            raise UsageError(message, where=archive.name, hint="this is no release of qnnci")
        yield stream, size


def _zipped(archive: Path) -> Iterator[tuple[IO[bytes], int]]:
    with zipfile.ZipFile(archive) as opened:
        for each in opened.infolist():
            if not each.is_dir():
                with opened.open(each) as stream:
                    yield stream, each.file_size


def _tarred(archive: Path) -> Iterator[tuple[IO[bytes], int]]:
    with archive.open("rb") as file:
        packed = archive.name.endswith(".zst")
        source = zstandard.ZstdDecompressor().stream_reader(file) if packed else file
        with tarfile.open(fileobj=source, mode="r|" if packed else "r|bz2") as tar:
            for member in tar:
                stream = tar.extractfile(member) if member.isreg() else None
                if stream is not None:
                    yield stream, member.size


def _copied(stream: IO[bytes], part: Path) -> str:
    digest = hashlib.sha256()
    with part.open("wb") as file:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()
