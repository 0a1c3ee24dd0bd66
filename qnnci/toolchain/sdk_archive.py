"""An SDK's zip, never trusted: what of it is needed, and unpacking just that."""

from __future__ import annotations

import lzma
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from qnnci.errors import UsageError
from qnnci.files import disk_errors
from qnnci.toolchain.sdk import VERSION

BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, UnicodeError, OverflowError)

# Patterns are relative to the SDK's root; `*` passes over `/`. What every use needs comes first: the licence, the
# headers, what goes onto the device, and the library that reads context binaries.
_ALWAYS = (
    "LICENSE*", "*NOTICE*.txt", "*README*.txt", "*ReleaseNotes*.txt", "sdk.yaml", "include/QNN/*",
    "lib/aarch64-android/*", "lib/hexagon-v*", "lib/x86_64-linux-clang/libQnnSystem.so",
)  # fmt: skip
_TOOLS = (
    "bin/x86_64-linux-clang/*", "bin/envsetup.sh", "bin/check-linux-dependency.sh", "bin/check-python-dependency",
    "lib/x86_64-linux-clang/*", "lib/python/*",
)  # fmt: skip
NEEDS: dict[str, tuple[str, ...]] = {
    "ort": (),
    "model-lib": (*_TOOLS, "share/QNN/converter/*"),
    "dlc": _TOOLS,
}
DEFAULT_NEEDS = ("model-lib", "dlc")

MOST_ENTRIES = 200_000
MOST_BYTES = 32 << 30  # unpacked; SDKs have stayed below 10 GB
# The vendor's zips shrink to a third; those that shrink to a hundredth are made to fill disks.
MOST_RATIO, RATIO_SLACK = 100, 64 << 20
_EXECUTABLE = 0o111
_LONGEST = 255  # bytes of one name


@dataclass(frozen=True, slots=True)
class Plan:
    """What is taken out of a zip: entries with their path below the SDK's root."""

    version: str
    entries: tuple[tuple[zipfile.ZipInfo, PurePosixPath], ...]

    @property
    def bytes(self) -> int:
        return sum(info.file_size for info, _ in self.entries)


def plan(path: Path, needs: Collection[str]) -> Plan:
    """Read a zip's list of contents and choose from it, for uses that NEEDS knows.

    Raises:
        UsageError: not a zip, not an SDK's, cut short, or made to do harm; nothing has been written.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except BROKEN as error:
        raise UsageError(_no_zip(path, str(error)), where=str(path), hint=AGAIN) from error
    if len(infos) > MOST_ENTRIES:
        raise _refused(path, f"has {len(infos)} entries")
    for info in infos:
        if not is_safe(info.orig_filename):
            raise _refused(path, f"has an entry {info.orig_filename[:100]!r}, which would land outside of its folder")
    root, version = _root(path, [info.filename for info in infos])
    patterns = [*_ALWAYS, *(pattern for need in needs for pattern in NEEDS[need])]
    taken = [
        (info, PurePosixPath(name))
        for info in infos
        if not info.is_dir() and (name := _below(root, info.filename)) and _wanted(name, patterns)
    ]
    _check(path, taken)
    return Plan(version, tuple(taken))


AGAIN = "download it again, and compare its size with the server's"


def unpack(path: Path, chosen: Plan, folder: Path) -> None:
    """Write the planned files below `folder`, which is new; run bits are kept, no other mode is.

    Raises:
        UsageError: an entry is damaged.
        MachineError: the disk is full or refuses.

    """
    with disk_errors(folder), zipfile.ZipFile(path) as archive:
        for info, name in chosen.entries:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with archive.open(info) as inside, target.open("xb") as file:
                    shutil.copyfileobj(inside, file, 1 << 20)
            except BROKEN as error:
                raise UsageError(f"the zip is damaged at {name}: {error}", where=str(path), hint=AGAIN) from error
            target.chmod(0o755 if _runs(info, name) else 0o644)


def is_safe(name: str) -> bool:
    """Whether an entry's name stays inside the folder that it is unpacked to, on any system."""
    parts = name.removesuffix("/").split("/")
    plain = name.isprintable() and "\\" not in name and not re.match(r"[A-Za-z]:", name)
    return plain and all(part not in ("", ".", "..") and len(part.encode()) <= _LONGEST for part in parts)


def _root(path: Path, names: Iterable[str]) -> tuple[str, str]:
    """The folder inside the zip that is the SDK's own, with its slash, and its version."""
    tops = {match[0]: match[1] for name in names if (match := re.match(rf"(?:qairt/)?({VERSION})/", name))}
    for top, version in sorted(tops.items()):
        if all(any(name.startswith(f"{top}{folder}/") for name in names) for folder in ("lib", "include")):
            return top, version
    raise UsageError(
        "the zip holds no QAIRT SDK: there is no qairt/<version> with lib and include in it",
        where=str(path),
        hint="use the vendor's zip as it comes, v<version>.zip",
    )


def _below(root: str, name: str) -> str:
    return name.removeprefix(root) if name.startswith(root) else ""


def _wanted(name: str, patterns: Iterable[str]) -> bool:
    # A pattern without a slash is for files at the root only.
    return any(fnmatchcase(name, pattern) for pattern in patterns if "/" in pattern or "/" not in name)


def _check(path: Path, taken: list[tuple[zipfile.ZipInfo, PurePosixPath]]) -> None:
    names = [name for _, name in taken]
    folders = {parent for name in names for parent in name.parents}
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if clash := sorted(twice | (set(names) & folders)):
        raise _refused(path, f"has two entries {clash[0]}")
    for info, name in taken:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            what = "a link" if kind == stat.S_IFLNK else "no plain file"
            raise _refused(path, f"has an entry {name} that is {what}")
    total = sum(info.file_size for info, _ in taken)
    if total > min(MOST_BYTES, MOST_RATIO * path.stat().st_size + RATIO_SLACK):
        raise _refused(path, f"would unpack to {total} bytes from {path.stat().st_size}")


def _runs(info: zipfile.ZipInfo, name: PurePosixPath) -> bool:
    mode = info.external_attr >> 16
    # A zip that was made where there are no modes would leave the tools without the right to run.
    return bool(mode & _EXECUTABLE) if mode else name.parts[0] == "bin"


def _refused(path: Path, why: str) -> UsageError:
    return UsageError(f"the zip {why}: it is refused", where=str(path), hint="get the SDK from the vendor")


def _no_zip(path: Path, why: str) -> str:
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if head.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the SDK itself"
    if head.startswith(b"<"):
        return "a web page, not the SDK"
    return f"cut short: {path.stat().st_size} bytes of a zip" if head.startswith(b"PK") else f"not a zip ({why})"
