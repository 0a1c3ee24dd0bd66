"""Which run-time libraries the binaries of a manifest need: by platform, dsp arch and QAIRT version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from qnnci.errors import UsageError
from qnnci.manifest import Manifest
from qnnci.soc import find_soc

Role = Literal["host", "dsp", "signature"]
_BUILD = re.compile(r"v?(\d+\.\d+\.\d+)(?:\.(\d+)\w*)?(?:-[\w-]+)?")


@dataclass(frozen=True, slots=True)
class Platform:
    """Names of the libraries on one platform. `{}` stands for the number of a dsp arch.

    `sdk` are patterns of folders below an SDK's lib, the best last in the order of their numbers; `wheel` is pip's tag
    of the onnxruntime-qnn wheel, empty where there is none. `system` is what the platform itself has to load.
    """

    name: str
    always: tuple[str, ...]
    prepare: str
    stub: str
    sdk: tuple[str, ...]
    wheel: str
    system: frozenset[str]
    signature: str = ""
    skel: str = "libQnnHtpV{}Skel.so"


_BIONIC = ("libc", "libm", "libdl", "liblog", "libstdc++", "libc++_shared", "libandroid", "libz", "libcdsprpc")
_GLIBC = (
    "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libstdc++.so.6", "libgcc_s.so.1",
    "libatomic.so.1", "ld-linux-aarch64.so.1", "libcdsprpc.so", "libcdsprpc.so.1",
)  # fmt: skip
DSP_SYSTEM = frozenset(("libc++.so.1", "libc++abi.so.1", "libc.so", "libgcc.so", "libm.so"))

PLATFORMS: Mapping[str, Platform] = {
    each.name: each
    for each in (
        Platform(
            name="android",
            always=("libQnnHtp.so", "libQnnSystem.so"),
            prepare="libQnnHtpPrepare.so",
            stub="libQnnHtpV{}Stub.so",
            sdk=("aarch64-android",),
            wheel="",
            system=frozenset(f"{name}.so" for name in _BIONIC),
        ),
        Platform(
            name="linux-aarch64",
            always=("libQnnHtp.so", "libQnnSystem.so"),
            prepare="libQnnHtpPrepare.so",
            stub="libQnnHtpV{}Stub.so",
            sdk=("aarch64-ubuntu-gcc*", "aarch64-oe-linux-gcc*"),
            wheel="manylinux_2_34_aarch64",
            system=frozenset(_GLIBC),
        ),
        Platform(
            name="windows-arm64",
            always=("QnnHtp.dll", "QnnSystem.dll"),
            prepare="QnnHtpPrepare.dll",
            stub="QnnHtpV{}Stub.dll",
            sdk=("aarch64-windows-msvc",),
            wheel="win_arm64",
            system=frozenset(),
            signature="libqnnhtpv{}.cat",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One library; `arch` is the number of the dsp arch that it is for, 0 for every one."""

    name: str
    role: Role
    arch: int = 0

    @property
    def required(self) -> bool:
        """Windows wants some skels signed beside themselves; where the vendor has no signature, none is needed."""
        return self.role != "signature"


@dataclass(frozen=True, slots=True)
class Need:
    """What binaries want of their run time: three-part `version`, whole `builds`, and the chips of each dsp arch."""

    version: str
    builds: tuple[str, ...]
    socs: Mapping[int, tuple[str, ...]]


def need(manifest: Manifest, socs: Sequence[str] = ()) -> Need:
    """What the binaries that passed want; where chips are named, those for these alone.

    Raises:
        UsageError: none passed, or none for a chip that was named; one is for a chip or of a QAIRT that is none; they
            are of several versions of QAIRT.

    """
    chosen = {find_soc(name).name for name in socs}
    passed = [entry for entry in manifest.entries if entry.passed and (not chosen or entry.soc in chosen)]
    if lacking := sorted(chosen - {entry.soc for entry in passed}):
        raise UsageError(f"no binary for {', '.join(lacking)} in the manifest passed", hint="see the build's findings")
    if not passed:
        raise UsageError("no binary in the manifest passed, so none needs libraries", hint="see the build's findings")
    versions: dict[str, list[str]] = {}
    chips: dict[int, dict[str, None]] = {}
    for entry in passed:
        parts = parted(entry.qairt)
        if parts is None:
            raise UsageError(f"{entry.graph} for {entry.soc} is of QAIRT {entry.qairt[:80]!r}, which is no version")
        versions.setdefault(parts[0], []).append(f"{entry.graph} for {entry.soc}")
        chips.setdefault(find_soc(entry.soc).arch, {})[entry.soc] = None
    if len(versions) > 1:
        told = "; ".join(f"{version}: {few(names)}" for version, names in sorted(versions.items()))
        raise UsageError(
            f"the binaries are of several versions of QAIRT, and one app loads one: {told}",
            hint="compile all of them with one version, or name a manifest of one",
        )
    builds = tuple(dict.fromkeys(entry.qairt.removeprefix("v") for entry in passed))
    return Need(next(iter(versions)), builds, {arch: tuple(names) for arch, names in sorted(chips.items())})


def parted(text: str) -> tuple[str, str] | None:
    """Three-part version and build of `v2.51.0.260929181845`, the build "" where it has none; None if it is neither."""
    match = _BUILD.fullmatch(text)
    return (match[1], match[2] or "") if match else None


def wanted(platform: Platform, needed: Need, *, prepare: bool) -> tuple[Wanted, ...]:
    """Every library that is looked for; `prepare` where graphs are compiled on the device too."""
    names = (*platform.always, platform.prepare) if prepare else platform.always
    made = [Wanted(name, "host") for name in names]
    for arch in needed.socs:
        made.append(Wanted(platform.stub.format(arch), "host", arch))
        made.append(Wanted(platform.skel.format(arch), "dsp", arch))
        if platform.signature:
            made.append(Wanted(platform.signature.format(arch), "signature", arch))
    return tuple(made)


def few(names: Sequence[str]) -> str:
    """The first three names, and how many more there are."""
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
