"""Run-time libraries that are small and say what the vendor's say, as SDK, wheel and AAR; manifests that need them."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

from sdk import elf

from qnnci import manifest
from qnnci.manifest import Entry, Manifest, devices
from qnnci.soc import find_soc

BUILD = "2.49.0.260801123456"
LICENCE = b"%PDF the terms"
GLIBC = ("libc.so.6", "libstdc++.so.6")
BIONIC = ("libc.so", "libm.so", "liblog.so")


def entry(graph: str, soc: str, *, qairt: str = f"v{BUILD}", passed: bool = True) -> Entry:
    chip = find_soc(soc)
    return Entry(
        graph=graph, soc=chip.name, soc_id=chip.id, dsp_arch=chip.dsp_arch, precision="fp16", passed=passed,
        binary=f"{graph}-{soc}.bin", sha256="0" * 64, bytes=1, context_model="", graph_name=graph, route="ort",
        qairt=qairt, optimization=3, vtcm_bytes=None, spill_fill_bytes=None, const_bytes=None, op_data_bytes=None,
        io_bytes=None, inputs=(), outputs=(), source="g.onnx", source_sha256="0" * 64, license="MIT", parity=None,
        compile_seconds=1.0, compile_peak_mb=None, built_at="2026-01-01T00:00:00Z", built_by="test",
    )  # fmt: skip


def write_manifest(folder: Path, *entries: Entry, tools: Mapping[str, str] | None = None) -> Path:
    whole = Manifest(
        name="test", license="MIT", passed=True, tools=dict(tools or {}), targets=(), entries=entries,
        devices=devices(entries), findings=(),
    )  # fmt: skip
    path = folder / "manifest.json"
    manifest.save(path, whole)
    return path


def said(build: str) -> bytes:
    return f"\0v{build}\0".encode() if build else b""


def host(
    build: str = BUILD, *, machine: int = elf.AARCH64, align: int = 16384, needs: tuple[str, ...] = BIONIC
) -> bytes:
    return elf.linked(machine, needs, align=align, content=said(build))


def skel(build: str = BUILD) -> bytes:
    return elf.linked(elf.HEXAGON, ("libc++.so.1",), content=said(build))


def dll(build: str = BUILD, machine: int = 0xAA64) -> bytes:
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    return head + b"PE\0\0" + struct.pack("<H", machine) + bytes(32) + said(build)


def libraries(build: str = BUILD, arches: tuple[int, ...] = (73, 79)) -> dict[str, bytes]:
    """The files of an Android set by name. libQnnSystem says no build, as the real one does not."""
    made = {"libQnnHtp.so": host(build), "libQnnSystem.so": host(""), "libQnnHtpPrepare.so": host(build)}
    made |= {f"libQnnHtpV{arch}Stub.so": host(build, needs=(*BIONIC, "libcdsprpc.so")) for arch in arches}
    return made | {f"libQnnHtpV{arch}Skel.so": skel(build) for arch in arches}


def sdk(folder: Path, *, version: str = "2.49.0.260801", files: Mapping[str, bytes] | None = None) -> Path:
    """An SDK with these files for Android; skels go to the folders of their arch."""
    root = folder / "qairt" / version
    (root / "include").mkdir(parents=True)
    (root / "LICENSE.pdf").write_bytes(LICENCE)
    (root / "QNN_NOTICE.txt").write_text("notice\n")
    for name, content in (libraries() if files is None else files).items():
        place = root / "lib/aarch64-android"
        if "Skel" in name:
            place = root / f"lib/hexagon-v{name.removeprefix('libQnnHtpV').removesuffix('Skel.so')}/unsigned"
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    return root


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def aar(
    files: Mapping[str, bytes] | None = None, *, licence: bool = True, more: Mapping[str, bytes] | None = None
) -> bytes:
    inside = {f"jni/arm64-v8a/{name}": content for name, content in (libraries() if files is None else files).items()}
    inside |= {"AndroidManifest.xml": b"<manifest/>", "jni/armeabi-v7a/libQnnHtp.so": b"32 bits", **(more or {})}
    return zipped({**inside, **({"assets/LICENSE.pdf": LICENCE} if licence else {})})


def wheel(files: Mapping[str, bytes], qairt: str = "2.49.0", *, licence: bool = True) -> bytes:
    inside = {f"onnxruntime_qnn/{name}": content for name, content in files.items()}
    info = f"import nothing_that_is_there\nqnn_version = '{qairt}'\nraise SystemExit('it was run')\n"
    inside |= {"onnxruntime_qnn/build_and_package_info.py": info.encode(), "onnxruntime_qnn/LICENSE": b"MIT"}
    return zipped({**inside, **({"onnxruntime_qnn/Qualcomm_LICENSE.pdf": LICENCE} if licence else {})})


def maven_files(content: bytes, version: str = "2.49.0") -> dict[str, bytes]:
    """The files of a repository by path, digests in the forms that repositories have them in."""
    path = f"/com/qualcomm/qti/qnn-runtime/{version}/qnn-runtime-{version}.aar"
    return {
        path: content,
        f"{path}.sha1": hashlib.sha1(content, usedforsecurity=False).hexdigest().upper().encode(),
        f"{path}.md5": f"{hashlib.md5(content, usedforsecurity=False).hexdigest()}  {path[1:]}\n".encode(),
        f"{path}.sha256": hashlib.sha256(content).hexdigest().encode(),
        "/com/qualcomm/qti/qnn-runtime/maven-metadata.xml": b"<metadata><version>2.45.0</version></metadata>",
    }
