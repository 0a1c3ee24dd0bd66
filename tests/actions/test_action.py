"""action.yml run for real, by act on this machine: what callers get, and what hostile inputs do not get."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ship import hub_server
from tests.ship.release_server import TOKEN, serving

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
LOCAL = ROOT / "tests/actions/local"
PINNED = r"uses: actions/([\w-]+)[\w/-]*@([0-9a-f]{40})"

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")

# What git takes as the name of a branch, and what a shell or the log would make something of.
BRANCH = "x'\"$(touch${IFS}$RUNNER_TEMP/pwned)`touch${IFS}$RUNNER_TEMP/pwned`&&%0A%0D;##{error]forged"
FILE = "x'\"$(touch $RUNNER_TEMP\\pwned)`id`%0A::error title=forged::forged\n::error title=forged::forged.onnx"
NODE = "det\n::error title=forged::forged\r##[error]forged%0A::warning::forged $(touch $RUNNER_TEMP/pwned)"
PROJECT = """\
name: tiny
socs: [SM8550, SM8750]
graphs:
  tiny:
    source: tiny.onnx
    inputs: {x: [1, 3, 8, 8]}
"""


@dataclass(frozen=True)
class Acted:
    """What act logged of one run."""

    code: int
    events: tuple[dict[str, Any], ...]

    def of(self, *step: str) -> list[dict[str, Any]]:
        """Events of a step and of the steps inside it."""
        return [event for event in self.events if event.get("stepID", [])[: len(step)] == [*step]]

    def outputs(self, *step: str) -> dict[str, str]:
        """Outputs of a step itself."""
        said = [event for event in self.events if event.get("stepID") == [*step]]
        return {event["name"]: event.get("arg", "") for event in said if event.get("command") == "set-output"}

    def outcome(self, *step: str) -> str:
        results = [
            event["stepResult"] for event in self.events if event.get("stepID") == [*step] and "stepResult" in event
        ]
        return results[0] if results else "skipped"

    def annotations(self, *step: str) -> list[tuple[dict[str, str], str]]:
        """Properties and text of errors, parsed as GitHub does: act takes the last `::` for the end of properties."""
        found = [event["raw"].strip() for event in self.of(*step) if event.get("command") == "error"]
        parts = [line.removeprefix("::error").split("::", 1) for line in found]
        return [(dict(re.findall(r"(\w+)=([^,]*)", properties)), text) for properties, text in parts]

    def log(self, *step: str) -> str:
        return "".join(event["msg"] for event in self.of(*step) if event.get("raw_output"))


@pytest.fixture(scope="module")
def acted(tmp_path_factory: pytest.TempPathFactory) -> Acted:
    """One run for all tests, and for all of pytest-xdist's workers: installing is most of its time."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    log = shared / "act.log"
    with (shared / "act.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not log.exists():
            log.write_text(run_act(tmp_path_factory.mktemp("act")))
    code, *lines = log.read_text().split("\n")
    return Acted(int(code), tuple(json.loads(line) for line in lines if line.startswith("{")))


def stand_ins() -> list[str]:
    """Options of act: whatever of GitHub's own actions anything here names is one of those in `local`."""
    texts = [
        path.read_text() for pattern in (".github/workflows/*.yml", "**/action.yml") for path in ROOT.glob(pattern)
    ]
    pins = {(f"actions/{name}@{sha}", name) for text in texts for name, sha in re.findall(PINNED, text)}
    return [part for pin, name in sorted(pins) for part in ("--local-repository", f"{pin}={LOCAL / name}")]


def run_act(work: Path) -> str:
    """Run the workflow in a copy of this repository: the exit code on the first line, then the log, JSON by line."""
    repository = work / "repository"
    copy_project(repository)
    write_model(repository / "model")
    write_hostile(repository / "model")
    commit(repository)
    with serving() as github, hub_server.serving() as hub:
        done = subprocess.run(
            [
                BIN / "act", "workflow_dispatch", "--json", "--directory", repository,
                "-W", "tests/actions/workflow.yml", "-P", "ubuntu-24.04=-self-hosted",
                "--env", f"TEST_PYTHON={sys.executable}",
                "--env", f"TEST_GITHUB={github.root}", "--env", f"TEST_TOKEN={TOKEN}",
                "--env", f"HF_ENDPOINT={hub.root}", "--env", f"TEST_HF_TOKEN={hub_server.TOKEN}",
                "--local-repository", f"a-fork/of-it@0123456789abcdef0123456789abcdef01234567={repository}",
                *stand_ins(), "--env", f"TEST_CACHES={work}",
            ],
            env=environment(work),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )  # fmt: skip
    return f"{done.returncode}\n{done.stdout}"


def commit(repository: Path) -> None:
    """Make a folder a repository, whose branch has a name that nobody should obey."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "t"]
    for each in (["git", "init", "-q", "-b", BRANCH], ["git", "add", "-A"], command):
        subprocess.run(each, cwd=repository, check=True)


def write_hostile(folder: Path) -> None:
    """A project whose file, folder and node have names of the same kind, and that fails, so that all are told."""
    import onnx
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 3])]
    ports += [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
    graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"], NODE)], "g", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / FILE)
    project = {"name": "hostile", "socs": ["SM8750"], "graphs": {"g": {"source": FILE}}}
    (folder / "hostile.yaml").write_text(json.dumps(project))


def copy_project(to: Path) -> None:
    """What git would take, with changes that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def write_model(folder: Path) -> None:
    """A graph small enough to compile in no time, a project that passes, and one whose gate nothing passes."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir(parents=True)
    weights = numpy_helper.from_array(np.linspace(-1, 1, 8 * 3 * 3 * 3, dtype=np.float32).reshape(8, 3, 3, 3), "w")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 8, 8])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "tiny.onnx")
    (folder / "qnn.yaml").write_text(PROJECT)
    (folder / "strict.yaml").write_text(PROJECT + "gates: {binary_mb: {max: 0}}\n")
    (folder / "export.py").write_text(
        "import os, shutil, sys; print(os.environ.get('MODE'), os.environ.get('TEST_SECRET'))\n"
        "shutil.copy(*sys.argv[1:])\n"
    )
    image = np.zeros((2, 1, 3, 8, 8), np.float32)
    np.savez(folder / "original.npz", feed_x=image, want_y=np.zeros((2, 1, 8, 8, 8), np.float32))
    # Python must not take this for the package of the same name.
    (folder / "pip.py").write_text("raise SystemExit('the wrong pip')\n")
    (folder / "onnx.py").write_text("raise SystemExit('the wrong onnx')\n")


def environment(work: Path) -> dict[str, str]:
    """This machine without a CI it may be part of, and without traces of act in the home folder."""
    foreign = ("GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_", "QNNCI_", "PYTEST_", "CI")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    pip = subprocess.run([sys.executable, "-m", "pip", "cache", "dir"], check=True, capture_output=True, text=True)
    config = work / "config"
    config.mkdir()
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if (home / "pip").is_dir():
        (config / "pip").symlink_to(home / "pip")
    return env | {
        "PIP_CACHE_DIR": pip.stdout.strip(),
        "XDG_CACHE_HOME": str(work / "cache"),
        "XDG_CONFIG_HOME": str(config),
    }


def test_a_model_that_passes(acted: Acted) -> None:
    outputs = acted.outputs("passes")
    assert acted.outcome("passes") == "success", acted.log("passes")
    assert outputs["result"] == "pass"
    assert outputs["manifest"] == "model/build/manifest.json"
    assert outputs["directory"] == "model/build"
    assert outputs["errors"] == "0"
    binaries = json.loads(outputs["binaries"])
    assert [(binary["graph"], binary["soc"], binary["dsp_arch"]) for binary in binaries] == [
        ("tiny", "SM8550", "v73"),
        ("tiny", "SM8750", "v79"),
    ]
    assert acted.outcome("read") == "success"


def test_the_summary_has_a_row_for_each_binary(acted: Acted) -> None:
    summary = next(event["content"] for event in acted.of("passes", "build") if event.get("command") == "summary")
    assert "| ✅ | tiny | SM8550 (v73) | fp16 |" in summary
    assert "| ✅ | tiny | SM8750 (v79) | fp16 |" in summary


def test_it_is_installed_once_a_job(acted: Acted) -> None:
    groups = [event["job"].rpartition("/")[2].strip() for event in acted.events if event.get("command") == "group"]
    assert sorted(groups) == ["Build", "Light"]


def test_a_plan_needs_no_compiler(acted: Acted) -> None:
    assert acted.outcome("light") == "success", acted.log("light")
    (row,) = json.loads(acted.outputs("light")["shards"])
    assert row == {"id": "tiny-000", "graph": "tiny", "socs": "SM8550,SM8750", "prepared": False}


def test_nested_in_another_composite_action(acted: Acted) -> None:
    assert acted.outcome("nested") == "success", acted.log("nested")
    outputs = acted.outputs("nested")
    assert (outputs["result"], outputs["graphs"]) == ("pass", '[{"graph":"tiny"}]')


def test_from_a_fork_at_a_commit(acted: Acted) -> None:
    assert acted.outcome("fork") == "success", acted.log("fork")
    assert acted.outputs("fork")["manifest"] == "model/build/manifest.json"


VERBS = (
    "setup",
    "plan",
    "check",
    "export",
    "export-flags",
    "prepare",
    "convert",
    "compile",
    "inspect",
    "verify",
    "manifest",
    "judge",
    "bundle",
    "libraries",
    "publish",
    "huggingface",
)
BUNDLED = ("SM8550", "SM8750", "SM8650")


@pytest.mark.parametrize("step", VERBS)
def test_each_verb_has_an_action_that_works_alone(acted: Acted, step: str) -> None:
    assert acted.outcome(step) == "success", acted.log(step)
    assert acted.outputs(step).get("result", "pass") == "pass"


def test_what_the_actions_of_one_verb_say(acted: Acted) -> None:
    assert acted.outcome("setup-read") == "success"
    plan = acted.outputs("plan")
    assert json.loads(plan["graphs"]) == json.loads(plan["prepare"]) == [{"graph": "tiny"}]
    assert [shard["socs"] for shard in json.loads(plan["shards"])] == ["SM8550", "SM8750"]
    assert plan["directory"] == "model/build"
    assert acted.outputs("prepare")["directory"] == "model/apart"
    assert "tiny: prepare done" in acted.log("prepare")
    assert "tiny: prepare done" not in acted.log("compile")
    assert json.loads(acted.outputs("inspect")["info"])["dsp_arch"] == 75
    assert json.loads(acted.outputs("verify")["parity"])["samples"] == 2
    paths = [binary["path"].split("/")[:2] for binary in json.loads(acted.outputs("judge")["binaries"])]
    assert paths == [["model", "build"], ["model", "build"], ["model", "apart"]]
    archives = json.loads(acted.outputs("bundle")["archives"])
    assert [(each["soc"], each["graphs"]) for each in archives] == [(soc, ["tiny"]) for soc in BUNDLED]
    assert [each["path"] for each in archives] == [f"joined/bundles/tiny-{soc}.zip" for soc in BUNDLED]


def test_what_an_export_gives(acted: Acted) -> None:
    said = acted.outputs("export")
    assert said["model"] == "examples/letters-export/build/reader/prepared.onnx"
    assert [each["graph"] for each in json.loads(said["models"])] == ["reader"]
    figures = json.loads(said["parity"])["reader"]
    assert figures["outputs"]["logits"]["snr_db"] > 100
    assert figures["metrics"]["cer"] == {"value": 0, "samples": 8}
    said = acted.outputs("export-flags")
    assert (said["model"], said["directory"]) == ("exports/copied/prepared.onnx", "exports")
    assert json.loads(said["parity"])["copied"]["outputs"]["y"]["max_abs"] == 0
    assert "s3cret-value" not in acted.log("export-flags")
    assert acted.outcome("export-fails") == "failure"
    said = acted.outputs("export-fails")
    assert (said["result"], said["models"], said["parity"]) == ("fail", "[]", "{}")
    ((properties, text),) = acted.annotations("export-fails")
    assert properties["title"] == "The export command failed"
    assert "there-is-none.onnx" in text


def test_the_libraries_of_the_binaries(acted: Acted) -> None:
    said = acted.outputs("libraries")
    assert (said["archive"], said["sha256"], said["version"]) == ("", "", "2.51.0.260929")
    assert said["directory"] == "joined/runtime-libs/qnn-libs-2.51.0.260929"
    assert acted.outcome("libraries-fail") == "failure"
    assert acted.outputs("libraries-fail")["result"] == "fail"


def test_a_release_of_the_bundles(acted: Acted) -> None:
    said = acted.outputs("publish")
    assert said["url"] == "https://github.com/org/model/releases/tag/v1"
    assert json.loads(said["tags"]) == ["v1"]
    assert {each["name"] for each in json.loads(said["assets"])} == {f"tiny-{soc}.zip" for soc in BUNDLED}
    assert acted.outcome("publish-fails") == "failure"
    assert acted.outputs("publish-fails")["result"] == "fail"
    assert "there is no file x'" in acted.log("publish-fails")
    assert TOKEN not in acted.log("publish")


def test_a_repo_on_the_hub(acted: Acted) -> None:
    said = acted.outputs("huggingface")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/org/model", said["url"])
    assert re.fullmatch(r"[0-9a-f]{40}", said["commit"])
    assert said["pull-request"] == ""
    names = {each["name"] for each in json.loads(said["assets"])}
    assert "tiny-SM8550.zip" in names
    assert {name.rsplit("/", 1)[0] for name in names if name.endswith(".bin")} == {f"tiny/{soc}" for soc in BUNDLED}
    assert f"made private {said['url']}" in acted.log("huggingface")
    assert acted.outcome("huggingface-fails") == "failure"
    assert acted.outputs("huggingface-fails")["result"] == "fail"
    assert "not a branch" in acted.log("huggingface-fails")
    assert hub_server.TOKEN not in acted.log("huggingface") + acted.log("huggingface-fails")


def test_actions_of_one_verb_fail_where_they_must(acted: Acted) -> None:
    assert acted.outcome("verify-fails") == acted.outcome("judge-fails") == "failure"
    assert acted.outputs("verify-fails")["result"] == acted.outputs("judge-fails")["result"] == "fail"
    ((_, text),) = acted.annotations("judge-fails")
    assert text.startswith("tiny on SM8550, SM8750: it was planned")


def test_binaries_make_a_matrix(acted: Acted) -> None:
    rows = sorted(event["msg"].strip() for event in acted.of("row") if event.get("raw_output"))
    assert rows == ["row tiny SM8550 fp16", "row tiny SM8750 fp16"]


def test_a_gate_that_fails_fails_the_step_and_the_job(acted: Acted) -> None:
    assert acted.outcome("gate") == "failure"
    assert acted.outcome("never") == "skipped"
    assert acted.code == 1
    assert acted.outputs("gate")["result"] == "fail"


def test_a_caller_that_goes_on_can_read_why(acted: Acted) -> None:
    outputs = acted.outputs("gate-continued")
    assert acted.outcome("gate-continued") == "failure"
    assert (outputs["result"], outputs["binaries"]) == ("fail", "[]")
    assert int(outputs["errors"]) > 0
    assert outputs["manifest"] == "model/build/manifest.json"
    (annotation,) = [found for found in acted.annotations("gate-continued") if "tiny on SM8550, SM8750" in found[1]]
    assert annotation[0]["file"] == "model/strict.yaml"
    assert annotation[0]["title"] == "The binary is too large"


def test_a_hostile_folder_is_only_a_folder(acted: Acted) -> None:
    outputs = acted.outputs("one-model")
    assert acted.outcome("one-model") == "success", acted.log("one-model")
    assert set(outputs) == {"result", "manifest", "report", "directory", "binaries", "errors", "warnings"}
    assert outputs["report"] == f"{outputs['directory']}/report.html"
    assert outputs["directory"].startswith("x'\"; $(touch")
    assert outputs["directory"].endswith("EOF")
    paths = [binary["path"] for binary in json.loads(outputs["binaries"])]
    assert len(paths) == 2
    assert all(path.startswith(outputs["directory"] + "/") for path in paths)


@pytest.mark.parametrize("which", ["model", "socs", "jobs", "config", "python", "check", "plan", "export"])
def test_a_hostile_input_is_refused_as_text(acted: Acted, which: str) -> None:
    step = f"hostile-{which}"
    assert acted.outcome(step) == "failure"
    outputs = acted.outputs(step)
    assert (outputs["result"], outputs.get("binaries", "[]"), outputs["errors"]) == ("fail", "[]", "1")
    ((properties, text),) = acted.annotations(step)
    assert properties["title"] == "qnnci"
    # Chips are separated by spaces, and the first that is none ends it: here, the part before the command.
    assert ("unknown SoC 'x" if which == "socs" else "$(touch") in text


def test_hostile_names_in_a_repository_are_told_and_no_more(acted: Acted) -> None:
    assert acted.outcome("hostile-names") == "failure"
    outputs = acted.outputs("hostile-names")
    assert (outputs["result"], outputs["binaries"]) == ("fail", "[]")
    told = [text for properties, text in acted.annotations("hostile-names") if properties["title"] != "qnnci"]
    assert any("node det" in text and "HTP has no Det" in text for text in told), told
    summary = next(
        event["content"] for event in acted.of("hostile-names", "build") if event.get("command") == "summary"
    )
    assert not [line for line in summary.splitlines() if line.startswith(("::", "##["))]


def test_nothing_of_a_hostile_input_was_obeyed(acted: Acted) -> None:
    titles = [properties.get("title") for properties, _ in acted.annotations()]
    assert "qnnci" in titles
    assert "forged" not in titles
    assert "forged" not in [text for _, text in acted.annotations()]
    check = [event for event in acted.events if event.get("step") == 'test ! -e "$RUNNER_TEMP/pwned"']
    assert [event["stepResult"] for event in check if "stepResult" in event] == ["success"]
