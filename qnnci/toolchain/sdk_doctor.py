"""What stands between an SDK and a build, found before any work starts: as findings, each with what to do."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from qnnci import process
from qnnci.errors import QnnciError, ToolCrashed, ToolMissing
from qnnci.findings import Finding
from qnnci.rules import finding
from qnnci.soc import Soc
from qnnci.toolchain import sdk_venv, tools
from qnnci.toolchain.sdk import Sdk, install_command, venv_folder

_CONTEXT_GENERATOR = "qnn-context-binary-generator"
ROUTE_TOOLS: dict[str, tuple[str, ...]] = {
    "model-lib": ("qnn-onnx-converter", "qnn-model-lib-generator", _CONTEXT_GENERATOR),
    "dlc": ("qairt-converter", "qairt-quantizer", _CONTEXT_GENERATOR),
}
# What the SDK's libraries are linked with and do not bring along. The packages are Ubuntu's and Debian's.
HOST_LIBRARIES = {"libc++.so.1": "libc++1", "libc++abi.so.1": "libc++abi1", "libunwind.so.1": "libunwind-14"}
# What qnn-model-lib-generator calls for a library that runs on this machine.
BUILD_TOOLS = {"clang++": "clang", "make": "make"}
_LOADED = ("libQnnHtp.so", "libQnnSystem.so")
# What the context generator is told to load.
_GIVEN = ("libQnnHtpNetRunExtensions.so",)
_GIVEN_DLC = ("libQnnModelDlc.so",)
_LOAD = """import ctypes, sys
for name in sys.argv[1:]:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        print(name, error, sep="\\t")
"""
_SECONDS = 120.0  # a first --help imports pandas and onnx from a cold disk


def examine(
    sdk: Sdk,
    *,
    routes: Collection[str] = ("model-lib", "dlc"),
    socs: Iterable[Soc] = (),
    cache: Path,
    env: Mapping[str, str] = os.environ,
) -> list[Finding]:
    """Everything that would end a build on these routes for these chips, or hinder it."""
    found = [*check_libraries(sdk, env, routes), *check_python(sdk, cache), *check_arches(sdk, socs)]
    python = sdk.tools_python(cache)
    for tool in dict.fromkeys(tool for route in routes for tool in ROUTE_TOOLS[route]):
        found += check_tool(sdk, tool, python, env)
    if "model-lib" in routes:
        found += [*check_build_tools(env), *check_ndk(env)]
    return found


def check_libraries(
    sdk: Sdk, env: Mapping[str, str] = os.environ, routes: Collection[str] = ("model-lib", "dlc")
) -> Iterator[Finding]:
    """Whether the system's libraries and the SDK's own load, in a child process and by the SDK's environment."""
    own: list[str] = []
    for name in (*_LOADED, *_GIVEN, *(_GIVEN_DLC if "dlc" in routes else ())):
        try:
            path = str(sdk.library(name))
        except ToolMissing as error:
            yield finding("sdk-missing-library", error.message, hint=error.hint)
        else:
            own += [path] if name in _LOADED else []
    argv = [sys.executable, "-c", _LOAD, *HOST_LIBRARIES, *own]
    settings = {"LD_LIBRARY_PATH": sdk.environment(env=env)["LD_LIBRARY_PATH"]}
    try:
        done = process.run(argv, timeout=_SECONDS, env=settings)
    except ToolCrashed as error:
        yield finding("sdk-missing-library", f"loading the SDK's libraries: {error.message}")
        return
    lacking = dict(line.split("\t", 1) for line in done.output.splitlines() if "\t" in line)
    for name, package in HOST_LIBRARIES.items():
        if name in lacking:
            yield finding("sdk-missing-library", f"{name} is not on this machine", hint=f"apt-get install {package}")
    for name in own:
        # What it lacks of the system has been told already.
        if name in lacking and not any(other in lacking[name] for other in HOST_LIBRARIES if other in lacking):
            yield finding("sdk-missing-library", f"{Path(name).name} does not load: {lacking[name]}", file=name)
    if done.code and not lacking:
        yield finding("sdk-missing-library", f"loading the SDK's libraries ended with exit code {done.code}")


