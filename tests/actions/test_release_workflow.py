"""release-action.yml run for real by act: GitHub's own services, and `gh` that speaks to them, are stood in for."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from qnnci import __version__
from tests.actions.test_action import BIN, ROOT, copy_project, environment, stand_ins

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="act comes with the wheels of Python 3.11")

TAG = f"v{__version__}"
WORKFLOW = ".github/workflows/release-action.yml"
# Says what it was asked, and has a draft of an earlier run until that is deleted; a tag that is not there is not moved.
GH = """#!/usr/bin/env bash
test -n "$GH_TOKEN" || exit 1
printf '%s\\n' "$(printf '%q ' "$@")" >>"$TEST_GH/said"
case "$1 $2" in
  "release view") test -e "$TEST_GH/draft" && echo true ;;
  "release delete") rm "$TEST_GH/draft" ;;
  "release create") cp -r release "$TEST_GH/release" ;;
  "api --silent") [[ $4 == POST ]] ;;
esac
"""


@dataclass(frozen=True)
class Run:
    code: int
    log: str
    folder: Path

    def said(self) -> list[str]:
        """What `gh` was asked, call by call."""
        path = self.folder / "gh/said"
        return path.read_text().splitlines() if path.exists() else []


def run(work: Path, version: str) -> Run:
    repository, bin_, gh = work / "repository", work / "bin", work / "gh"
    copy_project(repository)
    changelog = repository / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text("utf-8").replace(
            "## [Unreleased]\n", f"## [Unreleased]\n\n## [{__version__}] - 2026-12-01\n", 1
        ),
        "utf-8",
    )
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    bin_.mkdir()
    gh.mkdir()
    (gh / "draft").touch()
    for name, text in {"gh": GH, "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n'}.items():
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    (work / "artifacts").mkdir()
    env = {
        "TEST_PYTHON": sys.executable,
        "TEST_CALLER": repository,
        "TEST_ARTIFACTS": work / "artifacts",
        "TEST_ATTESTED": work / "attested",
        "TEST_GH": gh,
    }
    base = environment(work)
    done = subprocess.run(
        [
            BIN / "act", "workflow_dispatch", "--json", "--directory", repository, "--no-skip-checkout",
            "-W", WORKFLOW, "-P", "ubuntu-24.04=-self-hosted", "--input", f"version={version}",
            "--secret", "GITHUB_TOKEN=a-token", *stand_ins(),
            *(part for name, value in env.items() for part in ("--env", f"{name}={value}")),
        ],
        env=base | {"PATH": f"{bin_}:{base['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.split("\n") if line.startswith("{")]
    return Run(done.returncode, "".join(event["msg"] + "\n" for event in events), work)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("release"), __version__)


def test_it_is_released_as_a_draft_first_and_then_the_tag_moves(released: Run) -> None:
    assert released.code == 0, released.log
    said = released.said()
    assert [" ".join(line.split()[:2]) for line in said] == [
        "release view",
        "release delete",
        "release create",
        "release edit",
        "api --silent",
        "api --silent",
    ]
    assert said[1].split()[2:] == [TAG, "--yes"]
    assert said[2].split()[2:4] == [TAG, "--draft"]
    assert said[3].split()[2:] == [TAG, "--draft=false"]
    assert ["git/refs/tags/v1 " in line for line in said[4:]] == [True, False]
    assert "ref=refs/tags/v1 " in said[5]
    assert all("sha=" in line for line in said[4:])


def test_what_is_released_is_whole_and_attested(released: Run) -> None:
    files = released.folder / "gh/release"
    names = [f"qnnci-{__version__}-py3-none-any.whl", f"qnnci-{__version__}.tar.gz"]
    assert sorted(path.name for path in (files / "dist").iterdir()) == names
    assert (released.folder / "attested").read_text().split() == [f"release/dist/{name}" for name in names]
    with zipfile.ZipFile(files / "dist" / names[0]) as wheel:
        assert {"qnnci/cli/main.py", "qnnci/data/socs.csv"} <= set(wheel.namelist())
    assert (files / "notes.md").read_text("utf-8").startswith("What will be")


@pytest.mark.parametrize("version", ["9.9.9", "$(touch pwned)"])
def test_nothing_is_written_where_a_check_fails(tmp_path: Path, version: str) -> None:
    done = run(tmp_path, version)
    assert done.code == 1
    assert done.said() == []
    assert list((tmp_path / "artifacts").iterdir()) == []
    assert f"v{version}" in done.log or "the tag says 9.9.9" in done.log
    assert not list(tmp_path.rglob("pwned"))


def test_only_one_job_may_write_and_it_has_no_code_of_ours() -> None:
    jobs = yaml.safe_load((ROOT / WORKFLOW).read_text())["jobs"]
    may_write = {
        name: {right for right, level in job["permissions"].items() if level == "write"} for name, job in jobs.items()
    }
    assert may_write == {
        "check": set(),
        "build": set(),
        "attest": {"id-token", "attestations"},
        "publish": {"contents"},
    }
    for name in ("attest", "publish"):
        assert not [step for step in jobs[name]["steps"] if "checkout" in step.get("uses", "")]
    assert jobs["publish"]["needs"] == ["check", "build", "attest"]
