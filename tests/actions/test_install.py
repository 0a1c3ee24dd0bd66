"""actions/install.sh where the machine's Python will not do; the action's own test sees it succeed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "actions/install.sh"


def install(tmp_path: Path, python: str) -> tuple[int, str]:
    env = os.environ | {
        "QNNCI_INPUT_PYTHON": python,
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    done = subprocess.run(["bash", SCRIPT], env=env, capture_output=True, text=True, check=False)
    assert not (tmp_path / "output").exists()
    return done.returncode, done.stdout


def fake_python(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version", ["2.7.18", "3.9.1", "3.10.14"])
def test_an_old_python_is_refused_with_the_way_out(tmp_path: Path, version: str) -> None:
    code, said = install(tmp_path, fake_python(tmp_path, f"echo {version}"))
    assert code == 3
    assert said.startswith("::error title=qnnci::")
    assert f"is Python {version}, but the compiler needs 3.11 or newer: put a step with actions/setup-python" in said


@pytest.mark.parametrize("python", ["no-such-python", "-c", "x\n::error::forged", "$(touch pwned)", "50%0A::error::x"])
def test_a_python_that_does_not_run_is_named(tmp_path: Path, python: str) -> None:
    code, said = install(tmp_path, python)
    assert code == 3
    (line,) = said.splitlines()
    shown = python.replace("%", "%25").replace("\n", "%0A")
    assert line.startswith(f"::error title=qnnci::Python does not run as '{shown}'")
    assert not Path("pwned").exists()


def test_a_python_without_venv_is_refused(tmp_path: Path) -> None:
    code, said = install(tmp_path, fake_python(tmp_path, 'case "$*" in *venv*) exit 1 ;; *) echo 3.12.1 ;; esac'))
    assert code == 3
    assert "cannot make a venv" in said.splitlines()[-1]


def test_a_failed_install_is_not_taken_for_done(tmp_path: Path) -> None:
    venv = 'for last; do :; done; mkdir -p "$last/bin"; printf "#!/bin/sh\\nexit 1\\n" >"$last/bin/python"'
    python = fake_python(
        tmp_path, f'case "$*" in *venv*) {venv}; chmod +x "$last/bin/python" ;; *) echo 3.12.1 ;; esac'
    )
    for _ in range(2):
        code, said = install(tmp_path, python)
        assert code == 3
        assert "pip could not install qnnci" in said.splitlines()[-1]
