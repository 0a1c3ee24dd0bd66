"""Read a context binary through libQnnSystem. `inspect` is for everyone: the library crashes on damaged files.

As a program, `python -m qnnci.context.read ANSWERS FILE...` writes one line of JSON for each file to ANSWERS; standard
output is not used, for native libraries print there.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import mmap
import os
import platform
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from qnnci import process
from qnnci.context import abi
from qnnci.context.info import ContextInfo
from qnnci.context.sniff import cut_short, refuse_other_files
from qnnci.context.walk import walk
from qnnci.errors import MachineError, QnnciError, ToolCrashed, ToolMissing, UsageError
from qnnci.files import disk_errors
from qnnci.qnn_errors import NOT_SUPPORTED, SUCCESS, explain, public_code

_DAMAGED = "not a context binary, or damaged"
_AGAIN = "compile it again; of a download, compare the sha256 with the manifest"
_NEWER = f"{_AGAIN}; for a binary of a newer QAIRT, set QNN_SDK_ROOT to an SDK at least as new"
_ROOM = 1 << 30  # address space that the child may use beside the file's: Python and libraries take a fifth
_KINDS: dict[str, type[QnnciError]] = {
    kind.__name__: kind for kind in (UsageError, ToolMissing, ToolCrashed, MachineError)
}
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}

_create = ctypes.CFUNCTYPE(abi.U64, ctypes.POINTER(abi.POINTER))
_get_metadata = ctypes.CFUNCTYPE(abi.U64, abi.POINTER, abi.POINTER, abi.U64, ctypes.POINTER(abi.POINTER))
_get_binary_info = ctypes.CFUNCTYPE(
    abi.U64, abi.POINTER, abi.POINTER, abi.U64, ctypes.POINTER(abi.POINTER), ctypes.POINTER(abi.U64)
)
_free = ctypes.CFUNCTYPE(abi.U64, abi.POINTER)


def system_library() -> Path:
    """libQnnSystem.so of the SDK at QNN_SDK_ROOT, else of the installed onnxruntime-qnn, which is not imported.

    Raises:
        ToolMissing: neither is there.

    """
    root = os.environ.get("QNN_SDK_ROOT")
    if root:
        pattern = f"lib/{platform.machine()}-*/libQnnSystem.so"  # x86_64-linux-clang, aarch64-oe-linux-gcc11.2
        for library in sorted(Path(root).glob(pattern)):
            if "android" not in library.parent.name:
                return library
        raise ToolMissing(
            f"QNN_SDK_ROOT is {root}, which has no {pattern}",
            hint="point QNN_SDK_ROOT at the SDK's folder that holds `lib` and `include`, or unset it",
        )
    spec = importlib.util.find_spec("onnxruntime_qnn")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        library = Path(folder) / "libQnnSystem.so"
        if library.is_file():
            return library
    raise ToolMissing(
        "libQnnSystem.so is not installed",
        hint="`pip install onnxruntime-qnn` on x86_64 Linux with Python 3.11 or newer and glibc 2.35 or newer, "
        "or set QNN_SDK_ROOT to a QAIRT SDK",
    )


def inspect(path: Path, *, timeout: float = 60) -> ContextInfo:
    """What a context binary says of itself, read in a child process: no file can crash or stall the caller.

    Raises:
        UsageError: not a context binary, or one that is damaged.
        ToolMissing: no libQnnSystem.so.
        ToolCrashed: no answer within `timeout` seconds, or the child was killed from outside.

    """
    (answer,) = inspect_all([path], timeout=timeout)
    if isinstance(answer, QnnciError):
        raise answer
    return answer


def inspect_all(paths: Sequence[Path], *, timeout: float = 60) -> list[ContextInfo | QnnciError]:
    """`inspect` of many files, for each what it says or the error, by one child for as long as none crashes it."""
    found: list[ContextInfo | QnnciError] = []
    while len(found) < len(paths):
        try:
            refuse_other_files(paths[len(found)])  # what needs no child gets none
        except QnnciError as error:
            found.append(error)
        else:
            found += _ask(paths[len(found) :], timeout)
    return found


def _ask(paths: Sequence[Path], timeout: float) -> list[ContextInfo | QnnciError]:
    """Answers of one child, at least one, up to the file that it did not survive."""
    with disk_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="qnnci-") as folder:
        answers = Path(folder) / "answers"
        argv = [sys.executable, "-m", "qnnci.context.read", str(answers), *(str(path.absolute()) for path in paths)]
        end: process.Completed | ToolCrashed
        try:
            # Without PYTHONSAFEPATH, a json.py in the user's folder would be imported.
            end = process.run(argv, timeout=timeout, env={"PYTHONSAFEPATH": "1"})
        except ToolCrashed as error:
            end = error
        lines = answers.read_text(encoding="utf-8").splitlines(keepends=True) if answers.exists() else []
    found = [_answer(json.loads(line), path) for line, path in zip(lines, paths, strict=False) if line.endswith("\n")]
    if len(found) < len(paths):
        found.append(_not_survived(end, paths[len(found)], timeout))
    return found


def _not_survived(end: process.Completed | ToolCrashed, path: Path, timeout: float) -> QnnciError:
    if isinstance(end, ToolCrashed):
        return ToolCrashed(f"libQnnSystem did not read it within {timeout:.0f} s", hint=_AGAIN, where=str(path))
    if -end.code in _FAULTS:
        name = signal.Signals(-end.code).name
        return UsageError(f"{_DAMAGED}: libQnnSystem crashes on it ({name})", hint=_AGAIN, where=str(path))
    how = f"by {signal.Signals(-end.code).name}" if end.code < 0 else f"with exit code {end.code}"
    last = end.output.strip().splitlines()[-1:]
    return ToolCrashed(
        f"reading it ended {how}{': ' if last else ''}{''.join(last)}",
        hint="is the machine out of memory? Then free some and try again",
        where=str(path),
    )


def _answer(answer: dict[str, Any], path: Path) -> ContextInfo | QnnciError:
    if "info" in answer:
        return ContextInfo.from_json(answer["info"])
    error = answer["error"]
    return _KINDS[error["kind"]](error["message"], hint=error["hint"], where=str(path) if error["where"] else "")


def read_context(path: Path, library: Path | None = None) -> ContextInfo:
    """What a context binary says of itself, read in this process, which a damaged file may crash: see `inspect`.

    Raises:
        UsageError: not a context binary, or one that is damaged.
        ToolMissing: no libQnnSystem.so, or one that does not load.

    """
    size = refuse_other_files(path)
    functions = load_functions(library or system_library())
    # Copy-on-write: the deprecated call takes a writable buffer, and nothing is read that it does not touch.
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) as data:
        buffer = (ctypes.c_char * size).from_buffer(data)
        try:
            return query(functions, ctypes.addressof(buffer), size)
        except UsageError as error:
            if error.hint:  # it knows its cause; without one the bytes are at fault
                raise UsageError(error.message, hint=error.hint, where=str(path)) from error
            cut = cut_short(path)
            raise UsageError(
                f"{_DAMAGED}: {cut or error.message}", hint=_AGAIN if cut else _NEWER, where=str(path)
            ) from error
        finally:
            del buffer  # a map with a buffer on it does not close


def load_functions(library: Path) -> abi.Functions:
    """The function table of a libQnnSystem.so.

    Raises:
        ToolMissing: it does not load, or is another library.

    """
    try:
        get_providers = ctypes.CDLL(str(library)).QnnSystemInterface_getProviders
    except (OSError, AttributeError) as error:
        raise ToolMissing(
            f"{library} does not load: {error}",
            hint="is it for this machine, and are libc++1 and libc++abi1 installed?",
        ) from error
    providers, count = ctypes.POINTER(ctypes.POINTER(abi.Interface))(), abi.U32()
    get_providers.restype = abi.U64
    code = get_providers(ctypes.byref(providers), ctypes.byref(count))
    if code != SUCCESS or not count.value:
        raise ToolMissing(f"{library} offers no interface: {explain(code)}", hint="install it anew")
    return cast("abi.Functions", providers[0].contents.functions)


def query(functions: abi.Functions, data: int, size: int) -> ContextInfo:
    """Ask libQnnSystem about the `size` bytes at address `data`; all memory it lends is copied, then freed.

    Raises:
        UsageError: it refuses the bytes, or what it says cannot be.
        ToolCrashed: it does not even start.

    """
    handle, info = abi.POINTER(), abi.POINTER()
    code = _create(functions.create)(ctypes.byref(handle))
    if code != SUCCESS:
        raise ToolCrashed(f"libQnnSystem did not start: {explain(code)}", hint="install it anew")
    try:
        code = NOT_SUPPORTED
        if functions.get_metadata:
            code = _get_metadata(functions.get_metadata)(handle, data, size, ctypes.byref(info))
        if public_code(code) == NOT_SUPPORTED and functions.get_binary_info:
            ask = _get_binary_info(functions.get_binary_info)
            code = ask(handle, data, size, ctypes.byref(info), ctypes.byref(abi.U64()))
        if code != SUCCESS or not info.value:
            raise UsageError(f"libQnnSystem refuses it ({explain(code) if code else 'it says nothing'})")
        return walk(abi.BinaryInfo.from_address(info.value), size)
    finally:
        _free(functions.free)(handle)


def _limit_memory(files: list[Path]) -> None:
    """A garbage size must end this process, not the machine; a crash must not fill the disk with cores."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    largest = 0
    for file in files:
        with suppress(OSError):
            largest = max(largest, file.stat().st_size)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _ROOM + 4 * largest
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _try(path: Path) -> dict[str, Any]:
    try:
        return {"info": read_context(path).to_json()}
    except MemoryError:
        return _error(UsageError(f"{_DAMAGED}: its sizes exceed all memory", hint=_AGAIN, where=str(path)))
    except QnnciError as error:
        return _error(error)


def _error(error: QnnciError) -> dict[str, Any]:
    told = {"message": error.message, "hint": error.hint, "where": error.where}
    return {"error": {"kind": type(error).__name__, **told}}


def main(answers: str, *files: str) -> None:
    """One line of JSON for each file: {"info": ContextInfo} or {"error": {kind, message, hint, where}}."""
    paths = [Path(file) for file in files]
    _limit_memory(paths)
    with Path(answers).open("w", encoding="utf-8") as out:
        for path in paths:
            out.write(json.dumps(_try(path)) + "\n")
            out.flush()  # a crash on the next file must not take this answer with it


if __name__ == "__main__":
    main(*sys.argv[1:])
