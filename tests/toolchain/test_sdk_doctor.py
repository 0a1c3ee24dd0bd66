from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import qnnci
from support.sdk_zip import FILES, VERSION, unpacked

from qnnci.errors import ExitCode
from qnnci.soc import find_soc
from qnnci.toolchain import sdk_doctor, sdk_venv, tools
from qnnci.toolchain.sdk import Sdk, describe

LIBC = {"libc.so.6": "libc6"}


def helps(*flags: str, end: str = "exit 0") -> bytes:
    """A tool whose --help names these flags."""
    return f"#!/bin/sh\nprintf '%s\\n' '{' '.join(flags)}'\n{end}\n".encode()


def sdk_with(folder: Path, **changed: bytes) -> Sdk:
    """An SDK whose tools know every flag that is used, apart from those that are given."""
    known = {tool: helps(*tools.used_flags(tool, (2, 40))) for tool in tools.USED_FLAGS}
    named = {name.replace("_", "-"): text for name, text in changed.items()}
    programs = {f"bin/x86_64-linux-clang/{tool}": text for tool, text in {**known, **named}.items()}
    return Sdk(unpacked(folder / VERSION, {**FILES, **programs}), VERSION)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library that loads; the system has all that is needed."""
    monkeypatch.setattr(sdk_doctor, "HOST_LIBRARIES", LIBC)
    spec = find_spec("pydantic_core._pydantic_core")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def venv(cache: Path, python: bytes = b"#!/bin/sh\necho 3.10\n") -> Path:
    folder = cache / "sdk" / f"{VERSION}.python"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_bytes(python)
    (folder / "bin" / "python").chmod(0o755)
    (folder / ".complete").write_text(sdk_venv.digest())
    return folder


def test_every_route_s_tools_are_known() -> None:
    assert {tool for names in sdk_doctor.ROUTE_TOOLS.values() for tool in names} == set(tools.USED_FLAGS)


def test_a_whole_sdk_gives_no_finding(tmp_path: Path, library: Path) -> None:
    sdk = sdk_with(tmp_path)
    for name in ("libQnnHtp.so", "libQnnSystem.so"):
        (sdk.root / "lib/x86_64-linux-clang" / name).unlink()
        (sdk.root / "lib/x86_64-linux-clang" / name).symlink_to(library)
    venv(tmp_path / "cache")
    for program in ("clang++", "make", "ndk-build"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    socs = [find_soc("SM8750"), find_soc("SM8550")]
    assert sdk_doctor.examine(sdk, socs=socs, cache=tmp_path / "cache", env=env) == []


def test_flags_that_the_tool_does_not_know(tmp_path: Path) -> None:
    used = tools.used_flags("qairt-quantizer", (2, 40))
    sdk = sdk_with(tmp_path, qairt_quantizer=helps(*(set(used) - {"--input_list"}), "--input_lists", end="exit 2"))
    (found,) = sdk_doctor.check_tool(sdk, "qairt-quantizer", None)
    assert (found.rule, found.message) == (
        "sdk-unknown-flag",
        f"qairt-quantizer of QAIRT {VERSION} does not know --input_list",
    )


def test_flags_as_the_version_spells_them(tmp_path: Path) -> None:
    old = Sdk(sdk_with(tmp_path, qairt_quantizer=helps(*tools.used_flags("qairt-quantizer", (2, 25)))).root, "2.25.0.1")
    assert list(sdk_doctor.check_tool(old, "qairt-quantizer", None)) == []
    (found,) = sdk_doctor.check_tool(Sdk(old.root, VERSION), "qairt-quantizer", None)
    assert "--enable_float_fallback" in found.message


@pytest.mark.skipif(find_spec("onnxruntime_qnn") is None, reason="the stand-in links the embedded compiler's libraries")
@pytest.mark.parametrize("version", ["2.25.0.240728-standin", "2.40.0.251030-standin"])
def test_the_tools_own_help_names_what_is_used(tmp_path: Path, version: str) -> None:
    """The stand-in prints the help of its version, as far as it is known."""
    from sdk.make import make

    sdk = describe(make(tmp_path, version))
    found = [each for tool in tools.USED_FLAGS for each in sdk_doctor.check_tool(sdk, tool, Path(sys.executable))]
    assert (sdk.version, found) == (version, [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"#!/bin/sh\necho 'libc++.so.1: cannot open shared object file' >&2\nexit 127\n", "libc++.so.1: cannot open"),
        (b"#!/bin/sh\nkill -SEGV $$\n", "exit code -11"),
        (b"#!/bin/sh\n", "prints nothing"),
        (b"\x7fELF of another machine", "does not start"),
        (b"", "does not start"),
    ],
)
def test_a_tool_that_does_not_start(tmp_path: Path, text: bytes, says: str) -> None:
    sdk = sdk_with(tmp_path, qairt_converter=text)
    (found,) = sdk_doctor.check_tool(sdk, "qairt-converter", None)
    assert found.rule == "sdk-tool"
    assert says in found.message


def test_a_python_tool_that_lacks_a_module(tmp_path: Path) -> None:
    sdk = sdk_with(tmp_path, qairt_converter=b"#!/usr/bin/env python3\nimport no_such_module_here\n")
    (found,) = sdk_doctor.check_tool(sdk, "qairt-converter", Path(sys.executable))
    assert "its Python has no module no_such_module_here" in found.message
    assert "bin/check-python-dependency" in found.hint


def test_a_tool_that_is_not_there(tmp_path: Path) -> None:
    sdk = sdk_with(tmp_path)
    sdk.tool("qairt-converter").unlink()
    (found,) = sdk_doctor.check_tool(sdk, "qairt-converter", None)
    assert (found.rule, "has no tool qairt-converter" in found.message) == ("sdk-tool", True)


def test_a_library_of_the_system_is_missing(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_doctor, "HOST_LIBRARIES", {**LIBC, "libnowhere.so.9": "libnowhere9"})
    sdk = sdk_with(tmp_path)
    (sdk.root / "lib/x86_64-linux-clang/libQnnSystem.so").write_bytes(library.read_bytes())
    system, own = sdk_doctor.check_libraries(sdk)
    assert (system.message, system.hint) == ("libnowhere.so.9 is not on this machine", "apt-get install libnowhere9")
    assert own.message.startswith("libQnnHtp.so does not load: ")
    (sdk.root / "lib/x86_64-linux-clang/libQnnHtp.so").unlink()
    assert "has no libQnnHtp.so" in next(iter(sdk_doctor.check_libraries(sdk))).message


def test_libraries_that_a_route_gives_to_the_context_generator(tmp_path: Path, library: Path) -> None:
    sdk = sdk_with(tmp_path)
    for name in ("libQnnHtp.so", "libQnnSystem.so"):
        (sdk.root / "lib/x86_64-linux-clang" / name).write_bytes(library.read_bytes())
    (sdk.root / "lib/x86_64-linux-clang/libQnnModelDlc.so").unlink()
    (missing,) = sdk_doctor.check_libraries(sdk, routes=("dlc",))
    assert "has no libQnnModelDlc.so" in missing.message
    assert list(sdk_doctor.check_libraries(sdk, routes=("model-lib",))) == []


def test_libraries_of_the_sdk_s_own_folder_count(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk_doctor, "HOST_LIBRARIES", {"libown.so.1": "?"})
    sdk = sdk_with(tmp_path)
    for name in ("libown.so.1", "libQnnHtp.so", "libQnnSystem.so"):
        (sdk.root / "lib/x86_64-linux-clang" / name).write_bytes(library.read_bytes())
    assert list(sdk_doctor.check_libraries(sdk)) == []


def test_the_tools_python(tmp_path: Path) -> None:
    sdk, cache = Sdk(tmp_path, VERSION), tmp_path / "cache"
    (missing,) = sdk_doctor.check_python(sdk, cache)
    assert f"qnnci sdk install {VERSION}" in missing.hint
    folder = venv(cache)
    assert list(sdk_doctor.check_python(sdk, cache)) == []
    (folder / ".complete").write_text("of another release")
    (stale,) = sdk_doctor.check_python(sdk, cache)
    assert (stale.severity, "another qnnci" in stale.message) == ("warning", True)
    (folder / "bin" / "python").write_text("#!/bin/sh\necho 3.12\n")
    (wrong,) = sdk_doctor.check_python(sdk, cache)
    assert "is Python 3.12, not 3.10" in wrong.message
    (folder / "bin" / "python").unlink()
    (gone,) = sdk_doctor.check_python(sdk, cache)
    assert "does not run" in gone.message


def test_arches_of_the_chips(tmp_path: Path) -> None:
    sdk = sdk_with(tmp_path)
    found = list(sdk_doctor.check_arches(sdk, [find_soc("SM8550"), find_soc("SM8650"), find_soc("SM8750")]))
    assert [(each.rule, each.soc) for each in found] == [("sdk-missing-arch", "SM8650")]
    assert found[0].message == f"QAIRT {VERSION} has no lib/hexagon-v75 (it has v73, v79)"


def test_what_builds_model_libraries(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path)}
    assert [each.rule for each in sdk_doctor.check_build_tools(env)] == ["sdk-compiler", "sdk-compiler"]
    assert "ndk-build is not on PATH" in next(sdk_doctor.check_ndk(env)).message
    named = {**env, "ANDROID_NDK_ROOT": str(tmp_path / "ndk")}
    assert "which has no ndk-build" in next(sdk_doctor.check_ndk(named)).message
    (tmp_path / "ndk").mkdir()
    (tmp_path / "ndk" / "ndk-build").write_text("#!/bin/sh\n")
    (tmp_path / "ndk" / "ndk-build").chmod(0o755)
    assert list(sdk_doctor.check_ndk(named)) == []
    assert sdk_doctor.ndk_build(named) == tmp_path / "ndk" / "ndk-build"


@given(st.lists(st.sampled_from(["--a", "--ab", "--a-b", "--a_b", "-a", "-b"]), unique=True), st.text(max_size=50))
@settings(max_examples=60, deadline=None)
def test_flags_are_whole_words(named: list[str], noise: str) -> None:
    text = "usage:\n" + "".join(f"  [{flag} VALUE]\n" for flag in named) + noise.replace("-", "")
    every = ("--a", "--ab", "--a-b", "--a_b", "-a", "-b")
    assert sdk_doctor.unknown_flags(text, every) == [flag for flag in every if flag not in named]


def test_the_verb(tmp_path: Path) -> None:
    sdk = sdk_with(tmp_path, qairt_quantizer=helps("--input_dlc"))
    env = {"QNN_SDK_ROOT": str(sdk.root), "QNNCI_CACHE": str(tmp_path / "cache")}
    ended = qnnci("sdk", "doctor", "--route", "dlc", "--soc", "SM8650", "--json", cwd=tmp_path, **env)
    assert ended.code == ExitCode.TOOL_MISSING
    told = json.loads(ended.said)
    assert (told["version"], told["arches"], told["python"]) == (VERSION, "v73, v79", "missing")
    rules = {each["rule"] for each in told["findings"]}
    assert {"sdk-unknown-flag", "sdk-missing-arch", "sdk-python", "sdk-missing-library"} <= rules
    assert "sdk-ndk" not in rules
    shown = qnnci("sdk", "doctor", cwd=tmp_path, **env)
    assert "qairt-quantizer of QAIRT 2.40.0.251030 does not know --output_dlc" in shown.said
