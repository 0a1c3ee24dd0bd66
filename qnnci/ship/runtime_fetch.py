"""Bringing what holds run-time libraries here: a wheel by pip, an AAR from a Maven repository, any file by https.

Everything is kept in the cache, so that it is downloaded once.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import re
from collections.abc import Callable, Iterator
from importlib.resources import files as resources
from pathlib import Path
from typing import NamedTuple

from qnnci import files
from qnnci.errors import MachineError, QnnciError, UsageError
from qnnci.model import digests, wheel

Say = Callable[[str], None]

CENTRAL = "https://repo1.maven.org/maven2"
ARTIFACT = "com.qualcomm.qti:qnn-runtime"
PACKAGE = "onnxruntime-qnn"
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # the libraries in the wheels for each are the same
_DIGESTS = ("sha256", "sha1", "md5")
_NOTE_BYTES = 1 << 16


class Package(NamedTuple):
    """A release of onnxruntime-qnn: the build of QAIRT in it, and the platforms that it has wheels for.

    Measured on the wheels. It only says what to ask for: what a wheel then says of itself is what counts.
    """

    version: str
    qairt: str
    wheels: tuple[str, ...]


def packages() -> list[Package]:
    """Every release that is known, oldest first."""
    lines = (resources("qnnci") / "data" / "onnxruntime_qnn.csv").read_text(encoding="utf-8").splitlines()
    return [Package(row["version"], row["qairt"], tuple(row["wheels"].split())) for row in csv.DictReader(lines)]


def from_pypi(version: str, platform: str, cache: Path, say: Say) -> Path:
    """The wheel of onnxruntime-qnn for a platform that pip names so.

    Raises:
        UsageError: there is no such wheel.
        MachineError: the package index cannot be reached, or the disk is full.
        ToolMissing: this Python has no pip.
        ToolCrashed: pip did not end.

    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*", version):
        raise UsageError(f"{version[:80]!r} is no version of {PACKAGE}", hint="write `--from pypi==2.7.0`")
    with _kept(cache, "pypi", f"{version} {platform}", f"{PACKAGE}-{version}-{platform}.whl", say) as path:
        if not digests.intact(path, cache):
            say(f"downloading {PACKAGE} {version} for {platform}")
            _pip(wheel.Member(f"{PACKAGE}=={version}", ""), path, platform)
            digests.remember(path, cache, files.sha256(path))
    return path


def from_maven(version: str, base: str, cache: Path, say: Say) -> Path:
    """The AAR of qnn-runtime, held against the digests that stand beside it in the repository.

    Raises:
        UsageError: the repository has no such version, or no digest of it, or the file is another one.
        MachineError: it cannot be reached, or the disk is full.

    """
    from qnnci import http

    group, name = ARTIFACT.split(":")
    root = f"{base.rstrip('/')}/{group.replace('.', '/')}/{name}"
    url = f"{root}/{version}/{name}-{version}.aar"
    with _kept(cache, "maven", url, f"{name}-{version}.aar", say) as path:
        if digests.intact(path, cache):
            return path
        say(f"downloading {ARTIFACT}:{version} from {http.public(base)}")
        part = path.with_name(".part")
        known = {kind: digest for kind in _DIGESTS if (digest := _digest(f"{url}.{kind}", kind, path.parent))}
        if not known:
            raise UsageError(
                f"{http.public(base)} has no {ARTIFACT}:{version}, or no digest of it{_published(root, path.parent)}",
                hint="take the libraries from an SDK of this version: `--from sdk`, or `--from` its folder",
            )
        http.download(url, part)
        _demand(part, known, http.public(url))
        _accept(part, path, cache)
    return path


def from_web(url: str, cache: Path, say: Say) -> Path:
    """The file at an address.

    Raises:
        UsageError: the address is bad, or the server refuses.
        MachineError: the network or disk failed.

    """
    from qnnci import http

    http.check_url(url)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", http.public(url).rpartition("/")[2])[-100:].lstrip(".") or "file"
    with _kept(cache, "https", url, name, say) as path:
        note = path.with_name(".validator")
        told = note.read_text(encoding="utf-8") if note.exists() else ""
        if digests.intact(path, cache) and (not told or http.unchanged(url, told)):
            return path
        say(f"downloading {http.public(url)}")
        part = path.with_name(".part")
        validator = http.download(url, part)
        _accept(part, path, cache)
        files.write_text(note, validator)
    return path


@contextlib.contextmanager
def _kept(cache: Path, kind: str, identity: str, name: str, say: Say) -> Iterator[Path]:
    """Where a download is kept, held by this process alone meanwhile."""
    folder = cache / "runtime-libs" / kind / hashlib.sha256(identity.encode()).hexdigest()
    with files.disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder.with_suffix(".lock"), waiting=lambda: say(f"another process downloads {name}: waiting")):
        yield folder / name


def _pip(member: wheel.Member, path: Path, platform: str) -> None:
    first: QnnciError | None = None
    for python in _PYTHONS:
        target = (f"--platform={platform}", f"--python-version={python}", "--implementation=cp")
        try:
            wheel.download(member, path, target=target)
        except UsageError as error:
            first = first or error
        else:
            return
    raise UsageError(
        f"pip finds no wheel {member.requirement} for {platform}",
        hint=f"{first.hint if first else ''}; else take the libraries from an SDK: `--from sdk`".lstrip("; "),
    ) from first


def _digest(url: str, kind: str, folder: Path) -> str:
    """The digest that a repository tells, in lower case; "" where it tells none."""
    text = _text(url, folder)
    match = re.match(r"\s*([0-9a-fA-F]+)\b", text)
    return (
        match[1].lower() if match and len(match[1]) == 2 * hashlib.new(kind, usedforsecurity=False).digest_size else ""
    )


def _published(root: str, folder: Path) -> str:
    found = re.findall(r"<version>(\d+(?:\.\d+)+)</version>", _text(f"{root}/maven-metadata.xml", folder))
    return f"; it has {', '.join(found[-6:])}" if found else ""


def _text(url: str, folder: Path) -> str:
    """A small file of a repository; "" where there is none."""
    from qnnci import http

    part = folder / ".text"
    part.unlink(missing_ok=True)
    try:
        http.download(url, part)
        with part.open("rb") as file:
            return file.read(_NOTE_BYTES).decode("utf-8", "replace")
    except UsageError:
        return ""
    finally:
        part.unlink(missing_ok=True)


def _demand(part: Path, known: dict[str, str], where: str) -> None:
    for kind, digest in known.items():
        found = hashlib.new(kind, usedforsecurity=False)
        with part.open("rb") as file:
            while chunk := file.read(1 << 20):
                found.update(chunk)
        if found.hexdigest() != digest:
            part.unlink()
            raise UsageError(
                f"has {kind} {found.hexdigest()}, but the repository says {digest}",
                where=where,
                hint="run it again; if it stays so, the repository or a proxy changes the file: do not use it",
            )


def _accept(part: Path, path: Path, cache: Path) -> None:
    if not part.stat().st_size:
        part.unlink()
        raise MachineError(f"{path.name} came empty", hint="run it again")
    with files.disk_errors(path):
        files.commit(part, path)
    digests.remember(path, cache, files.sha256(path))
