"""qnn-model-lib-generator: a C++ file and its weights become one shared library a target."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sdk import carry, elf, flags, says
from sdk.failures import Failures
from sdk.kit import Kit

TOOL = "qnn-model-lib-generator"
_PAGE, _BIG_PAGE = 4096, 16384
_NDK_WITH_BIG_PAGES = 28
_TARGETS = {
    "x86_64-linux-clang": (elf.X86_64, "clang++"),
    "aarch64-android": (elf.AARCH64, "ndk-build"),
    "aarch64-qnx": (elf.AARCH64, "aarch64-unknown-nto-qnx7.1.0-g++"),
    "aarch64-qos224": (elf.AARCH64, "aarch64-unknown-nto-qnx7.1.0-g++"),
    "aarch64-oe-linux-gcc11.2": (elf.AARCH64, "aarch64-oe-linux-g++"),
    "aarch64-oe-linux-gcc9.3": (elf.AARCH64, "aarch64-oe-linux-g++"),
    "aarch64-oe-linux-gcc8.2": (elf.AARCH64, "aarch64-oe-linux-g++"),
    "aarch64-ubuntu-gcc7.5": (elf.AARCH64, "aarch64-linux-gnu-g++"),
    "aarch64-ubuntu-gcc9.4": (elf.AARCH64, "aarch64-linux-gnu-g++"),
}


def main(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    given = flags.parser(TOOL, kit.minor, failures.values("forget")).parse_args(arguments)
    cpp, raws, output = Path(given.cpp), Path(given.bin) if given.bin else None, Path(given.output_dir)
    _check(cpp, raws, output)
    targets = [target for words in given.lib_targets for word in words for target in word.split()]
    targets = targets or ["x86_64-linux-clang", "aarch64-android"]
    unknown = [target for target in targets if target not in _TARGETS]
    if unknown:
        raise RuntimeError(f"Unsupported target(s): {','.join(unknown)}")
    says.library("INFO", f"Model cpp file path  : {cpp}")
    says.library("INFO", f"Model bin file path  : {raws or ''}")
    says.library("INFO", f"Library target       : {given.lib_targets or [[target] for target in targets]}")
    if raws is None:
        says.library("WARNING", "No bin file is provided: the library is built without weights")
    name = given.lib_name or (raws.stem if raws else "qnn_model")
    name = f"{'' if name.startswith('lib') else 'lib'}{name}{'' if name.endswith('.so') else '.so'}"
    made = carry.read_cpp(cpp)
    if raws is not None:
        made = carry.with_raws(made, raws)
    for target in targets:
        library = output / target / name
        if (end := failures.at_work(library)) is not None:
            return end
        _build(kit, target, library, made, too_big=failures.has("relocation"))
    return failures.at_end(0)


def _check(cpp: Path, raws: Path | None, output: Path) -> None:
    if not cpp.is_file():
        raise RuntimeError(f"Unable to find the model source file, invalid path: {cpp}")
    if cpp.suffix != ".cpp":
        raise RuntimeError(f"{cpp} is not a cpp model file")
    if raws is not None and not raws.is_file():
        raise RuntimeError(f"Unable to find the model bin file, invalid path: {raws}")
    if raws is not None and raws.suffix != ".bin":
        raise RuntimeError(f"{raws} is not a bin model file")
    if output.is_file():
        raise RuntimeError(f"{output} is a file, not a directory")


def _build(kit: Kit, target: str, library: Path, made: carry.Carried, *, too_big: bool) -> None:
    machine, compiler = _TARGETS[target]
    if shutil.which(compiler) is None:
        raise RuntimeError(f"Could not build target: {target}. Could not find compiler: {compiler}")
    work = Path(tempfile.mkdtemp(prefix="tmp_", dir=Path.cwd()))
    try:
        shutil.copytree(kit.root / "share/QNN/converter", work / "share")
        make = "ndk-build" if compiler == "ndk-build" else f'make CXX="{compiler}" -f Makefile.linux-x86_64'
        says.library("INFO", f"command : ['cd {work} && export QNN_MODEL_LIB_NAME={library.name} && {make}']")
        if too_big:
            says.library("ERROR", "rc : 2")
            says.library("ERROR", "stderr : ")
            says.plain("/usr/bin/ld: obj/binary/data.o: in function `loadWeights':")
            says.plain("QnnModel.cpp:(.text+0x1f2): relocation truncated to fit: R_X86_64_PC32 against `.data'")
            says.plain(f"make: *** [Makefile.linux-x86_64:97: {library.name}] Error 1")
            raise RuntimeError(f"Failed to compile model library for target: {target}")
        says.library("INFO", "rc : 0")
        align = _alignment(work / "share") if target == "aarch64-android" else _PAGE
        elf.write(library, machine, align=align, content=carry.packed(made))
        says.library("INFO", f"Target: {target}\tLibrary: {library.absolute()}")
    finally:
        shutil.rmtree(work)


def _alignment(sources: Path) -> int:
    """Pages of 16 KB where the makefiles ask the linker for them, or the NDK does by itself (r28 and newer)."""
    makefiles = [path.read_text(encoding="utf-8") for path in sources.rglob("*.mk")]
    # GNU make takes variables from MAKEFLAGS as from its command line, so over what a makefile sets.
    if any("max-page-size=16384" in text for text in (*makefiles, os.environ.get("MAKEFLAGS", ""))):
        return _BIG_PAGE
    ndk = Path(os.path.realpath(str(shutil.which("ndk-build")))).parent
    properties = ndk / "source.properties"
    revision = re.search(r"Revision *= *(\d+)", properties.read_text() if properties.is_file() else "")
    return _BIG_PAGE if revision and int(revision[1]) >= _NDK_WITH_BIG_PAGES else _PAGE
