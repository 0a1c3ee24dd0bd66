"""`qnnci export`: from a project file and from flags alone, with what GitHub is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support import graphs
from support.command import Ended, project, qnnci

COPIER = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
RUN = "python export.py cnn.onnx {output}"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a dynamic graph, the script that exports it, and what the original gives."""
    graphs.cnn(tmp_path / "cnn.onnx", batch="n")
    (tmp_path / "export.py").write_text(COPIER)
    session = onnxruntime.InferenceSession(str(tmp_path / "cnn.onnx"), providers=["CPUExecutionProvider"])
    feeds = np.random.default_rng(3).standard_normal((3, 1, 3, 8, 8)).astype(np.float32)
    wants = np.stack([session.run(None, {"image": feed})[0] for feed in feeds])
    np.savez(tmp_path / "ref.npz", feed_image=feeds, want_features=wants)
    return tmp_path


def on_github(repo: Path, *args: object, **env: str) -> tuple[Ended, dict[str, str], str]:
    """What was said, the step's outputs and its summary."""
    files = {name: repo / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    given = {name: str(path) for name, path in files.items()}
    ended = qnnci("export", *args, cwd=repo, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(repo), **given, **env)
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    outputs = {line.split("<<")[0]: lines[number + 1] for number, line in enumerate(lines) if "<<qnnci-" in line}
    return ended, outputs, files["GITHUB_STEP_SUMMARY"].read_text()


def figures(summary: str) -> str:
    """The line of the graph `net`: two float32 programs of one model, one of them optimised."""
    found = re.search(r"^- net: (cosine (1\.0{6}|0\.9{6}), SNR [12]\d\d\.\d dB)$", summary, re.MULTILINE)
    assert found
    return found[1]


def test_flags_alone(repo):
    flags = ("--name", "net", "--reference", "ref.npz", "--input", "image=1,3,8,8", "--output", "made")
    ended, outputs, summary = on_github(repo, "--run", RUN, *flags)
    assert ended.code == 0, ended.said
    assert f"the export of net against the original, on the CPU: {figures(summary)}" in ended.said
    assert "passed: wrote made/net/prepared.onnx" in ended.said
    prepared = onnx.load(repo / "made/net/prepared.onnx")
    assert [dim.dim_value for dim in prepared.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 8, 8]
    assert {key: outputs[key] for key in ("result", "directory", "model", "errors")} == {
        "result": "pass",
        "directory": "made",
        "model": "made/net/prepared.onnx",
        "errors": "0",
    }
    [model] = json.loads(outputs["models"])
    assert (model["graph"], model["path"]) == ("net", "made/net/prepared.onnx")
    assert json.loads(outputs["parity"])["net"]["outputs"]["features"]["snr_db"] > 100
    assert summary.startswith("## ✅ net: exported net\n")
    assert not (repo / "made/manifest.json").exists()


def test_variables_as_the_action_gives_them(repo):
    (repo / "export.py").write_text(f"import os\nprint(os.environ['MODE'], os.environ['PASSED'])\n{COPIER}")
    inputs = {"RUN": RUN, "ENV": "MODE=very fast\nPASSED", "INPUTS": "image=1,3,8,8", "GRAPH": "", "CONFIG": ""}
    env = {f"QNNCI_INPUT_{name}": value for name, value in inputs.items()}
    ended, outputs, _ = on_github(repo, **env, PASSED="s3cret-value")
    assert ended.code == 0, ended.said
    assert "very fast ***\n" in (repo / "build/model/logs/export.log").read_text()
    assert outputs["model"] == "build/model/prepared.onnx"


def test_a_project_file_and_only_what_it_exports(repo):
    graph = {"export": {"run": RUN}, "inputs": {"image": [1, 3, 8, 8]}}
    project(repo, {"a": graph, "b": graph, "fixed": {"source": "nowhere.onnx"}}, ["SM8550"])
    ended, outputs, _ = on_github(repo)
    assert ended.code == 0, ended.said
    assert [each["graph"] for each in json.loads(outputs["models"])] == ["a", "b"]
    assert outputs["model"] == ""
    _, outputs, _ = on_github(repo, "--graph", "b")
    assert outputs["model"] == "build/b/prepared.onnx"
    ended = qnnci("export", "--graph", "fixed", cwd=repo)
    assert ended.code == 2
    assert "the graph 'fixed' has no `export`: qnn.yaml" in ended.said


def test_a_gate_that_is_missed_fails_it(repo):
    original = dict(np.load(repo / "ref.npz"))
    np.savez(repo / "ref.npz", **{**original, "want_features": -original["want_features"]})
    flags = ("--run", RUN, "--reference", "ref.npz", "--input", "image=1,3,8,8")
    ended, outputs, summary = on_github(repo, *flags)
    assert ended.code == 1, ended.said
    assert (outputs["result"], outputs["model"]) == ("fail", "build/model/prepared.onnx")
    assert json.loads(outputs["parity"])["model"]["outputs"]["features"]["cosine"] == pytest.approx(-1)
    assert summary.startswith("## ❌ model: exported model\n")
    assert "`export-parity`" in summary
    assert qnnci("export", *flags, "--fail-on", "never", cwd=repo).code == 0


def test_an_export_that_fails(repo):
    (repo / "export.py").write_text("raise SystemExit('no such checkpoint')")
    ended, outputs, summary = on_github(repo, "--run", RUN)
    assert ended.code == 4
    assert "failed: wrote nothing" in ended.said
    assert (outputs["result"], outputs["models"], outputs["parity"], outputs["errors"]) == ("fail", "[]", "{}", "1")
    assert summary.startswith("## ❌ model: no graph was exported\n")
    assert "no such checkpoint" in summary


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--run", "python export.py"), "say with `{output}` where the command is to write the .onnx file"),
        (("--run", RUN, "--config", "qnn.yaml"), "give --run or --config, not both"),
        (("--run", RUN, "--graph", "a"), "give --run or --graph, not both"),
        (("--run", RUN, "--name", "../a"), "../a"),
        (("--run", RUN, "--env", "A B=1"), "cannot read the variable 'A B=1'"),
        (("--run", RUN, "--export-python", "2.7"), "python"),
        (("--run", RUN, "--input", "image"), "cannot read the input 'image'"),
        (("--requirements", "r.txt"), "--requirements goes with --run"),
        (("--export-python", "3.10"), "--export-python goes with --run"),
        (("--graph", "b"), "the project has no graph 'b'"),
        ((), "no graph has an `export`: qnn.yaml"),
    ],
)
def test_flags_that_do_not_go(tmp_path, flags, said):
    project(tmp_path, {"fixed": {"source": "cnn.onnx"}}, ["SM8550"])
    ended = qnnci("export", *flags, cwd=tmp_path)
    assert ended.code == 2, ended.said
    assert said in ended.said
    assert not (tmp_path / "build").exists()
