from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.sdk_zip import VERSION

from qnnci.errors import MachineError, ToolMissing
from qnnci.toolchain import sdk_venv
from qnnci.toolchain.sdk import Sdk

# A Python as far as the product looks: it tells its version, makes venvs of itself, and writes down what pip is told.
PYTHON = """#!/bin/sh
here=$(dirname "$0")
case "$*" in
"-c "*) test -z "$VERSION" || exit 1; echo {version} ;;
"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip "*) echo "$@" >>"$here/pip.log"; test ! -e "{broken}" || {{ echo "ERROR: no such index"; exit 1; }} ;;
esac
"""
UV = """#!/bin/sh
test "$UV_NO_CONFIG" = 1 || exit 9
python="$UV_PYTHON_INSTALL_DIR/cpython/bin/python3.10"
case "$*" in
"python find"*) test -e "$python" && echo "$python" || {{ echo "error: no interpreter"; exit 2; }} ;;
"python install"*) {fetch} ;;
esac
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def python(path: Path, version: str = "3.10", broken: str = "/nowhere") -> Path:
    return program(path, PYTHON.format(version=version, broken=broken))


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine without any Python, uv or pyenv."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


def test_python_of_the_path(tmp_path: Path, env: dict[str, str]) -> None:
    found = python(tmp_path / "bin" / "python3.10")
    assert sdk_venv.find_python(tmp_path / "cache", env) == found


def test_pyenv_s_stub_is_passed_over_for_what_pyenv_has(tmp_path: Path, env: dict[str, str]) -> None:
    program(tmp_path / "bin" / "python3.10", "#!/bin/sh\necho 'pyenv: python3.10: command not found' >&2\nexit 127\n")
    found = python(tmp_path / "home/.pyenv/versions/3.10.13/bin/python3.10")
    python(tmp_path / "home/.pyenv/versions/3.11.7/bin/python3.10", "3.11")
    assert sdk_venv.find_python(tmp_path / "cache", env) == found
    moved = python(tmp_path / "pyenv/versions/3.10.9/bin/python3.10")
    assert sdk_venv.find_python(tmp_path / "cache", {**env, "PYENV_ROOT": str(tmp_path / "pyenv")}) == moved


def test_uv_fetches_it_once(tmp_path: Path, env: dict[str, str]) -> None:
    source = python(tmp_path / "source" / "python3.10")
    fetch = f'mkdir -p "$(dirname "$python")" && cp {source} "$python" && echo x >>{tmp_path}/fetched'
    program(tmp_path / "bin" / "uv", UV.format(fetch=fetch))
    env["PATH"] += ":/bin:/usr/bin"
    for _ in range(2):
        found = sdk_venv.find_python(tmp_path / "cache", env)
        assert found == tmp_path / "cache/python/cpython/bin/python3.10"
    assert (tmp_path / "fetched").read_text() == "x\n"


def test_no_python_anywhere(tmp_path: Path, env: dict[str, str]) -> None:
    program(tmp_path / "bin" / "uv", UV.format(fetch='echo "error: Failed to download"; exit 1'))
    with pytest.raises(ToolMissing, match=r"need Python 3\.10.*Failed to download") as caught:
        sdk_venv.find_python(tmp_path / "cache", env)
    assert "apt-get install python3.10-venv" in caught.value.hint


def test_uv_comes_from_the_package_index(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def pip(_python: Path, *arguments: str) -> None:
        asked.append(arguments)
        program(tmp_path / "cache/uv/bin/uv", UV.format(fetch="exit 1"))

    monkeypatch.setattr(sdk_venv, "_pip", pip)
    for _ in range(2):
        with pytest.raises(ToolMissing, match="uv cannot fetch it"):
            sdk_venv.find_python(tmp_path / "cache", env)
    assert len(asked) == 1
    assert re.fullmatch(r"uv==[\d.]+", asked[0][-1])


def test_a_venv_is_made_once(tmp_path: Path, env: dict[str, str]) -> None:
    python(tmp_path / "bin" / "python3.10")
    sdk, cache = Sdk(tmp_path, VERSION), tmp_path / "cache"
    assert sdk.tools_python(cache) is None
    said: list[str] = []
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            said.append(text)

    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(lambda _: sdk_venv.make(VERSION, cache, env=env, say=say), range(3)))
    assert set(made) == {sdk.tools_python(cache)} == {cache / "sdk" / f"{VERSION}.python" / "bin" / "python"}
    (line,) = (made[0].parent / "pip.log").read_text().splitlines()
    assert "--require-hashes --only-binary=:all: --requirement" in line
    assert sum("installing" in text for text in said) == 1


def test_a_stale_or_half_venv_is_made_anew(tmp_path: Path, env: dict[str, str]) -> None:
    python(tmp_path / "bin" / "python3.10")
    folder = sdk_venv.make(VERSION, tmp_path / "cache", env=env).parent.parent
    assert sdk_venv.is_current(folder)
    (folder / "left").touch()
    for content in (b"an older digest", b"\xff"):
        (folder / ".complete").write_bytes(content)
        assert not sdk_venv.is_current(folder)
    sdk_venv.make(VERSION, tmp_path / "cache", env=env)
    assert sdk_venv.is_current(folder)
    assert not (folder / "left").exists()


def test_a_venv_whose_packages_failed_does_not_count(tmp_path: Path, env: dict[str, str]) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    python(tmp_path / "bin" / "python3.10", broken=str(broken))
    sdk, cache = Sdk(tmp_path, VERSION), tmp_path / "cache"
    with pytest.raises(MachineError, match="no such index") as caught:
        sdk_venv.make(VERSION, cache, env=env)
    assert "pip config list" in caught.value.hint
    assert sdk.tools_python(cache) is None
    broken.unlink()
    assert sdk_venv.make(VERSION, cache, env=env) == sdk.tools_python(cache)


def test_every_requirement_is_pinned_with_its_digest() -> None:
    lines = [line for line in sdk_venv.requirements().replace("\\\n", "").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+ +--hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert {line.partition("==")[0] for line in lines} > {"onnx", "numpy", "protobuf", "pandas", "pyyaml", "pydantic"}


def test_the_requirements_can_be_had_for_python_3_10(tmp_path: Path) -> None:
    """From the package index, by digest; what has to go together is proven by installing it, see below."""
    (tmp_path / "requirements.txt").write_text(sdk_venv.requirements())
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--target", tmp_path / "t"]
    argv += ["--python-version", "3.10", "--platform", "manylinux2014_x86_64", "--only-binary=:all:"]
    argv += ["--require-hashes", "--requirement", tmp_path / "requirements.txt"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_real_venv(tmp_path: Path) -> None:
    """Where there is a Python 3.10: what the SDK's tools import is there, in the versions that go together."""
    real = next((path for path in sdk_venv._candidates(os.environ) if sdk_venv._works(path)), None)
    if real is None:
        pytest.skip("this machine has no Python 3.10")
    made = sdk_venv.make(VERSION, tmp_path / "cache")
    code = "import onnx, pandas, pydantic, yaml, packaging, google.protobuf, numpy; print(onnx.__version__)"
    assert subprocess.run([made, "-c", code], capture_output=True, text=True, check=True).stdout == "1.17.0\n"
    subprocess.run([made, "-m", "pip", "check"], check=True)
