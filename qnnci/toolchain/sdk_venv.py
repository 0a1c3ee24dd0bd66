"""The SDK's tools' own Python: 3.10, which their compiled modules are built for, with what they import."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path

from qnnci import files, process
from qnnci.errors import MachineError, QnnciError, ToolCrashed, ToolMissing
from qnnci.toolchain.sdk import COMPLETE, venv_folder

PYTHON = "3.10"
UV = "uv==0.13.9"
_PROBE = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
_SECONDS = 1800.0
# The user's own modules and settings are not for a Python that runs others' tools.
_CLEAN = {"PYTHONSAFEPATH": "1", "PYTHONPATH": "", "PYTHONHOME": "", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0"}


def requirements() -> str:
    return (resources("qnnci") / "data" / "tools-requirements.txt").read_text(encoding="utf-8")


def digest() -> str:
    """What a complete venv is marked with: it is stale where the requirements have changed since."""
    return hashlib.sha256(requirements().encode()).hexdigest()


def is_current(folder: Path) -> bool:
    try:
        return (folder / COMPLETE).read_text(encoding="ascii") == digest()
    except (OSError, UnicodeError):
        return False


def make(
    version: str,
    cache: Path,
    *,
    env: Mapping[str, str] = os.environ,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Make the venv of an SDK's tools where there is no current one; returns its interpreter.

    It is built under its own name, since its scripts carry that, and counts only once it is marked complete.

    Raises:
        ToolMissing: no Python 3.10, and none can be fetched.
        MachineError: its packages cannot be installed.
        ToolCrashed: pip did not end.

    """
    folder = venv_folder(version, cache)
    with files.locked(folder.with_name(f"{folder.name}.lock"), waiting=lambda: say("waiting for another process")):
        if not is_current(folder):
            python = find_python(cache, env, say)
            say(f"installing what the SDK's tools import, with {python}")
            with files.disk_errors(folder):
                (folder / COMPLETE).unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
            _install(python, folder)
            files.write_text(folder / COMPLETE, digest())
    return folder / "bin" / "python"


def find_python(
    cache: Path,
    env: Mapping[str, str] = os.environ,
    say: Callable[[str], None] = lambda _: None,
    *,
    version: str = PYTHON,
    whose: str = "the SDK's tools",
) -> Path:
    """A CPython that can make venvs, 3.10 or another: from PATH, from pyenv, as uv knows it, else fetched by uv.

    Raises:
        ToolMissing: there is none, and uv cannot fetch it.

    """
    for python in _candidates(env, version):
        if _works(python, version):
            return python
    pythons = cache / "python"
    uv = _uv(cache, env, version, whose)
    settings = {**_CLEAN, "UV_PYTHON_INSTALL_DIR": str(pythons), "UV_NO_CONFIG": "1"}
    for fetch in (False, True):
        if fetch:
            say(f"fetching Python {version}")
            done = process.run([uv, "python", "install", "--no-bin", version], timeout=_SECONDS, env=settings)
            if done.code:
                break
        found = process.run([uv, "python", "find", "--no-project", version], timeout=60, env=settings)
        python = Path((found.output.strip().splitlines() or [""])[-1])
        if found.code == 0 and _works(python, version):
            return python
    raise ToolMissing(
        f"{whose} need Python {version}, which is not on this machine, and uv cannot fetch it: {_last(done.output)}",
        hint=f"install it (`apt-get install python{version}-venv`, or pyenv), or set UV_PYTHON_INSTALL_MIRROR to "
        "where it can be had",
    )


def version_of(python: Path) -> str:
    """`3.10` of an interpreter, empty where it does not run."""
    try:
        done = process.run([str(python), "-c", _PROBE], timeout=60, env=_CLEAN)
    except (QnnciError, OSError):
        return ""
    return done.output.strip() if done.code == 0 else ""


def _works(python: Path, version: str = PYTHON) -> bool:
    return python.is_file() and version_of(python) == version


def _candidates(env: Mapping[str, str], version: str = PYTHON) -> Iterator[Path]:
    name = f"python{version}"
    if found := shutil.which(name, path=env.get("PATH", os.defpath)):
        yield Path(found)
    # pyenv's own stub on PATH refuses where another version is the chosen one.
    pyenv = Path(env.get("PYENV_ROOT") or Path(env.get("HOME") or "/") / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"), reverse=True)


def _uv(cache: Path, env: Mapping[str, str], version: str, whose: str) -> str:
    """The machine's uv, else one that pip brings from the package index into the cache."""
    if found := shutil.which("uv", path=env.get("PATH", os.defpath)):
        return found
    folder = cache / "uv"
    uv = folder / "bin" / "uv"
    with files.locked(folder.with_name("uv.lock")):
        if not uv.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            try:
                _pip(Path(sys.executable), "--no-deps", "--only-binary=:all:", f"--target={folder}", UV)
            except (MachineError, ToolCrashed) as error:
                raise ToolMissing(
                    f"{whose} need Python {version}, which is not on this machine, and there is no uv to "
                    f"fetch it: {error.message}",
                    hint=f"install Python {version} (`apt-get install python{version}-venv`, or pyenv), or uv",
                ) from error
    return str(uv)


def _install(python: Path, folder: Path) -> None:
    done = process.run([str(python), "-m", "venv", str(folder)], timeout=_SECONDS, env=_CLEAN)
    if done.code:
        raise MachineError(
            f"no virtual environment at {folder}: {_last(done.output)}", hint=f"does `{python} -m venv DIR` work?"
        )
    source = resources("qnnci") / "data" / "tools-requirements.txt"
    with as_file(source) as path:
        _pip(folder / "bin" / "python", "--require-hashes", "--only-binary=:all:", "--requirement", str(path))


def _pip(python: Path, *arguments: str) -> None:
    """Install by the user's own pip configuration: indexes, proxies and certificates are set there."""
    options = ("--disable-pip-version-check", "--no-input", "--progress-bar=off")
    done = process.run([str(python), "-m", "pip", "install", *options, *arguments], timeout=_SECONDS, env=_CLEAN)
    if done.code:
        raise MachineError(
            f"pip cannot install what the SDK's tools need: {_last(done.output)}",
            hint="check the network and pip's index settings (`pip config list`); run it again to go on",
        )


def _last(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["it says nothing"])[-1][:300]
