"""What a file is that is no context binary, told by its first bytes, so that people hear of their mix-up by name."""

from __future__ import annotations

import codecs
import os
import re
import stat
from pathlib import Path

from qnnci.errors import UsageError

_HEAD = 1 << 16
# First 16 bytes of QAIRT 2.51's context binaries; undocumented, so they only ever explain, never decide.
_MAGIC = bytes.fromhex("00000002 00000003 00000000 00000001")
_HEADER = 40
_ABSURD = 1 << 36

_COMPILE = "compile one with `qnnci build`"
_KNOWN: tuple[tuple[bytes, str, str], ...] = (
    (
        b"PK\x03\x04",
        "a ZIP: a DLC, or a flexible context binary for several SoCs",
        "compile for one SoC at a time to get a plain context binary",
    ),
    (
        b"\x7fELF",
        "an ELF library: perhaps a model library (.so)",
        f"a context binary is what it is compiled to: {_COMPILE}",
    ),
    (
        b"version https://git-lfs.github.com/",
        "a Git LFS pointer: the real file was not downloaded",
        "run `git lfs pull`, or check out with `lfs: true`",
    ),
    (b"\x1f\x8b\x08", "a gzip archive", "unpack it first"),
    (b"BZh", "a bzip2 archive", "unpack it first"),
)
# An ONNX file begins with its IR version (field 1), then a field 2 to 8 of bytes or a varint.
_ONNX = re.compile(rb"\x08[\x01-\x20][\x12\x1a\x22\x28\x32\x3a\x42]")
_PAGE = re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE)
_EP_CONTEXT_FILE = re.compile(rb"ep_cache_context\x22([\x01-\x7f])")


def refuse_other_files(path: Path) -> int:
    """Refuse what is certainly no context binary; return the size in bytes of what may be one.

    Raises:
        UsageError: says what the path is instead, and what to do.

    """
    where = str(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UsageError("a folder, not a context binary", hint="name the .bin file in it", where=where)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError("not a regular file", hint="name a .bin file", where=where)
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError as error:
        raise UsageError("no such file", hint=f"check the path, or {_COMPILE}", where=where) from error
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise UsageError(f"cannot be read: {reason}", hint="check the path and its rights", where=where) from error
    if not head:
        raise UsageError("an empty file, not a context binary", hint=f"{_COMPILE} again", where=where)
    other = _other_kind(head, path)
    if other:
        raise UsageError(f"not a context binary but {other[0]}", hint=other[1], where=where)
    return status.st_size


def _other_kind(head: bytes, path: Path) -> tuple[str, str] | None:
    """What the file is, and what to do; None where it may be a context binary."""
    for magic, what, hint in _KNOWN:
        if head.startswith(magic):
            return what, hint
    if _PAGE.match(head):
        return "an HTML page, perhaps of a failed download", "download it again"
    if _is_text(head):
        return "text", "name the .bin file itself"
    if not _ONNX.match(head):
        return None
    if b"EPContext" not in head:
        return "an ONNX model", f"{_COMPILE} from it"
    found = _EP_CONTEXT_FILE.search(head)
    name = head[found.end() : found.end() + found[1][0]].decode("utf-8", "replace") if found else ""
    beside = path.with_name(Path(name).name) if name else "the .bin beside it"
    return "an EPContext model, which only points at one", f"the binary is {beside}"


def _is_text(head: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # the head's end may cut a character
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\r\n" for character in text)


def cut_short(path: Path) -> str:
    """How much of a refused file is missing by its own header, as a phrase; empty where the header does not say."""
    with path.open("rb") as file:
        head = file.read(_HEADER)
        size = os.fstat(file.fileno()).st_size
    if not head.startswith(_MAGIC[: len(head)]):
        return ""
    if len(head) < _HEADER:
        return f"it is cut short: {size} bytes hold not even the header"
    whole = int.from_bytes(head[24:32], "little") + int.from_bytes(head[32:40], "little")
    # A header that announces more than any binary has is itself damaged.
    return f"it is cut short: it has {size} of {whole} bytes" if size < whole < _ABSURD else ""
