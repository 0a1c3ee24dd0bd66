"""actions/setup-qairt run for real by act: a later step finds the SDK, and the cache is used where it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from sdk.make import VERSION, make

from qnnci.toolchain import sdk_venv
from qnnci.toolchain.sdk import COMPLETE, venv_folder
from tests.actions.test_action import BIN, Acted, copy_project, environment, stand_ins, write_model

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")


@dataclass(frozen=True)
class Run:
    acted: Acted
    home: Path
    caches: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Run:
    work = tmp_path_factory.mktemp("qairt")
    repository, home, caches = work / "repository", work / "home", work / "caches"
    copy_project(repository)
    write_model(repository / "model")
    caches.mkdir()
    ready_python(home / ".cache/qnnci")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    env = {
        "HOME": home,
        "TEST_HOME": home,
        "TEST_PYTHON": sys.executable,
        "TEST_CACHES": caches,
        "TEST_SDK": make(work / "sdk"),
    }
    done = subprocess.run(
        [
            BIN / "act", "workflow_dispatch", "--json", "--directory", repository,
            "-W", "tests/actions/qairt.yml", "-P", "ubuntu-24.04=-self-hosted", *stand_ins(),
            *(part for name, value in env.items() for part in ("--env", f"{name}={value}")),
        ],
        env=environment(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    events = tuple(json.loads(line) for line in done.stdout.split("\n") if line.startswith("{"))
    return Run(Acted(done.returncode, events), home, caches)


def ready_python(cache: Path) -> None:
    """The tools' Python as if it were made: the stand-in's tools run on ours."""
    python = venv_folder(VERSION, cache) / "bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (venv_folder(VERSION, cache) / COMPLETE).write_text(sdk_venv.digest())


def test_a_later_step_finds_the_sdk(ran: Run) -> None:
    assert ran.acted.code == 0, ran.acted.log()
    assert ran.acted.outcome("compile") == "success", ran.acted.log("compile")
    (binary,) = json.loads(ran.acted.outputs("compile")["binaries"])
    (entry,) = json.loads(ran.acted.outputs("manifest")["manifest"])["entries"]
    assert (entry["route"], entry["qairt"], entry["sha256"]) == ("dlc", f"v{VERSION}", binary["sha256"])
    assert entry["passed"]
    assert entry["parity"] is not None  # it ran, and was held against the original


@pytest.mark.parametrize("step", ["public", "kept", "restored"])
def test_outputs_say_where_it_is(ran: Run, step: str) -> None:
    sdk = ran.home / ".cache/qnnci/sdk"
    outputs = ran.acted.outputs(step)
    assert outputs["version"] == VERSION
    assert Path(outputs["root"]) == sdk / VERSION
    assert Path(outputs["python"]) == sdk / f"{VERSION}.python/bin/python"


def test_without_the_licence_nothing_comes(ran: Run) -> None:
    assert ran.acted.outcome("refused") == "failure"
    ((properties, text),) = ran.acted.annotations("refused")
    assert properties["title"] == "qnnci"
    assert "accept-qairt-license" in text
    assert ran.acted.outcome("refused", "restore") == "skipped"


def test_the_cache_is_used_where_it_is_asked_for(ran: Run) -> None:
    """By default it is not: act says of no repository that it is private, as GitHub says of none that is public."""
    assert ran.acted.outcome("public", "restore") == "skipped"
    assert [ran.acted.outputs(step)["cache-hit"] for step in ("public", "kept", "restored")] == [
        "false",
        "false",
        "true",
    ]
    assert [path.name.rsplit("-", 1)[0] for path in ran.caches.glob("qnnci-qairt-*")] == ["qnnci-qairt-Linux-X64"]


def test_what_pip_downloads_for_qnnci_is_kept(ran: Run) -> None:
    """The stand-in's pip leaves a file in a cache of our own, as the real one does in any."""
    steps = ("setup", "setup-restored", "setup-off")
    assert [ran.acted.outcome(step) for step in steps] == ["success"] * 3, ran.acted.log()
    assert [ran.acted.outputs(step)["cache-hit"] for step in steps] == ["false", "true", "false"]
    assert ran.acted.outcome("setup-off", "restore") == "skipped"
    (kept,) = ran.caches.glob("qnnci-pip-Linux-X64-*")
    names = subprocess.run(["tar", "-tf", kept / "files.tar"], check=True, capture_output=True, text=True).stdout
    assert names.rstrip().endswith("/qnnci-pip/downloaded")
