"""actions/cache-key.sh: what decides a cache's content is in its key, and nothing that is given to it is obeyed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "actions/cache-key.sh"
HOSTILE = "x'\"; $(touch pwned) `touch pwned`\nkey=forged\npath<<EOF\n::error::forged"


def named(tmp_path: Path, kind: str, **inputs: str) -> dict[str, str]:
    """The step outputs, read as GitHub reads them."""
    output = tmp_path / "output"
    output.write_text("")
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/me",
        "RUNNER_TEMP": "/runner",
        "GITHUB_OUTPUT": str(output),
        **inputs,
    }
    done = subprocess.run(["bash", SCRIPT, kind], env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    found, lines = {}, iter(output.read_text().splitlines())
    for line in lines:
        if match := re.fullmatch(r"(\w+)<<(.+)", line):
            found[match[1]] = "\n".join(iter(lines.__next__, match[2]))
        else:
            name, _, value = line.partition("=")
            found[name] = value
    return found


@pytest.mark.parametrize("name", ["SDK_VERSION", "SDK_SOURCE", "SDK_FOR"])
def test_each_input_of_the_sdk_is_in_its_key(tmp_path: Path, name: str) -> None:
    plain = named(tmp_path, "qairt")
    assert plain == named(tmp_path, "qairt")
    assert plain["path"] == "/home/me/.cache/qnnci/sdk\n/home/me/.cache/qnnci/python"
    assert named(tmp_path, "qairt", **{f"QNNCI_INPUT_{name}": "x"})["key"] != plain["key"]


def test_one_input_is_not_taken_for_another(tmp_path: Path) -> None:
    first = named(tmp_path, "qairt", QNNCI_INPUT_SDK_VERSION="a b", QNNCI_INPUT_SDK_SOURCE="c")
    second = named(tmp_path, "qairt", QNNCI_INPUT_SDK_VERSION="a", QNNCI_INPUT_SDK_SOURCE="b c")
    assert first["key"] != second["key"]


def test_the_cache_folder_is_where_the_sdk_is_installed_to(tmp_path: Path) -> None:
    assert named(tmp_path, "qairt", QNNCI_CACHE="/big")["path"] == "/big/sdk\n/big/python"


def test_the_version_of_python_is_in_the_key_of_pips_downloads(tmp_path: Path) -> None:
    plain = named(tmp_path, "pip", QNNCI_INPUT_PYTHON=sys.executable)
    assert plain["path"] == "/runner/qnnci-pip"
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho '(3, 99)'\n")
    other.chmod(0o755)
    assert named(tmp_path, "pip", QNNCI_INPUT_PYTHON=str(other))["key"] != plain["key"]


@pytest.mark.parametrize("kind", ["pip", "qairt"])
def test_hostile_values_are_only_values(tmp_path: Path, kind: str) -> None:
    names = ("QNNCI_INPUT_PYTHON", "QNNCI_INPUT_SDK_VERSION", "QNNCI_INPUT_SDK_SOURCE", "QNNCI_INPUT_SDK_FOR")
    found = named(tmp_path, kind, QNNCI_CACHE=HOSTILE, **dict.fromkeys(names, HOSTILE))
    assert set(found) == {"key", "path"}
    assert re.fullmatch(rf"qnnci-{kind}-Linux-X64-[0-9a-f]{{16}}", found["key"])
    assert not list(tmp_path.rglob("pwned"))
