"""The virtual environment of an export, and what runs in it. In workers only: all output goes to the stage's log."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from qnnci import files
from qnnci.errors import MachineError, UsageError
from qnnci.toolchain.sdk_venv import find_python
from qnnci.toolchain.worker import die_with_parent

# What a program needs of a machine. Tokens are not among it: an export gets those that the project file names.
_KEPT = {
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CACHE_HOME"),
    *("HF_HOME", "HF_ENDPOINT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
}
_COMPLETE = ".complete"
_LAST = 4  # lines
_LINE = 1 << 16  # bytes: a longer one is passed on in pieces
_FRAME = re.compile(r'[\s|]*File "([^"]{1,4096})", line (\d{1,9})\b')
_WIDE = 300  # characters of a line in a message


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended, and the last lines that it said."""

    code: int
    last: tuple[str, ...]
    traced: tuple[str, int] | None = None  # the file of ours, and its line, that a Python traceback ends in

    @property
    def said(self) -> str:
        return " | ".join(self.last) or "it said nothing"


def own_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def environment(environ: Mapping[str, str] = os.environ, *, settings_of: Sequence[str] = ()) -> dict[str, str]:
    """What of a machine's environment goes on to third-party code; `settings_of` are prefixes beside, such as PIP_."""
    prefixes = ("LC_", *settings_of)
    return {name: value for name, value in environ.items() if name in _KEPT or name.startswith(prefixes)}


def make(requirements: Path | None, python: str, base: Path, cache: Path) -> Path:
    """Make the virtual environment of these requirements where there is none yet; returns its folder.

    Raises:
        UsageError: there is no such requirements file.
        ToolMissing: no such Python, and none can be fetched.
        MachineError: pip cannot install the requirements.

    """
    text = b""
    if requirements:
        try:
            text = requirements.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read the export's requirements {requirements}: {error.strerror}") from error
    name = hashlib.sha256(f"{python}\n{sys.base_prefix}\n".encode() + text).hexdigest()[:32]
    folder = cache / "export-venv" / name
    with files.locked(folder.with_suffix(".lock"), waiting=lambda: _say("waiting for another process")):
        if not ((folder / _COMPLETE).is_file() and (folder / "bin" / "python").exists()):
            with files.disk_errors(folder):
                shutil.rmtree(folder, ignore_errors=True)
            interpreter = sys.executable if python == own_python() else str(_other(python, cache))
            _make(interpreter, folder, requirements, base)
            files.write_text(folder / _COMPLETE, "")
    return folder


def _other(python: str, cache: Path) -> Path:
    return find_python(cache, version=python, whose="the export's settings")


def _make(interpreter: str, folder: Path, requirements: Path | None, base: Path) -> None:
    env = {**environment(settings_of=("PIP_",)), "PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0", "PYTHONSAFEPATH": "1"}
    bare = () if requirements else ("--without-pip",)
    made = run([interpreter, "-m", "venv", *bare, str(folder)], cwd=base, env=env)
    if made.code:
        hint = f"does `{interpreter} -m venv DIR` work?"
        raise MachineError(f"no virtual environment for the export: {made.said}", hint=hint)
    if requirements:
        options = ("--disable-pip-version-check", "--no-input", "--progress-bar=off")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", *options, "--requirement", str(requirements)]
        done = run(pip, cwd=base, env=env)
        if done.code:
            errors = [line for line in done.last if line.lower().startswith("error")]
            raise MachineError(
                f"pip cannot install {requirements.name}: {(errors or [done.said])[-1]}",
                hint="see the stage's log under logs in the graph's folder; pip's own settings: `pip config list`",
            )


def command_environment(venv: Path, given: Mapping[str, str | None]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment of the command, and the values in it that no log may show.

    Raises:
        UsageError: a variable that is to be taken from this environment is not in it.

    """
    missing = [name for name, value in given.items() if value is None and name not in os.environ]
    if missing:
        hint = "set it, or give a value under `export: {env: …}`"
        raise UsageError(f"the export needs {', '.join(missing)} from the environment", hint=hint)
    passed = {name: os.environ[name] for name, value in given.items() if value is None}
    kept = environment()
    own = {
        "PATH": f"{venv / 'bin'}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "VIRTUAL_ENV": str(venv),
        "PYTHONUNBUFFERED": "1",
    }
    fixed = {name: value for name, value in given.items() if value is not None}
    return {**kept, **own, **fixed, **passed}, tuple(passed.values())


def run_command(
    argv: Sequence[str], *, base: str, env: Mapping[str, str | None], requirements: str, python: str, cache: str
) -> Ended:
    """Run a command of the repository in its environment, from the folder `base`.

    `env` holds no secret: a value of None is looked up here, where it goes to the command and nowhere else.

    Raises:
        UsageError, ToolMissing, MachineError: as `make`, `command_environment` and `run` do.

    """
    venv = make(Path(requirements) if requirements else None, python, Path(base), Path(cache))
    environment, secrets = command_environment(venv, env)
    return run(argv, cwd=Path(base), env=environment, secrets=secrets)


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], secrets: Sequence[str] = ()) -> Ended:
    """Run a program to its end, its output to our own with `secrets` struck out. The parent keeps the limits.

    Raises:
        UsageError: there is no such program.

    """
    _say(f"$ {shlex.join(argv)}")
    struck = [line.encode() for secret in secrets for line in secret.splitlines() if line.strip()]
    last: deque[str] = deque(maxlen=_LAST)
    traced = None
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - a worker has one thread
        )
    except OSError as error:
        hint = "a command of `export` is one program and its arguments; a shell's own words do not work there"
        raise UsageError(f"cannot run {argv[0]}: {error.strerror}", hint=hint) from error
    assert child.stdout is not None  # noqa: S101 - it was opened as a pipe
    with child.stdout:
        while line := child.stdout.readline(_LINE):
            for secret in struck:
                line = line.replace(secret, b"***")
            _write(line)
            traced = _traced(line, cwd) or traced
            if text := _plain(line):
                last.append(text)
    return Ended(child.wait(), tuple(last), traced)


def _traced(line: bytes, base: Path) -> tuple[str, int] | None:
    """The place that a line of a traceback names, if it is a file of the folder and of no package there."""
    found = _FRAME.match(line.decode("utf-8", "replace"))
    if found is None or not (file := file_of(found[1], base)) or "site-packages" in Path(file).parts:
        return None
    return file, int(found[2])


def file_of(word: str, base: Path) -> str:
    """The path from `base` of a file in it, empty where the word names none."""
    try:
        path = Path(os.path.realpath(base / word))
        inside = path.is_file() and path.is_relative_to(os.path.realpath(base))
    except (OSError, ValueError):
        return ""
    return os.path.relpath(path, os.path.realpath(base)) if inside else ""


def _say(text: str) -> None:
    _write(f"{text}\n".encode())


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _plain(line: bytes) -> str:
    """A line as it can stand in a message: what a terminal would show of it last, without control characters."""
    text = line.decode("utf-8", "replace").rstrip().rpartition("\r")[2]
    return "".join(char if char.isprintable() else " " for char in text).strip()[:_WIDE]
