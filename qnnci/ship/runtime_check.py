"""What speaks against run-time libraries: for another machine or QAIRT, small pages, others that they lack."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qnnci.findings import Finding
from qnnci.rules import finding
from qnnci.ship.runtime_set import DSP_SYSTEM, Need, Platform, Role, Wanted, few, parted
from qnnci.ship.runtime_shelf import Shelf
from qnnci.toolchain import elf, pe

# Qualcomm's libraries carry the build that they are of, such as v2.51.0.260929181845, as text.
_BUILD = re.compile(rb"(?<![\w.])v(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{6,14})(?:_\d{1,10})?(?![\w.])")
_DATE = 6  # digits of a build that an SDK's version has: 260929
_MACHINES = {
    elf.AARCH64: "AArch64",
    elf.HEXAGON: "Hexagon",
    62: "x86-64",
    3: "x86",
    40: "32-bit Arm",
    pe.ARM64: "ARM64",
}
_MACHINES |= {0x8664: "x64 or ARM64EC", 0x14C: "x86"}


@dataclass(frozen=True, slots=True)
class Library:
    """One library where it lies; `builds` are the QAIRT builds that it says, mostly one or none."""

    name: str
    role: Role
    arch: int
    path: Path
    builds: tuple[str, ...]


def library(wanted: Wanted, path: Path) -> Library:
    return Library(wanted.name, wanted.role, wanted.arch, path, builds_in(path))


def builds_in(path: Path) -> tuple[str, ...]:
    """The builds that a library says it is of, as text in it."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return ()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return tuple(sorted({match.decode() for match in _BUILD.findall(data)}))


def whole_version(libraries: Iterable[Library], shelf: Shelf) -> str:
    """The version of a set: four parts, the last the date, as SDKs are called; three where nothing tells the build."""
    said = sorted({build for each in libraries for build in each.builds})
    claim = shelf.claim.partition("-")[0]
    if not said or claim.count(".") == said[0].count("."):
        return claim
    version, _, build = said[-1].rpartition(".")
    return f"{version}.{build[:_DATE]}"


def findings(platform: Platform, libraries: Sequence[Library], shelf: Shelf, needed: Need) -> list[Finding]:
    """Everything that speaks against these libraries, for these binaries on this platform."""
    names = {each.name for each in libraries}
    found = [each for library in libraries for each in _machine(platform, library)]
    for each in libraries:
        if each.role == "host" and platform.name == "android":
            hint = "take a newer QAIRT, and compile with it too; apps for Android 15 need libraries with 16 KB pages"
            found += [replace(problem, hint=hint) for problem in elf.page_size_findings(each.path)]
        found += _needed(platform, each, names)
    return [*found, *_version(libraries, shelf, needed)]


def missing(platform: Platform, libraries: Iterable[Wanted], shelf: Shelf, needed: Need) -> list[Finding]:
    """A finding for each chip whose libraries are not there, and one for those that every chip needs."""
    have = ", ".join(f"v{arch}" for arch in shelf.arches(platform)) or "no dsp arch at all"
    lacking: dict[int, list[str]] = {}
    for each in shelf.lacks(libraries):
        lacking.setdefault(each.arch, []).append(each.name)
    found = []
    for arch, names in lacking.items():
        message = f"{shelf.where} has no {' and no '.join(names)}"
        hint = f"name another source with `--from`, or check that it is for {platform.name}"
        if arch:
            message += f"; it is for {have}"
            hint = (
                f"an SDK {needed.version} that knows v{arch} has them: `--from` its folder; or `--soc` for other chips"
            )
        chips = needed.socs[arch] if arch else ("",)
        found += [finding("runtime-missing", message, hint=hint, soc=soc) for soc in chips]
    return found


def _machine(platform: Platform, library: Library) -> list[Finding]:
    if library.role == "signature":
        return []
    dll = library.name.endswith(".dll")
    want = elf.HEXAGON if library.role == "dsp" else pe.ARM64 if dll else elf.AARCH64
    read = None if dll else elf.read(library.path)
    if isinstance(read, str):
        return [finding("runtime-machine", f"{library.name} is not read as an ELF library: {read}")]
    machine = read.machine if read else pe.machine(library.path)
    if machine == want:
        return []
    if machine is None:
        return [finding("runtime-machine", f"{library.name} is no Windows library")]
    name = _MACHINES.get(machine, f"machine {machine}")
    return [finding("runtime-machine", f"{library.name} is for {name}, {platform.name} needs it for {_MACHINES[want]}")]


def _needed(platform: Platform, library: Library, names: set[str]) -> list[Finding]:
    read = elf.read(library.path) if library.name.endswith(".so") else ""
    if isinstance(read, str):
        return []
    system = DSP_SYSTEM if library.role == "dsp" else platform.system
    lacking = sorted({each for each in read.needed if each not in system and each not in names})
    return [finding("runtime-needed", f"{library.name} needs {name}, which is not among them") for name in lacking]


def _version(libraries: Sequence[Library], shelf: Shelf, needed: Need) -> list[Finding]:
    """Stub and skel refuse each other across builds, and binaries load into their own version only."""
    claim = parted(shelf.claim)
    builds = {build for each in libraries for build in each.builds}
    if claim and not builds and claim[0] != needed.version:
        return [_other(shelf.where, claim[0], needed)]
    if not claim and not builds:
        return [finding("runtime-version", f"nothing in {shelf.where} says of which QAIRT it is")]
    others: dict[str, list[str]] = {}
    for each in libraries:
        if each.builds and needed.version not in {build.rpartition(".")[0] for build in each.builds}:
            others.setdefault(each.builds[-1], []).append(each.name)
    if others:
        return [_other(few(names), build, needed) for build, names in others.items()]
    single = {each.builds[0]: each.name for each in libraries if len(each.builds) == 1}
    if len(single) > 1:
        told = ", ".join(f"{name} of {build}" for build, name in sorted(single.items()))
        return [finding("runtime-version", f"the libraries are of different builds: {told}")]
    apart = [each for each in needed.builds if single and not _same_build(each, next(iter(single)))]
    if apart:
        message = f"the libraries are of build {next(iter(single))}, the binaries of {', '.join(apart)}"
        return [finding("runtime-build", message)]
    return []


def _other(name: str, version: str, needed: Need) -> Finding:
    return finding("runtime-version", f"not of the binaries' QAIRT {needed.version}, but of {version}: {name}")


def _same_build(one: str, other: str) -> bool:
    """Whether two builds are one; what is cut short at the date, or says none, may be."""
    builds = [(parted(text) or ("", ""))[1] for text in (one, other)]
    return builds[0].startswith(builds[1]) or builds[1].startswith(builds[0])
