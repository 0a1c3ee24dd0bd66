"""What a device is: its chip, its system, and where on it files may go. Readers of text are pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qnnci.device.link import Link
from qnnci.device.transport import Kind
from qnnci.errors import MachineError, UsageError
from qnnci.soc import Soc, find_soc

ANDROID_FOLDER = "/data/local/tmp"
_MEMORY = ("tmpfs", "ramfs")
# In the order of choice: where a board keeps files in memory, so that nothing is written to its flash.
_MEMORY_FOLDERS = ("/tmp", "/var/volatile/tmp", "/dev/shm", "/run")
_SCRIPT = """\
echo "== props"; getprop 2>/dev/null
for name in machine soc_id family; do
  echo "== $name"; cat /sys/devices/soc0/$name 2>/dev/null
done
echo "== compatible"; tr '\\0' '\\n' 2>/dev/null </proc/device-tree/compatible
echo "== board"; tr '\\0' '\\n' 2>/dev/null </proc/device-tree/model
echo "== release"; cat /etc/os-release 2>/dev/null
echo "== abi"; uname -m
echo "== mounts"; cat /proc/mounts 2>/dev/null
for folder in /data/local/tmp /tmp /var/volatile/tmp /dev/shm /run; do
  if [ -d $folder ] && [ -w $folder ]; then echo "== df $folder"; df -k $folder; fi
done
true"""
_VALIDATOR = """\
command -v qnn-platform-validator >/dev/null || exit 0
mkdir -p {folder} && qnn-platform-validator --backend dsp --coreVersion --targetPath {folder}
rm -rf {folder}"""


@dataclass(frozen=True, slots=True)
class About:
    """What a device says of itself; text is empty where it does not say.

    `chips` are the names by which it may be known, the best first; `arch` is the dsp arch that the platform validator
    reports, 0 without one. `soc_id` is the kernel's own number, which is none of QNN's. `folder` is where files may go,
    with `free_bytes`; empty where nothing fits.
    """

    kind: Kind
    model: str
    maker: str
    system: str
    abi: str
    chips: tuple[str, ...]
    chip_maker: str
    soc_id: str
    arch: int
    folder: str
    free_bytes: int


def read(link: Link) -> About:
    """Ask a device for all of it.

    Raises:
        QnnciError: as `Link.ask`.

    """
    told = sections(link.tell(_SCRIPT))
    about = described(told, link.transport.kind)
    if about.kind == "adb" or not about.folder:
        return about
    said = link.ask(_VALIDATOR.format(folder=f"{about.folder}/qnnci-validator"), timeout=120).output
    return described({**told, "validator": said}, about.kind)


def sections(text: str) -> dict[str, str]:
    """What stands below each line `== NAME`."""
    found: dict[str, str] = {}
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        found[name.strip()] = rest.strip()
    return found


def described(told: Mapping[str, str], kind: Kind) -> About:
    """An About of the sections that a device printed. Never fails."""
    props = properties(told.get("props", ""))
    release = dict(re.findall(r'^(\w+)="?(.*?)"?$', told.get("release", ""), re.MULTILINE))
    android = props.get("ro.build.version.release", "")
    folder, free = _folder(told, kind)
    arch = re.search(r"\bHexagon Architecture V(\d{2,3})\b", told.get("validator", ""), re.IGNORECASE)
    return About(
        kind=kind,
        model=props.get("ro.product.model") or _line(told.get("board", "")),
        maker=props.get("ro.product.manufacturer", ""),
        system=f"Android {android}" if android else release.get("PRETTY_NAME", ""),
        abi=props.get("ro.product.cpu.abi") or _line(told.get("abi", "")),
        chips=tuple(dict.fromkeys(_chips(props, told))),
        chip_maker=props.get("ro.soc.manufacturer", ""),
        soc_id=_line(told.get("soc_id", "")),
        arch=int(arch[1]) if arch else 0,
        folder=folder,
        free_bytes=free,
    )


def properties(text: str) -> dict[str, str]:
    """What Android's `getprop` prints: `[name]: [value]`, where values may go over several lines."""
    found = re.findall(r"^\[([^\]\n]+)\]: \[(.*?)\]\r?$", text, re.MULTILINE | re.DOTALL)
    return {name: value.strip() for name, value in found}


