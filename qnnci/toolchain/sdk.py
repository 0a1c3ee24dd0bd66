"""A QAIRT SDK on this machine: which one it is, what is in it, and the environment that its tools want.

The layout is that of the vendor's zips, `qairt/<version>/{bin,lib,include,share}`, the same since 2.22.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import ToolMissing, UsageError
from qnnci.files import default_cache
from qnnci.toolchain.tools import HOST

DEFAULT_VERSION = "2.40.0.251030"
VERSION = r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(?:-[A-Za-z0-9_-]+)?"  # four parts; what follows a hyphen is carried along
COMPLETE = ".complete"  # stands in a venv that is whole
_YAML_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Sdk:
    """One SDK: `root` holds lib/ and include/, `version` is its four-part version with any suffix."""

    root: Path
    version: str

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version without its suffix, to compare with: (2, 40, 0, 251030)."""
        return tuple(int(part) for part in self.version.partition("-")[0].split("."))

    def tool(self, name: str) -> Path:
        """Path of a command-line tool.

        Raises:
            ToolMissing: this SDK has no such tool.

        """
        return self._file(self.root / "bin" / HOST / name, f"no tool {name}")

    def command(self, name: str, python: Path | None = None) -> tuple[str, ...]:
        """How a tool is started: the Python ones by the tools' own Python, the others as they are.

        Raises:
            ToolMissing: this SDK has no such tool, or it is a Python one and there is no Python for it.

        """
        path = self.tool(name)
        with path.open("rb") as file:
            first = file.readline(200)
        if not re.match(rb"#!.*\bpython", first):
            return (str(path),)
        return (str(python or self.interpreter()), str(path))

    def library(self, name: str, target: str = HOST) -> Path:
        """Path of a library for a target; `hexagon-v79` finds those of the DSP.

        Raises:
            ToolMissing: this SDK has no such library.

        """
        folder = self.root / "lib" / target
        return self._file(folder / "unsigned" / name if target.startswith("hexagon-") else folder / name, f"no {name}")

    def environment(self, python: Path | None = None, env: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What the SDK's envsetup.sh sets (2.25), over `env`; `python` is the interpreter of the tools' venv."""
        folders = [*([str(python.parent)] if python else []), str(self.root / "bin" / HOST)]
        set_here = {
            "QNN_SDK_ROOT": str(self.root),
            "PATH": _joined(*folders, env.get("PATH", os.defpath)),
            "LD_LIBRARY_PATH": _joined(str(self.root / "lib" / HOST), env.get("LD_LIBRARY_PATH", "")),
            "PYTHONPATH": _joined(str(self.root / "lib" / "python"), env.get("PYTHONPATH", "")),
        }
        if (self.root / "include" / "SNPE").is_dir():
            set_here["SNPE_ROOT"] = str(self.root)
        if python:
            set_here["VIRTUAL_ENV"] = str(python.parent.parent)
        return set_here

    def arches(self) -> tuple[int, ...]:
        """The dsp arches that there are run-time libraries for, as numbers: 79 for v79."""
        found = (re.fullmatch(r"hexagon-v(\d+)", path.name) for path in (self.root / "lib").glob("hexagon-v*/"))
        return tuple(sorted(int(match[1]) for match in found if match))

    def tools_python(self, cache: Path | None = None) -> Path | None:
        """The interpreter of the tools' venv; None where it has not been made, or not to its end."""
        folder = venv_folder(self.version, cache or default_cache())
        return folder / "bin" / "python" if (folder / COMPLETE).is_file() else None

    def interpreter(self, cache: Path | None = None) -> Path:
        """The same, for those who cannot do without.

        Raises:
            ToolMissing: it has not been made.

        """
        python = self.tools_python(cache)
        if python is None:
            raise ToolMissing(
                f"the tools of QAIRT {self.version} have no Python environment of their own yet", hint=self._anew()
            )
        return python

    def _file(self, path: Path, missing: str) -> Path:
        if not path.is_file():
            raise ToolMissing(
                f"QAIRT {self.version} has {missing}: there is no {path}",
                hint=f"another version may have it; if files are missing, {self._anew()}",
            )
        return path

    def _anew(self) -> str:
        return f"run `{install_command(self.version)}`"


def path_of(text: str) -> Path:
    """The absolute path that a user means; a `~` that stands for nobody stays."""
    path = Path(text)
    with contextlib.suppress(RuntimeError):
        path = path.expanduser()
    return path.absolute()


def install_command(version: str) -> str:
    """What brings an SDK; a version that is cut short cannot be asked for, so its place is left to fill in."""
    return f"qnnci sdk install {version if re.fullmatch(VERSION, version) else 'VERSION'} --accept-license"


def venv_folder(version: str, cache: Path) -> Path:
    return cache / "sdk" / f"{version}.python"


def find(
    version: str | None = None,
    root: str | None = None,
    env: Mapping[str, str] = os.environ,
    cache: Path | None = None,
) -> Sdk:
    """The SDK to work with: at `root`, else at QNN_SDK_ROOT, else the newest that `qnnci sdk install` has brought.

    `version` may be cut short at a dot (`2.40`). A QNN_SDK_ROOT that is another version gives way to an installed one.

    Raises:
        ToolMissing: there is none, or none of that version.
        UsageError: a folder's name and its sdk.yaml name different versions.

    """
    if root:
        return _at(path_of(root), version, "")
    given = env.get("QNN_SDK_ROOT")
    have = installed(cache or default_cache())
    fitting = [sdk for sdk in have if fits(sdk.version, version)]
    if given:
        try:
            return _at(path_of(given), version, "QNN_SDK_ROOT is ")
        except ToolMissing:
            if version is None or not fitting:
                raise
    if fitting:
        return fitting[-1]
    others = f"; installed: {', '.join(sdk.version for sdk in have)}" if have else ""
    raise ToolMissing(
        f"{f'QAIRT SDK {version}' if version else 'the QAIRT SDK'} is not installed{others}",
        hint=f"run `{install_command(_whole(version))}`, or set QNN_SDK_ROOT to its folder",
    )


def installed(cache: Path) -> list[Sdk]:
    """What `qnnci sdk install` has brought into a cache, oldest version first."""
    folders = [path for path in (cache / "sdk").glob("*") if re.fullmatch(VERSION, path.name) and is_root(path)]
    return sorted((Sdk(path, path.name) for path in folders), key=lambda sdk: _order(sdk.version))


def fits(version: str, asked: str | None) -> bool:
    """Whether a version is the one asked for, which may be cut short at a dot or before its suffix."""
    return asked is None or version == asked or version.startswith((f"{asked}.", f"{asked}-"))


def is_root(folder: Path) -> bool:
    return (folder / "lib").is_dir() and (folder / "include").is_dir()


def root_of(folder: Path) -> Path | None:
    """The SDK's own folder, where `folder` is it, or holds it as the vendor's zip does."""
    return next((path for path in _candidates(folder) if is_root(path)), None)


def describe(root: Path) -> Sdk:
    """The SDK at its own folder. Its version is the folder's name, else what its sdk.yaml says.

    Raises:
        UsageError: the two contradict each other, or neither says.

    """
    told = _told(root)
    for name in (root.name, root.resolve().name):
        if match := re.search(rf"(?<![\d.]){VERSION}$", name):
            if told and not match[0].startswith(f"{told['version']}."):
                raise UsageError(
                    f"the folder is named {match[0]}, but its sdk.yaml says {told['version']}",
                    where=str(root),
                    hint="give the folder the name that the vendor's zip gives it, or unpack the SDK anew",
                )
            return Sdk(root, match[0])
    # The build id begins with the date, which is the fourth part: 2.25.0 and 240728104910_97711.
    if told.get("build_id"):
        return Sdk(root, f"{told['version']}.{told['build_id'][:6]}")
    raise UsageError(
        "the SDK's version is not known", where=str(root), hint="name the folder after it, such as 2.40.0.251030"
    )


def _at(folder: Path, version: str | None, which: str) -> Sdk:
    root = root_of(folder)
    if root is None:
        raise ToolMissing(
            f"{which}{folder}, which is no QAIRT SDK" if which else f"{folder} is no QAIRT SDK",
            hint="name the folder that holds `lib` and `include` (qairt/<version> in the vendor's zip), "
            f"or run `{install_command(_whole(version))}`",
        )
    sdk = describe(root)
    if not fits(sdk.version, version):
        raise ToolMissing(
            f"QAIRT SDK {version} was asked for, but {which}{root}, version {sdk.version}",
            hint=f"run `{install_command(_whole(version))}`, or ask for {sdk.version}",
        )
    return sdk


def _whole(version: str | None) -> str:
    """A version fit for the command line: the default one, where it is meant or nothing is."""
    return DEFAULT_VERSION if fits(DEFAULT_VERSION, version) else version or DEFAULT_VERSION


def _candidates(folder: Path) -> Iterator[Path]:
    above = (folder, folder / "qairt")
    yield from above
    for each in above:
        named = [path for path in each.glob("*") if re.fullmatch(VERSION, path.name)]
        yield from sorted(named, key=lambda path: _order(path.name), reverse=True)


def _order(version: str) -> tuple[list[int], str]:
    numbers, _, suffix = version.partition("-")
    return [int(part) for part in numbers.split(".")], suffix


def _told(root: Path) -> dict[str, str]:
    """`version` (three parts) and `build_id` of an SDK's sdk.yaml; empty where it does not say."""
    try:
        with (root / "sdk.yaml").open("rb") as file:
            text = file.read(_YAML_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    version = re.search(r"^version: *['\"]?(\d+\.\d+\.\d+)\b", text, re.MULTILINE)
    build = re.search(r"^build_id: *['\"]?v?(?:\d+\.\d+\.\d+\.)?(\d{6})", text, re.MULTILINE)
    return {"version": version[1], "build_id": build[1] if build else ""} if version else {}


def _joined(*paths: str) -> str:
    return os.pathsep.join(path for path in paths if path)
