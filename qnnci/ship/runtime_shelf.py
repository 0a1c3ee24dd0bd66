"""Where run-time libraries lie: a folder of an SDK, or a zip (a wheel, an AAR), which is never trusted."""

from __future__ import annotations

import ast
import re
import stat
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from qnnci.errors import UsageError
from qnnci.files import disk_errors
from qnnci.ship.runtime_set import Platform, Wanted
from qnnci.toolchain.sdk import Sdk
from qnnci.toolchain.sdk_archive import AGAIN, BROKEN, MOST_ENTRIES, is_safe

MOST_BYTES = 1 << 29  # of one library; the largest known has 90 MB
_CHUNK = 1 << 20
_PACKAGE, _JNI = "onnxruntime_qnn/", "jni/arm64-v8a/"
_INFO = f"{_PACKAGE}build_and_package_info.py"
_INFO_BYTES = 1 << 16
_AAR_LICENCE = re.compile(r"(?:.*/)?(?:qualcomm[_-]?)?licen[cs]e(?:\.(?:pdf|txt|md))?", re.IGNORECASE)
_UNREADABLE = (*BROKEN, ValueError, OSError)


@dataclass(frozen=True, slots=True)
class Zipped:
    """A file inside a zip."""

    archive: Path
    name: str
    size: int


Place = Path | Zipped


@dataclass(frozen=True, slots=True)
class Shelf:
    """Libraries by file name. `claim` is the version that the source says it is, empty where it says none.

    `where` names the source without paths of this machine. `texts` are notices that go with the libraries, `note` is
    what a user should know of the choice.
    """

    where: str
    claim: str
    files: Mapping[str, Place]
    licence: Place | None
    texts: Mapping[str, Place] = field(default_factory=dict)
    note: str = ""

    def lacks(self, libraries: Iterable[Wanted]) -> list[Wanted]:
        return [each for each in libraries if each.required and each.name not in self.files]

    def arches(self, platform: Platform) -> list[int]:
        """The dsp archs that it has stub and skel for."""
        pattern = re.compile(platform.skel.replace("{}", r"(\d+)"))
        found = sorted(int(match[1]) for name in self.files if (match := pattern.fullmatch(name)))
        return [arch for arch in found if platform.stub.format(arch) in self.files]


def of_sdk(sdk: Sdk, platform: Platform) -> Shelf:
    """What an SDK has for a platform; the newest toolchain's, where it has several."""
    files: dict[str, Place] = {}
    folders = [each for pattern in platform.sdk for each in sorted((sdk.root / "lib").glob(pattern), key=_numbers)]
    home = next((each for each in reversed(folders) if (each / platform.always[0]).is_file()), None)
    for folder in [*([home] if home else []), *(sdk.root / "lib").glob("hexagon-v*/unsigned")]:
        files |= {path.name: path for path in folder.iterdir() if path.is_file()}
    top = {path.name: path for path in sorted(sdk.root.glob("*")) if path.is_file()}
    notices: dict[str, Place] = {name: path for name, path in top.items() if re.fullmatch(r"(QNN_)?NOTICE\.txt", name)}
    return Shelf(f"QAIRT SDK {sdk.version}", sdk.version, files, top.get("LICENSE.pdf"), notices)


def of_zip(path: Path, where: str, claim: str = "") -> Shelf:
    """What a wheel of onnxruntime-qnn or an AAR has. A wheel's own word on its QAIRT comes before `claim`.

    Raises:
        UsageError: neither, cut short, or made to do harm; nothing has been written.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            _refuse_harm(where, infos)
            names = {info.filename: Zipped(path, info.filename, info.file_size) for info in infos}
            if _INFO in names:
                with archive.open(_INFO) as file:
                    told = _qnn_version(file.read(_INFO_BYTES))
                if not told:
                    raise UsageError(f"{_INFO} does not say of which QAIRT it is", where=where)
                return Shelf(where, told, _below(_PACKAGE, names), names.get(f"{_PACKAGE}Qualcomm_LICENSE.pdf"))
    except _UNREADABLE as error:
        raise UsageError(f"cannot be read as a zip: {str(error)[:200]}", where=where, hint=AGAIN) from error
    files = _below(_JNI, names)
    if not files:
        raise UsageError(
            "holds no run-time libraries",
            where=where,
            hint="give an SDK's folder, a wheel of onnxruntime-qnn for the platform, or the AAR of qnn-runtime",
        )
    # The vendor's own is a PDF wherever it is known; a text beside it may be of something else inside.
    licences = sorted((name for name in names if _AAR_LICENCE.fullmatch(name)), key=lambda name: name[-4:] != ".pdf")
    return Shelf(where, claim, files, names[licences[0]] if licences else None)


def take(place: Place, name: str, folder: Path) -> Path:
    """A path where the file lies: its own, or `folder/name`, to which it is unpacked.

    Raises:
        UsageError: it is damaged, or larger than any library.
        MachineError: the disk is full or refuses.

    """
    if isinstance(place, Path):
        return place
    target = folder / name
    try:
        with zipfile.ZipFile(place.archive) as archive, archive.open(place.name) as inside:
            _pour(inside, target)
    except _UNREADABLE as error:
        raise UsageError(
            f"damaged at {place.name}: {str(error)[:200]}", where=place.archive.name, hint=AGAIN
        ) from error
    return target


def _pour(inside: IO[bytes], target: Path) -> None:
    size = 0
    with disk_errors(target), target.open("xb") as file:
        while chunk := inside.read(_CHUNK):
            size += len(chunk)
            if size > MOST_BYTES:
                raise UsageError(f"{target.name} is larger than any library: it is refused")
            file.write(chunk)


def _below(folder: str, names: Mapping[str, Zipped]) -> dict[str, Place]:
    inside = {name.removeprefix(folder): place for name, place in names.items() if name.startswith(folder)}
    return {name: place for name, place in inside.items() if "/" not in name}


def _refuse_harm(where: str, infos: list[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    if len(infos) > MOST_ENTRIES:
        raise UsageError(f"has {len(infos)} entries: it is refused", where=where)
    for info in infos:
        name = info.orig_filename
        kind = stat.S_IFMT(info.external_attr >> 16)
        what = (
            "would land outside of its folder"
            if not is_safe(name)
            else "is there twice"
            if name in seen
            else "is no plain file"
            if kind not in (0, stat.S_IFREG)
            else "is larger than any library"
            if info.file_size > MOST_BYTES
            else ""
        )
        if what:
            raise UsageError(f"its entry {name[:100]!r} {what}: it is refused", where=where)
        seen.add(name)


def _qnn_version(source: bytes) -> str:
    """The value of `qnn_version = '2.51.0'`, read as text: nothing of a wheel is run."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if "qnn_version" in names and re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", node.value.value):
                return node.value.value
    return ""


def _numbers(path: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", path.name)]
