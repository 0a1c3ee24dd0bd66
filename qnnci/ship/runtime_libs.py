"""From a manifest to the run-time libraries that its binaries need on a platform: found, judged and packed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qnnci import files
from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.rules import finding
from qnnci.ship import archive, folder, runtime_check, runtime_page, runtime_shelf, runtime_sources
from qnnci.ship.member import Member
from qnnci.ship.runtime_check import Library
from qnnci.ship.runtime_set import Wanted, wanted
from qnnci.ship.runtime_shelf import Shelf
from qnnci.ship.runtime_sources import Request

Layout = Literal["flat", "jniLibs"]
_NAMES: dict[Layout, str] = {"flat": "qnn-libs-{}", "jniLibs": "qnn-jniLibs-{}"}
_JNI = "jniLibs/arm64-v8a/"


@dataclass(frozen=True, slots=True)
class Settings:
    """How libraries are packed; `licence` is the vendor's, where the source does not bring it."""

    layout: Layout = "flat"
    prepare: bool = False
    licence: Path | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be written, as `name`; nothing is where findings are errors. `source` names where it came from."""

    name: str
    version: str
    source: str
    members: tuple[Member, ...]
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        return any(each.severity == "error" for each in self.findings)


def plan(request: Request, settings: Settings, scratch: Path) -> Planned:
    """Find the libraries and judge them. What comes out of zips is unpacked into `scratch`, which is there.

    Raises:
        UsageError: settings that do not go together, a source that cannot be used, no licence of the vendor's.
        ToolMissing: there is no such SDK, or no pip.
        MachineError: the network or disk failed.
        ToolCrashed: pip did not end.

    """
    if settings.layout == "jniLibs" and request.platform.name != "android":
        raise UsageError(f"layout jniLibs is for Android, not for {request.platform.name}", hint="`--layout flat`")
    if settings.licence and not settings.licence.is_file():
        raise UsageError(f"there is no file {settings.licence}", hint="`--license` names the vendor's licence file")
    libraries = wanted(request.platform, request.need, prepare=settings.prepare)
    shelf = runtime_sources.find(request, libraries)
    found = [finding("runtime-release", shelf.note)] if shelf.note else []
    found += runtime_check.missing(request.platform, libraries, shelf, request.need)
    taken = _taken(shelf, libraries, scratch)
    found += runtime_check.findings(request.platform, taken, shelf, request.need)
    found = [each.at(stage="runtime-libs") for each in found]
    version = runtime_check.whole_version(taken, shelf)
    planned = Planned(_NAMES[settings.layout].format(version), version, shelf.where, (), tuple(found))
    if planned.refused:
        return planned
    about = runtime_page.About(request.platform.name, settings.layout, version, shelf.where)
    return Planned(
        planned.name, version, shelf.where, _members(request, settings, shelf, taken, about, scratch), tuple(found)
    )


def write(planned: Planned, output: Path, kind: archive.Kind | Literal["folder"]) -> archive.Archive | Path:
    """Write an archive in which everything is in a folder of its name, or that folder itself.

    Raises:
        UsageError: the folder is there and was not written by this, or an archive would be too large.
        MachineError: no room on the disk.

    """
    if kind == "folder":
        return folder.write(output / planned.name, planned.members, mark=runtime_page.RECORD)
    path = output / f"{planned.name}.{kind}"
    return archive.write(path, [each.under(planned.name) for each in planned.members], kind)


def _taken(shelf: Shelf, libraries: Sequence[Wanted], scratch: Path) -> list[Library]:
    return [
        runtime_check.library(each, runtime_shelf.take(shelf.files[each.name], each.name, scratch))
        for each in libraries
        if each.name in shelf.files
    ]


def _members(
    request: Request,
    settings: Settings,
    shelf: Shelf,
    libraries: Sequence[Library],
    about: runtime_page.About,
    scratch: Path,
) -> tuple[Member, ...]:
    start = _JNI if settings.layout == "jniLibs" else ""
    named = {f"{start}{each.name}": each for each in libraries}
    made = [_hashed(name, each.path) for name, each in named.items()]
    made += [_hashed(name, path) for name, path in _papers(settings, shelf, scratch).items()]
    made.append(_digested(runtime_page.readme(about, libraries, request.need)))
    made.append(_digested(runtime_page.record(about, named, made, request.need)))
    return (*made, runtime_page.sums(made))


def _papers(settings: Settings, shelf: Shelf, scratch: Path) -> dict[str, Path]:
    """The vendor's licence and notices, which go wherever the libraries go."""
    if settings.licence:
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", settings.licence.name).lstrip(".") or "LICENSE"
        papers = {name: settings.licence}
    elif shelf.licence:
        place = shelf.licence
        name = place.name if isinstance(place, Path) else place.name.rpartition("/")[2]
        papers = {name: runtime_shelf.take(place, f"{name}.licence", scratch)}
    else:
        raise UsageError(
            "has no licence of the vendor's, without which the libraries may not be passed on",
            where=shelf.where,
            hint="take another source, or name the licence's file with `--license`",
        )
    notices = {name: runtime_shelf.take(place, name, scratch) for name, place in shelf.texts.items()}
    return {**notices, **papers}


def _hashed(name: str, path: Path) -> Member:
    return Member.of_file(name, path, sha256=files.sha256(path))


def _digested(member: Member) -> Member:
    """A text with its digest, for the sums."""
    return Member(member.name, member.size, data=member.data, sha256=hashlib.sha256(member.data).hexdigest())