def _chips(props: Mapping[str, str], told: Mapping[str, str]) -> Iterator[str]:
    """`ro.soc.model` (Android 12 and later), the kernel's name of the machine, and the device tree's `qcom,` names."""
    for name in (props.get("ro.soc.model", ""), _line(told.get("machine", ""))):
        if re.fullmatch(r"[\w-]{2,40}", name, re.ASCII) and not name.isdigit():
            yield name.upper()
    for line in told.get("compatible", "").splitlines():
        if match := re.fullmatch(r"qcom,([a-z]{2,4}\d{3,4}[a-z]{0,2})(?:-.*)?", line.strip()):
            yield match[1].upper()


def _folder(told: Mapping[str, str], kind: Kind) -> tuple[str, int]:
    if kind == "adb":
        return (ANDROID_FOLDER, free_bytes(told.get(f"df {ANDROID_FOLDER}", "")))
    mounts = mounted(told.get("mounts", ""))
    for folder in _MEMORY_FOLDERS:
        system, options = mounts.get(_mount_of(folder, mounts), ("", frozenset()))
        if f"df {folder}" in told and system in _MEMORY and "noexec" not in options:
            return folder, free_bytes(told[f"df {folder}"])
    return "", 0


def mounted(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Mount point → its file system and options, of /proc/mounts; a later mount hides an earlier one."""
    rows = [line.split() for line in text.splitlines()]
    return {row[1]: (row[2], frozenset(row[3].split(","))) for row in rows if len(row) > 3}  # noqa: PLR2004 - columns


def _mount_of(folder: str, mounts: Mapping[str, object]) -> str:
    above = [point for point in mounts if folder == point or folder.startswith(f"{point.rstrip('/')}/")]
    return max(above, key=len, default="")


def free_bytes(text: str) -> int:
    """The free space that `df -k` tells; a long device name may have pushed the figures to the next line."""
    match = re.search(r"\s(\d+)\s+\d+%(?:\s|$)", text)
    return int(match[1]) << 10 if match else 0


def _line(text: str) -> str:
    return text.strip().splitlines()[0].strip()[:80] if text.strip() else ""


def chip(about: About, named: str = "") -> Soc:
    """The chip of a device; `named` where the user knows it better.

    Raises:
        UsageError: it is not in the table, has no HTP, or the platform validator found another dsp arch.

    """
    if named:
        return find_soc(named)
    problems: list[UsageError] = []
    for name in about.chips:
        try:
            soc = find_soc(name)
        except UsageError as error:
            problems.append(error)
            continue
        if about.arch and about.arch != soc.arch:
            raise UsageError(
                f"the device calls itself {name} ({soc.dsp_arch}), but the platform validator found v{about.arch}",
                hint="name its chip with `--soc`",
            )
        return soc
    if problems and about.chips:
        others = f" by {about.chip_maker}" if about.chip_maker not in {"", "QTI", "Qualcomm"} else ""
        raise UsageError(f"the device's chip is {about.chips[0]}{others}: {problems[0].message}", hint=problems[0].hint)
    raise UsageError("the device does not say which chip it has", hint="name it with `--soc`")


def folder_for(about: About, needed: int, asked: str = "") -> str:
    """The folder to put files into, which has room for `needed` bytes.

    Raises:
        MachineError: there is none, or no room.
        UsageError: the folder that was asked for is none that can be named.

    """
    if asked:
        if not re.fullmatch(r"/[\w./-]{1,200}", asked, re.ASCII) or ".." in asked.split("/"):
            raise UsageError(f"{asked[:80]!r} is no folder of a device", hint="give an absolute path of plain letters")
        return asked.rstrip("/")
    if not about.folder:
        raise MachineError(
            "the device keeps none of its temporary folders in memory, and its flash is not written to unasked",
            hint="name a folder with `--folder`",
        )
    if about.free_bytes < needed:
        told = f"{about.folder} has {about.free_bytes >> 20} MB free, {(needed >> 20) + 1} MB are needed"
        raise MachineError(f"there is no space left on the device: {told}", hint="remove files, or name another folder")
    return about.folder
