from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sdk_zip import FILES, VERSION, unpacked

from qnnci.errors import QnnciError, ToolMissing, UsageError
from qnnci.toolchain import sdk
from qnnci.toolchain.sdk import Sdk

NO_ENV: dict[str, str] = {}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return unpacked(tmp_path / "sdks" / "qairt" / VERSION)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QNNCI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("up", [0, 1, 2])
def test_any_folder_down_to_the_sdk_will_do(root: Path, cache: Path, up: int) -> None:
    folder = [root, root.parent, root.parent.parent][up]
    assert sdk.find(root=str(folder), env=NO_ENV, cache=cache) == Sdk(root, VERSION)


def test_what_was_named_beats_the_environment_beats_what_is_installed(root: Path, cache: Path, tmp_path: Path) -> None:
    other = unpacked(tmp_path / "2.41.0.251128", {**FILES, "sdk.yaml": b"version: 2.41.0\n"})
    here = unpacked(cache / "sdk" / VERSION)
    env = {"QNN_SDK_ROOT": str(other)}
    assert sdk.find(root=str(root), env=env, cache=cache).root == root
    assert sdk.find(env=env, cache=cache) == Sdk(other, "2.41.0.251128")
    assert sdk.find(env=NO_ENV, cache=cache).root == here
    assert sdk.find(VERSION, env=env, cache=cache).root == here, "another version at QNN_SDK_ROOT gives way"


def test_the_newest_that_is_installed(cache: Path) -> None:
    for version in ("2.9.0.230101", "2.40.0.251030", "2.40.0.251030-other", "2.31.0.250130"):
        unpacked(cache / "sdk" / version, {"lib/a": b"", "include/a": b""})
    unpacked(cache / "sdk" / "2.50.0.260828", {"lib/a": b""})  # half of one
    unpacked(cache / "sdk" / "2.51.0.260929.python", {"lib/a": b"", "include/a": b""})
    assert sdk.find(env=NO_ENV, cache=cache).version == "2.40.0.251030-other"
    assert sdk.find("2.31", env=NO_ENV, cache=cache).version == "2.31.0.250130"
    assert sdk.find("2.9.0.230101", env=NO_ENV, cache=cache).version == "2.9.0.230101"


@pytest.mark.parametrize(
    ("version", "command"), [(None, VERSION), ("2.40", VERSION), ("2.44.0.260225", "2.44.0.260225"), ("2.4", "VERSION")]
)
def test_none_at_all_says_how_to_get_one(cache: Path, version: str | None, command: str) -> None:
    with pytest.raises(ToolMissing) as caught:
        sdk.find(version, env=NO_ENV, cache=cache)
    assert f"`qnnci sdk install {command} --accept-license`" in caught.value.hint


def test_a_wrong_sdk_root_is_told_not_passed_over(cache: Path, tmp_path: Path, root: Path) -> None:
    unpacked(cache / "sdk" / VERSION)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ToolMissing, match=r"QNN_SDK_ROOT is .*empty, which is no QAIRT SDK"):
        sdk.find(env={"QNN_SDK_ROOT": str(tmp_path / "empty")}, cache=cache)
    with pytest.raises(ToolMissing, match=r"2\.44 was asked for, but QNN_SDK_ROOT is .*version 2\.40"):
        sdk.find("2.44", env={"QNN_SDK_ROOT": str(root)}, cache=cache)


@pytest.mark.parametrize("name", [VERSION, f"v{VERSION}", f"qairt-{VERSION}", f"{VERSION}-standin"])
def test_the_version_is_in_the_folder_s_name(tmp_path: Path, name: str) -> None:
    version = name.removeprefix("v").removeprefix("qairt-")
    assert sdk.describe(unpacked(tmp_path / name)).version == version


def test_the_version_of_a_link_and_of_a_folder_of_any_name(tmp_path: Path, root: Path) -> None:
    (tmp_path / "current").symlink_to(root)
    assert sdk.describe(tmp_path / "current") == Sdk(tmp_path / "current", VERSION)
    assert sdk.describe(unpacked(tmp_path / "sdk")).version == VERSION, "three parts and the build's date"
    with pytest.raises(UsageError, match="version is not known"):
        sdk.describe(unpacked(tmp_path / "bare", {"lib/a": b"", "include/a": b""}))


