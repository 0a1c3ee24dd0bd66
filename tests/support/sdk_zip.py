"""Small zips and folders with the layout of the vendor's SDK, whole or damaged as each test asks."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

VERSION = "2.40.0.251030"
# Path below the SDK's root → content; those in bin/ get run bits.
FILES: dict[str, bytes] = {
    "LICENSE.pdf": b"%PDF the terms",
    "QNN_NOTICE.txt": b"notice",
    "sdk.yaml": b"product: QAIRT\nversion: 2.40.0\nbuild_id: 251030114326_109251\n",
    "bin/envsetup.sh": b"exit 1\n",
    "bin/x86_64-linux-clang/qnn-onnx-converter": b"#!/usr/bin/env python3\nprint('converter')\n",
    "bin/x86_64-linux-clang/qnn-context-binary-generator": b"#!/bin/sh\necho generator\n",
    "bin/x86_64-windows-msvc/qnn-net-run.exe": b"MZ",
    "docs/index.html": b"<html>",
    "include/QNN/QnnTypes.h": b"#pragma once\n",
    "include/SNPE/SNPE.hpp": b"#pragma once\n",
    "lib/aarch64-android/libQnnHtp.so": b"\x7fELF android",
    "lib/hexagon-v73/unsigned/libQnnHtpV73Skel.so": b"\x7fELF v73",
    "lib/hexagon-v79/unsigned/libQnnHtpV79Skel.so": b"\x7fELF v79",
    "lib/python/qti/__init__.py": b"",
    "lib/x86_64-linux-clang/libQnnHtp.so": b"\x7fELF host",
    "lib/x86_64-linux-clang/libQnnHtpNetRunExtensions.so": b"\x7fELF extensions",
    "lib/x86_64-linux-clang/libQnnModelDlc.so": b"\x7fELF dlc",
    "lib/x86_64-linux-clang/libQnnSystem.so": b"\x7fELF system",
    "share/QNN/converter/jni/QnnModel.cpp": b"// model\n",
}


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2025, 10, 30, 11, 43, 26))
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def zipped(
    files: Mapping[str, bytes] = FILES,
    *,
    version: str = VERSION,
    more: Mapping[zipfile.ZipInfo, bytes] | None = None,
) -> bytes:
    """The bytes of an SDK's zip; `more` entries come as they are, beside the SDK's own."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            mode = 0o755 if name.startswith("bin/x86_64-linux") else 0o644
            archive.writestr(entry(f"qairt/{version}/{name}", stat.S_IFREG | mode), content)
        for info, content in (more or {}).items():
            archive.writestr(info, content)
    return out.getvalue()


def unpacked(folder: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """The same files as a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if name.startswith("bin/x86_64-linux") else 0o644)
    return folder
