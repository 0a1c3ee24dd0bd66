"""compile.yml run for real, by act on this machine; only GitHub's own services are stood in for, in `local`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.actions.test_action import BIN, ROOT, commit, copy_project, environment, stand_ins, write_model

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")

WORKFLOW = ROOT / ".github/workflows/compile.yml"
SOCS = ("SM8550", "SM8650", "SM8750")
PROJECT = """\
name: pair
socs: [SM8550, SM8650, SM8750]
graphs:
  tiny: {source: tiny.onnx, inputs: {x: [1, 3, 8, 8]}}
  wide: {source: tiny.onnx, inputs: {x: [2, 3, 8, 8]}}
"""
TINY = "".join(line for line in PROJECT.splitlines(keepends=True) if "wide" not in line)
STRICT = (
    PROJECT.replace("[2, 3, 8, 8]}", "[2, 3, 8, 8]}, gates: {binary_mb: {max: 0}}")
    + "  gone: {source: gone.onnx}\n"
    + "  single: {source: tiny.onnx, inputs: {x: [1, 3, 8, 8]}, socs: [SM8550]}\n"
)


class Ran:
    """One run of the caller: act's log by job, the artifacts, and the exit code."""

    def __init__(self, folder: Path) -> None:
        code, *lines = (folder / "log").read_text().split("\n")
        self.code, self.artifacts = int(code), folder / "artifacts"
        self.events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]

    def of(self, call: str, job: str) -> list[dict[str, Any]]:
        """Events of a job, which act names after its caller, the workflow and its place in a matrix."""
        named = re.compile(rf"{call}/.+/{job}(-\d+)?\s*")
        return [event for event in self.events if named.fullmatch(event.get("job") or "")]

    def jobs(self, call: str) -> list[str]:
        names = {
            event["job"].split("/")[-1].strip() for event in self.events if event.get("job", "").startswith(f"{call}/")
        }
        return sorted(re.sub(r"-\d{1,2}$", "", name) for name in names)

    def outcome(self, call: str, job: str, *step: str) -> str:
        found = [
            event["stepResult"]
            for event in self.of(call, job)
            if event.get("stepID") == [*step] and "stepResult" in event
        ]
        return str(found[0]) if found else "skipped"

    def said(self, call: str, job: str) -> str:
        return "".join(event["msg"] for event in self.of(call, job) if event.get("raw_output"))

    def commands(self, call: str, job: str, name: str) -> list[dict[str, Any]]:
        return [event for event in self.of(call, job) if event.get("command") == name]

    def manifest(self, call: str) -> dict[str, Any]:
        made: dict[str, Any] = json.loads((self.artifacts / f"{call}-manifest/manifest.json").read_text())
        return made


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return once(tmp_path_factory, "compile-workflow", run_act)


def once(factory: pytest.TempPathFactory, name: str, run: Callable[[Path], str]) -> Ran:
    """One run for all tests, and for all of pytest-xdist's workers."""
    shared = factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    folder = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "log").exists():
            folder.mkdir()
            (folder / "log").write_text(run(folder))
    return Ran(folder)


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory, ran: Ran) -> Ran:
    """A second attempt of one graph, of whose first Prepare and one shard of two left nothing."""

    def run(work: Path) -> str:
        kept = "qnn-shard-tiny-000"
        shutil.copytree(ran.artifacts / kept, work / "artifacts" / kept)
        return run_act(work, "again.yml", "--env", "GITHUB_RUN_ATTEMPT=2")

    return once(tmp_path_factory, "compile-workflow-again", run)