def check_python(sdk: Sdk, cache: Path) -> Iterator[Finding]:
    """Whether the tools' venv is there, current, and of the right Python."""
    hint = f"run `{install_command(sdk.version)}`"
    python = sdk.tools_python(cache)
    if python is None:
        yield finding("sdk-python", "the SDK's tools have no Python environment of their own yet", hint=hint)
        return
    version = sdk_venv.version_of(python)
    if version != sdk_venv.PYTHON:
        told = f"is Python {version}, not {sdk_venv.PYTHON}" if version else "does not run"
        yield finding("sdk-python", f"{python} {told}", hint=f"remove {python.parent.parent}, then {hint}")
    elif not sdk_venv.is_current(venv_folder(sdk.version, cache)):
        yield finding(
            "sdk-python", "the tools' Python packages are those of another qnnci", severity="warning", hint=hint
        )


def check_arches(sdk: Sdk, socs: Iterable[Soc]) -> Iterator[Finding]:
    """Whether there are run-time libraries for each chip's dsp arch."""
    known = sdk.arches()
    names = ", ".join(f"v{arch}" for arch in known) or "none"
    for soc in socs:
        if soc.arch not in known:
            yield finding(
                "sdk-missing-arch",
                f"QAIRT {sdk.version} has no lib/hexagon-{soc.dsp_arch} (it has {names})",
                soc=soc.name,
            )


def check_tool(sdk: Sdk, tool: str, python: Path | None, env: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Whether a tool starts, and knows every flag that we use."""
    try:
        argv = sdk.command(tool, python)
    except ToolMissing as error:
        # Without Python for it, that has been told; without the tool, nothing else tells.
        if not (sdk.root / "bin" / tools.HOST / tool).is_file():
            yield finding("sdk-tool", error.message, hint=error.hint)
        return
    try:
        done = process.run([*argv, "--help"], timeout=_SECONDS, env=sdk.environment(python, env))
    except (QnnciError, OSError) as error:
        yield finding("sdk-tool", f"{tool} does not start: {getattr(error, 'message', error)}")
        return
    unknown = unknown_flags(done.output, tools.used_flags(tool, sdk.numbers))
    # Some versions end their help with an exit code of failure: what they print decides.
    if len(unknown) == len(tools.USED_FLAGS[tool]):
        yield _does_not_start(tool, done, python)
        return
    for flag in unknown:
        yield finding("sdk-unknown-flag", f"{tool} of QAIRT {sdk.version} does not know {flag}")


def unknown_flags(help_text: str, used: Sequence[str]) -> list[str]:
    """The flags that a help text does not name; `--float` is not named by `--float_bitwidth`."""
    return [flag for flag in used if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", help_text)]


def check_build_tools(env: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Whether what builds a model library for this machine is there."""
    for program, package in BUILD_TOOLS.items():
        if not shutil.which(program, path=env.get("PATH", os.defpath)):
            yield finding("sdk-compiler", f"{program} is not on PATH", hint=f"apt-get install {package}")


def check_ndk(env: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Whether the NDK's `ndk-build` can be found, which builds the model library for Android."""
    if ndk_build(env) is None:
        root = env.get("ANDROID_NDK_ROOT")
        where = f"ANDROID_NDK_ROOT is {root}, which has no ndk-build" if root else "ndk-build is not on PATH"
        yield finding("sdk-ndk", where)


def ndk_build(env: Mapping[str, str] = os.environ) -> Path | None:
    """The `ndk-build` on PATH, else that of ANDROID_NDK_ROOT; its folder has to go onto PATH for the SDK's tools."""
    root = env.get("ANDROID_NDK_ROOT")
    folders = os.pathsep.join([env.get("PATH", os.defpath), *([root] if root else [])])
    found = shutil.which("ndk-build", path=folders)
    return Path(found) if found else None


def _does_not_start(tool: str, done: process.Completed, python: Path | None) -> Finding:
    lines = [line.strip() for line in done.output.splitlines() if line.strip()]
    reason = lines[-1][:300] if lines else "it prints nothing"
    missing = re.search(r"No module named '([\w.]+)'", done.output)
    if missing and python:
        return finding(
            "sdk-tool",
            f"{tool} does not start: its Python has no module {missing[1]}",
            hint=f"install what the SDK's own bin/check-python-dependency names with {python} -m pip install",
        )
    return finding("sdk-tool", f"{tool} does not start (exit code {done.code}): {reason}")
