"""Make a stand-in SDK in a folder: `python -m sdk.make FOLDER [VERSION]`, or `make` from a test."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from sdk import elf
from sdk.entry import TOOLS
from sdk.kit import minor

VERSION = "2.40.0.251030-standin"
ARCHES = (68, 69, 73, 75, 79, 81)
_HOST = "x86_64-linux-clang"
_LIBRARIES = (
    "libQnnHtp.so", "libHtpPrepare.so", "libQnnSystem.so", "libQnnHtpNetRunExtensions.so", "libQnnIr.so",
    "libQnnSaver.so",
)  # fmt: skip
_ANDROID = (
    "libQnnHtp.so", "libQnnHtpPrepare.so", "libQnnSystem.so", "libQnnHtpNetRunExtensions.so", "libQnnModelDlc.so",
)  # fmt: skip
_SCRIPT = """\
#!{python}
import os
import sys

# The tools' own Python may have nothing of what the stand-in needs.
if sys.prefix != {prefix!r}:
    os.execv({python!r}, [{python!r}, __file__, *sys.argv[1:]])
sys.path[:0] = {paths!r}
from pathlib import Path

from sdk.entry import main

sys.exit(main({tool!r}, Path(__file__).resolve().parents[2]))
"""
_TEXTS = {
    "LICENSE.pdf": "%PDF-1.4\n% a stand-in: it licenses nothing\n",
    "QAIRT_ReleaseNotes.txt": "A stand-in for tests; nothing in it comes from the real SDK.\n",
    "QNN_README.txt": "A stand-in for tests.\n",
    "NOTICE.txt": "A stand-in for tests.\n",
    "include/QNN/QnnInterface.h": "/* stand-in */\n",
    "include/QNN/QnnTypes.h": "/* stand-in */\n",
    "include/QNN/HTP/QnnHtpDevice.h": "/* stand-in */\n",
    "lib/python/qti/aisw/converters/__init__.py": "",
    "share/QNN/converter/jni/Android.mk": "LOCAL_PATH := $(call my-dir)\nLOCAL_LDLIBS := -lGLESv2 -lEGL\n",
    "share/QNN/converter/jni/Application.mk": "APP_ABI := arm64-v8a\nAPP_STL := c++_static\n",
    "share/QNN/converter/jni/QnnModel.cpp": "// stand-in\n",
    "share/QNN/converter/Makefile.linux-x86_64": "CXX ?= clang++\n",
    "bin/check-linux-dependency.sh": "#!/bin/bash\necho 'Done!!'\n",
    "bin/check-python-dependency": f"#!{sys.executable}\nprint('[INFO] Python Version OK')\n",
}
_ENVSETUP = """\
#!/bin/bash
if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
  echo "[ERROR] This file should be run with 'source'"
  exit 1
fi
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export QNN_SDK_ROOT="$root"
export PYTHONPATH="$root/lib/python/${PYTHONPATH:+:$PYTHONPATH}"
export PATH="$root/bin/x86_64-linux-clang:$PATH"
export LD_LIBRARY_PATH="$root/lib/x86_64-linux-clang${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
echo "[INFO] AISW SDK environment set"
echo "[INFO] QNN_SDK_ROOT: $QNN_SDK_ROOT"
"""


def make(root: Path, version: str = VERSION, *, arches: Sequence[int] = ARCHES, fail: str = "") -> Path:
    """Write `<root>/qairt/<version>` and return it.

    `fail` lists with commas what shall be missing: paths under the SDK (`lib/hexagon-v81`,
    `bin/x86_64-linux-clang/qairt-quantizer`).

    Raises:
        ValueError: the version is not that of a stand-in.

    """
    minor(version)
    sdk = root / "qairt" / version
    for name, text in {**_TEXTS, "bin/envsetup.sh": _ENVSETUP, "sdk.yaml": _yaml(version)}.items():
        _write(sdk / name, text, executable=name.startswith("bin/"))
    here = Path(__file__).resolve().parent.parent
    for tool in TOOLS:
        paths = [str(here), str(here.parent)]
        script = _SCRIPT.format(python=sys.executable, prefix=sys.prefix, paths=paths, tool=tool)
        _write(sdk / "bin" / _HOST / tool, script, executable=True)
    _host_libraries(sdk / "lib" / _HOST)
    for name in (*_ANDROID, *(f"libQnnHtpV{arch}Stub.so" for arch in arches)):
        elf.write(sdk / "lib/aarch64-android" / name, elf.AARCH64, align=16384)
    for arch in arches:
        for name in (f"libQnnHtpV{arch}Skel.so", f"libQnnHtpV{arch}.so"):
            elf.write(sdk / f"lib/hexagon-v{arch}/unsigned" / name, elf.HEXAGON)
    for name in filter(None, fail.split(",")):
        _remove(sdk / name)
    return sdk


def make_compilers(root: Path, *, ndk: str = "29.0.14206865") -> Path:
    """Write a `clang++` and an NDK's `ndk-build` that only have to be found; returns their folder, for PATH."""
    folder = root / "compilers"
    for name in ("clang++", "ndk-build"):
        _write(folder / name, "#!/bin/sh\nexit 0\n", executable=True)
    _write(folder / "source.properties", f"Pkg.Desc = Android NDK\nPkg.Revision = {ndk}\n")
    return folder


def _yaml(version: str) -> str:
    three, _, build = version.rpartition(".")
    lines = {
        "product": "QAIRT",
        "version": three,
        "build_id": build,
        "sdk_flavor": "[default]",
        "onnx": "1.12.0",
        "android-ndk": "r26c",
    }
    return "# auto-generated, not version controlled\n" + "".join(f"{key}: {value}\n" for key, value in lines.items())


def _host_libraries(folder: Path) -> None:
    """Links to the compiler of the onnxruntime-qnn wheel, and to the C++ runtime that it brings along."""
    folder.mkdir(parents=True, exist_ok=True)
    elf.write(folder / "libQnnModelDlc.so", elf.X86_64)
    spec = importlib.util.find_spec("onnxruntime_qnn")
    if spec is None or spec.origin is None:
        raise RuntimeError("the stand-in's libraries are those of onnxruntime-qnn, which is not installed")
    wheel = Path(spec.origin).parent
    runtime = wheel.with_name("onnxruntime_qnn.libs")
    for path in (*(wheel / name for name in _LIBRARIES), *runtime.glob("*.so*")):
        link = folder / path.name
        if not link.is_symlink():
            link.symlink_to(path)


def _write(path: Path, text: str, *, executable: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if executable:
        path.chmod(0o755)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for each in path.iterdir():
            _remove(each)
        path.rmdir()
    else:
        path.unlink()


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), *sys.argv[2:3]))