def run_act(work: Path, calls: str = "caller.yml", *more: str) -> str:
    """Run a workflow of tests/actions in a model repository: the exit code on the first line, then the log."""
    ours, caller = work / "ours", work / "caller"
    copy_project(ours)
    write_model(caller)
    (caller / "LICENSE").write_text("MIT\n")
    (caller / "qnn.yaml").write_text(PROJECT)
    (caller / "strict.yaml").write_text(STRICT)
    (caller / "tiny.yaml").write_text(TINY)
    # The caller names the workflow of its own repository: act knows no other place for one without the network.
    workflows = caller / ".github/workflows"
    workflows.mkdir(parents=True)
    for path in (ROOT / "tests/actions" / calls, WORKFLOW, WORKFLOW.with_name("release.yml")):
        shutil.copy(path, workflows)
    commit(caller)
    (work / "artifacts").mkdir(exist_ok=True)
    env = {
        "TEST_PYTHON": sys.executable,
        "TEST_CALLER": str(caller),
        "TEST_QNNCI": str(ours),
        "TEST_ARTIFACTS": str(work / "artifacts"),
    }
    done = subprocess.run(
        [
            BIN / "act", "workflow_dispatch", "--json", "--directory", caller, "--no-skip-checkout",
            "-W", f".github/workflows/{calls}", "-P", "ubuntu-24.04=-self-hosted", *stand_ins(), *more,
            *(part for name, value in env.items() for part in ("--env", f"{name}={value}")),
        ],
        env=environment(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )  # fmt: skip
    return f"{done.returncode}\n{done.stdout}"


def test_each_graph_is_prepared_once_and_each_shard_compiled(ran: Ran) -> None:
    assert ran.jobs("Good") == [
        *(f"Compile {graph}-{number}" for graph in ("tiny", "wide") for number in ("000", "001")),
        "Gate and report",
        "Plan",
        "Prepare tiny",
        "Prepare wide",
    ]
    for graph in ("tiny", "wide"):
        assert f"{graph}: prepare done" in ran.said("Good", f"Prepare {graph}")
        assert f"{graph}: reference done" in ran.said("Good", f"Prepare {graph}")
    for shard in ("tiny-000", "tiny-001", "wide-000", "wide-001"):
        said = ran.said("Good", f"Compile {shard}")
        assert "compile done" in said
        assert not re.search(r"^(tiny|wide): ", said, re.MULTILINE)  # a stage of a graph that ran again


def test_a_second_attempt_does_what_the_first_did_not(again: Ran) -> None:
    assert again.code == 0, again.said("Again", "Gate and report")
    assert "tiny: prepare done" in again.said("Again", "Prepare tiny")
    stages = {shard: again.said("Again", f"Compile {shard}").count(" done") for shard in ("tiny-000", "tiny-001")}
    assert (stages["tiny-000"], stages["tiny-001"] > 0) == (0, True), stages
    assert [entry["soc"] for entry in again.manifest("qnn")["entries"]] == [*SOCS]
    assert again.manifest("qnn")["passed"]


def test_one_job_reports_all(ran: Ran) -> None:
    gate = "Gate and report"
    assert ran.outcome("Good", gate, "gate") == "success", ran.said("Good", gate)
    (summary,) = {
        event["content"] for event in ran.events if event.get("command") == "summary" and "pair: 6" in event["content"]
    }
    for graph in ("tiny", "wide"):
        assert [soc for soc in SOCS if f"| ✅ | {graph} | {soc} (" in summary] == [*SOCS]
    assert len(summary.split("| ✅ |")) == 7
    others = [job for job in ran.jobs("Good") if job != gate]
    assert [ran.commands("Good", job, "summary") for job in others] == [[]] * 7


def test_one_manifest_leads_to_every_binary(ran: Ran) -> None:
    manifest = ran.manifest("qnn")
    assert manifest["passed"]
    assert [(entry["graph"], entry["soc"]) for entry in manifest["entries"]] == [
        (graph, soc) for graph in ("tiny", "wide") for soc in SOCS
    ]
    for entry in manifest["entries"]:
        assert hashlib.sha256((ran.artifacts / entry["binary"]).read_bytes()).hexdigest() == entry["sha256"]
        assert (ran.artifacts / entry["context_model"]).exists()
    assert {row["soc"] for row in manifest["devices"]} == {*SOCS}


def test_the_summary_links_a_page_that_shows_all(ran: Ran) -> None:
    page = (ran.artifacts / "qnn-report.html/qnn-report.html").read_text()
    for graph in ("tiny", "wide"):
        assert [soc for soc in SOCS if f"{graph} {soc}" in page] == [*SOCS]
    summaries = [event["content"] for event in ran.commands("Good", "Gate and report", "summary")]
    assert any("](https://github.test/artifacts/qnn-report.html)" in text for text in summaries)
    failed = (ran.artifacts / "strict-report.html/strict-report.html").read_text()
    verdict = failed.partition('<p class="verdict')[2].partition("</p>")[0]
    assert "failed: 4 of 10 binaries are good" in verdict


def test_artifacts_hold_what_is_needed(ran: Ran) -> None:
    graph, shard = ran.artifacts / "qnn-graph-tiny", ran.artifacts / "qnn-shard-tiny-000"
    assert {path.name for path in graph.iterdir()} == {".stages", "logs", "prepared.onnx", "reference.npz"}
    assert not [path for path in shard.rglob("*") if path.name.startswith("prepared") or path.suffix == ".npz"]
    assert {path.name for path in shard.rglob(".*")} == {".stages"}
    assert len([path for path in shard.rglob("*.log") if path.name == "compile.log"]) == 2


def test_the_caller_reads_the_outcome(ran: Ran) -> None:
    said = [event["msg"] for event in ran.events if event.get("stepID") == ["after"] and event.get("raw_output")]
    result, binaries = said[0].split(" ", 1)
    assert result == "pass"
    assert [binary["path"].split("/")[0] for binary in json.loads(binaries)] == [
        f"qnn-shard-{graph}-{number}" for graph in ("tiny", "wide") for number in ("000", "000", "001")
    ]


def test_a_gate_that_fails_fails_its_shard_and_the_report_but_no_other(ran: Ran) -> None:
    assert ran.code == 1
    assert ran.outcome("Strict", "Compile wide-000", "compile") == "failure"
    assert ran.outcome("Strict", "Compile tiny-000", "compile") == "success"
    assert ran.outcome("Strict", "Gate and report", "gate") == "failure"
    results = {
        event["arg"] for event in ran.commands("Strict", "Gate and report", "set-output") if event["name"] == "result"
    }
    assert results == {"fail"}
    manifest = ran.manifest("strict")
    assert not manifest["passed"]
    passed = {(entry["graph"], entry["soc"]): entry["passed"] for entry in manifest["entries"]}
    assert passed == {(graph, soc): graph == "tiny" for graph in ("tiny", "wide") for soc in SOCS} | {
        ("single", "SM8550"): True
    }


def test_what_three_chips_have_in_common_is_one_annotation(ran: Ran) -> None:
    errors = [event["raw"].strip() for event in ran.commands("Strict", "Gate and report", "error")]
    (large,) = [line for line in errors if "too large" in line]
    assert "file=strict.yaml,line=5::wide on SM8550, SM8650, SM8750: " in large
    assert ran.commands("Strict", "Compile wide-000", "error") == []  # told once, by the job that reports


def test_a_graph_that_cannot_be_prepared_is_told_and_stops_no_other(ran: Ran) -> None:
    assert ran.outcome("Strict", "Prepare gone", "convert") == "failure"
    (error,) = [event["raw"] for event in ran.commands("Strict", "Prepare gone", "error")]
    assert "gone.onnx" in error
    (lost,) = [
        event["raw"]
        for event in ran.commands("Strict", "Gate and report", "error")
        if "Nothing is known" in event["raw"]
    ]
    assert "gone on SM8550, SM8650, SM8750" in lost


def test_a_graph_of_one_shard_is_prepared_there(ran: Ran) -> None:
    assert "Prepare single" not in ran.jobs("Strict")
    said = ran.said("Strict", "Compile single-000")
    assert "single: prepare done" in said
    assert "single-SM8550: compile done" in said


def test_every_job_has_our_code_from_this_workflows_commit() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    for job in jobs.values():
        own = [step["with"] for step in job["steps"] if step.get("with", {}).get("path") == ".qnnci"]
        assert [(each["repository"], each["ref"]) for each in own] == [
            ("${{ job.workflow_repository }}", "${{ job.workflow_sha }}")
        ]


def test_names_of_artifacts_have_all_that_tells_their_jobs_apart() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    names = [
        (job["strategy"]["matrix"]["row"] if "strategy" in job else "", step["with"]["name"])
        for job in jobs.values()
        for step in job["steps"]
        if "upload-artifact" in step.get("uses", "")
    ]
    assert len({name for _, name in names}) == 4
    assert all(name.startswith("${{ inputs.artifact }}-") for _, name in names)
    assert all(("matrix.row." in name) == bool(matrix) for matrix, name in names)
