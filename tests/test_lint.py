"""What linters and our own conventions say of the YAML and the shell; the tools come with the dev dependencies."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from qnnci.process import run

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def listed(*patterns: str) -> list[Path]:
    """Files of the repository, new ones too."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file()]


WORKFLOWS = listed(".github/workflows/*.yml", ":(glob)tests/actions/*.yml")
ACTIONS = listed("action.yml", "**/action.yml")
DOCKERFILES = listed("docker/Dockerfile-*[0-9]")
SHELL = [
    path for path in listed() if path.suffix == ".sh" or re.match(rb"#!\S*/(env )?(ba)?sh\b", path.read_bytes()[:64])
]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lint(tool: str, *arguments: str | Path) -> None:
    done = run([str(BIN / tool), *map(str, arguments)], timeout=120, cwd=ROOT)
    assert done.code == 0, done.output


def steps(path: Path) -> list[dict[str, Any]]:
    """The steps of a composite action, or of all jobs of a workflow."""
    text = yaml.safe_load(path.read_text())
    parts = [text["runs"]] if "runs" in text else text["jobs"].values()
    return [step for part in parts for step in part.get("steps", ())]


def test_there_is_something_to_lint() -> None:
    assert ROOT / "action.yml" in ACTIONS
    assert ROOT / ".github/workflows/ci.yml" in WORKFLOWS
    assert ROOT / "actions/install.sh" in SHELL
    assert ROOT / "docker/Dockerfile-2.40" in DOCKERFILES


def test_actionlint() -> None:
    lint("actionlint", "-color=false", "-shellcheck", BIN / "shellcheck", "-pyflakes", "", *WORKFLOWS)


def test_zizmor() -> None:
    lint(
        "zizmor",
        "--offline",
        "--no-progress",
        "--persona",
        "pedantic",
        "--config",
        ".github/zizmor.yml",
        *ACTIONS,
        *WORKFLOWS,
        ".github/dependabot.yml",
    )


def test_every_exception_says_why() -> None:
    """Beside the exception, on its own line: what is excused without a reason stays excused for ever."""
    paths = [*ACTIONS, *WORKFLOWS, *SHELL, ROOT / ".github/zizmor.yml"]
    lines = [(name(path), line) for path in paths for line in path.read_text().splitlines()]
    marks = re.compile(r"zizmor: ignore|shellcheck disable|actionlint.*ignore|^ +disable: true")
    excused = [(path, line) for path, line in lines if marks.search(line)]
    assert excused
    why = re.compile(r"# (zizmor: ignore\[[\w,-]+\] |shellcheck disable=[\w,]+ # )?\w+,? \w+")
    assert [each for each in excused if not why.search(each[1])] == []


@pytest.mark.parametrize(
    ("schema", "paths"),
    [("github-actions", ACTIONS), ("github-workflows", WORKFLOWS), ("dependabot", [ROOT / ".github/dependabot.yml"])],
)
def test_schema(schema: str, paths: list[Path]) -> None:
    lint("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *paths)


@pytest.mark.parametrize("path", DOCKERFILES, ids=name)
def test_hadolint(path: Path) -> None:
    lint("hadolint", "--failure-threshold=style", path)


@pytest.mark.parametrize("path", DOCKERFILES, ids=name)
def test_images_are_pinned(path: Path) -> None:
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", path.read_text(), re.MULTILINE)
    own = {"scratch", *(stage for _, stage in stages)}
    assert [image for image, _ in stages if image not in own and "@sha256:" not in image] == []
    assert len(stages) == len(re.findall(r"^FROM\b", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("path", SHELL, ids=name)
def test_shellcheck(path: Path) -> None:
    lint("shellcheck", path)


@pytest.mark.parametrize("path", ACTIONS, ids=name)
def test_shellcheck_of_actions(path: Path, tmp_path: Path) -> None:
    """Actionlint does not read actions."""
    for number, step in enumerate(step for step in steps(path) if "run" in step):
        script = tmp_path / f"{number}.sh"
        script.write_text(step["run"])
        lint("shellcheck", f"--shell={step['shell']}", script)


@pytest.mark.parametrize("path", [*ACTIONS, *WORKFLOWS], ids=name)
def test_no_expression_in_shell(path: Path) -> None:
    """Values reach shell through the environment, where they are only ever values."""
    assert [step["run"] for step in steps(path) if "${{" in step.get("run", "")] == []


@pytest.mark.parametrize("path", [*ACTIONS, *WORKFLOWS], ids=name)
def test_other_peoples_actions_are_pinned(path: Path) -> None:
    uses = re.findall(r"^\s*(?:- )?uses: *(.+)$", path.read_text(), re.MULTILINE)
    others = [action for action in uses if not action.startswith("./")]
    assert [action for action in others if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_workflows_have_no_rights_by_default(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {}


def jobs_of(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


ALL_GREEN = [path for path in WORKFLOWS if "all-green" in jobs_of(path)]


def test_what_runs_on_pull_requests_ends_in_one_job() -> None:
    assert [name(path) for path in ALL_GREEN] == [".github/workflows/ci.yml", ".github/workflows/selftest.yml"]


@pytest.mark.parametrize("path", ALL_GREEN, ids=name)
def test_all_green_needs_every_other_job(path: Path) -> None:
    """Branch protection names one job; a job that it did not wait for could fail unseen."""
    jobs = jobs_of(path)
    assert sorted(jobs["all-green"]["needs"]) == sorted(set(jobs) - {"all-green"})
    assert jobs["all-green"]["if"] == "always()"  # a job that is skipped counts as passed
    assert [key for job in jobs.values() for key in job if key == "continue-on-error"] == []  # it would say success


@pytest.mark.parametrize("path", ALL_GREEN, ids=name)
@pytest.mark.parametrize("result", ["success", "failure", "cancelled", "skipped"])
@pytest.mark.parametrize("place", [0, -1])
def test_all_green_fails_where_any_job_is_not_a_success(path: Path, result: str, place: int) -> None:
    """Its own script, with what GitHub puts in place of the expression."""
    job = jobs_of(path)["all-green"]
    (step,) = job["steps"]
    assert step["env"] == {"RESULTS": "${{ join(needs.*.result, ' ') }}"}
    results = ["success"] * len(job["needs"])
    results[place] = result
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, env={"RESULTS": " ".join(results)}, check=False)
    assert (done.returncode == 0) == (result == "success")


def test_the_self_test_uses_every_action() -> None:
    used = (ROOT / ".github/workflows/selftest.yml").read_text()
    ours = [f"./{path.parent.relative_to(ROOT)}" for path in sorted(ROOT.glob("actions/*/action.yml"))]
    assert [each for each in (*ours, "./.github/workflows/compile.yml") if f"uses: {each}\n" not in used] == []


def test_nothing_is_written_to_the_jobs_environment() -> None:
    """GITHUB_ENV and GITHUB_PATH reach every later step of the caller's job."""
    sources = [path for path in listed("qnnci/**.py", "actions", "action.yml") if path.suffix in {".py", ".sh", ".yml"}]
    assert [name(path) for path in sources if re.search(r"GITHUB_(ENV|PATH)\b", path.read_text())] == []