@pytest.mark.parametrize("told", [b"version: 2.41.0\n", b"os: {}\nversion: '2.4.0' # comment\n"])
def test_a_folder_that_is_not_what_its_name_says(tmp_path: Path, told: bytes) -> None:
    root = unpacked(tmp_path / VERSION, {**FILES, "sdk.yaml": told})
    with pytest.raises(UsageError, match=r"named 2\.40\.0\.251030, but its sdk\.yaml says 2\.4"):
        sdk.describe(root)


@given(st.binary(max_size=200))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_sdk_yaml_breaks_it(tmp_path: Path, text: bytes) -> None:
    root = unpacked(tmp_path / VERSION, {"lib/a": b"", "include/a": b"", "sdk.yaml": text})
    assert sdk.describe(root).version == VERSION


@given(st.text(max_size=40))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_name_breaks_it(cache: Path, text: str) -> None:
    for version, named in ((text, None), (None, text or "x"), (text, text or "x")):
        with pytest.raises(QnnciError):
            sdk.find(version or "9", root=named, env=NO_ENV, cache=cache)


def test_tools_and_libraries(root: Path) -> None:
    found = Sdk(root, VERSION)
    assert found.numbers == (2, 40, 0, 251030)
    assert found.tool("qnn-onnx-converter").read_bytes().startswith(b"#!")
    assert found.library("libQnnHtp.so").parent.name == "x86_64-linux-clang"
    assert found.library("libQnnHtp.so", "aarch64-android").read_bytes() == b"\x7fELF android"
    assert found.library("libQnnHtpV79Skel.so", "hexagon-v79").read_bytes() == b"\x7fELF v79"
    assert found.arches() == (73, 79)
    with pytest.raises(ToolMissing, match=r"QAIRT 2\.40\.0\.251030 has no tool qairt-converter: there is no /"):
        found.tool("qairt-converter")
    with pytest.raises(ToolMissing, match=r"no libQnnGpu\.so"):
        found.library("libQnnGpu.so")


def test_python_tools_run_by_their_own_python(root: Path, cache: Path) -> None:
    found = Sdk(root, VERSION)
    assert found.command("qnn-context-binary-generator") == (str(found.tool("qnn-context-binary-generator")),)
    with pytest.raises(ToolMissing, match="no Python environment"):
        found.command("qnn-onnx-converter")
    venv = cache / "sdk" / f"{VERSION}.python"
    (venv / "bin").mkdir(parents=True)
    assert found.tools_python() is None, "not made to its end"
    (venv / ".complete").touch()
    assert found.tools_python() == found.interpreter() == venv / "bin" / "python"
    assert found.command("qnn-onnx-converter")[0] == str(venv / "bin" / "python")
    assert found.command("qnn-onnx-converter", Path("/other"))[0] == "/other"


def test_the_environment_is_envsetup_s(root: Path) -> None:
    env = {"PATH": "/usr/bin", "PYTHONPATH": "/mine", "HOME": "/root"}
    assert Sdk(root, VERSION).environment(Path("/venv/bin/python"), env) == {
        "QNN_SDK_ROOT": str(root),
        "SNPE_ROOT": str(root),
        "PATH": f"/venv/bin:{root}/bin/x86_64-linux-clang:/usr/bin",
        "LD_LIBRARY_PATH": f"{root}/lib/x86_64-linux-clang",
        "PYTHONPATH": f"{root}/lib/python:/mine",
        "VIRTUAL_ENV": "/venv",
    }


def test_the_environment_makes_tools_be_found(root: Path) -> None:
    env = {**os.environ, **Sdk(root, VERSION).environment()}
    said = subprocess.run(["qnn-context-binary-generator"], env=env, capture_output=True, text=True, check=True).stdout
    assert said == "generator\n"
