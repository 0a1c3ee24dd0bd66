"""The task metric of `verify: {command: …}`: run with the graph and with each binary, judged, kept, told."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci import manifest
from qnnci.build.task import judge
from qnnci.errors import UsageError
from qnnci.project import Verify
from qnnci.project_file import validate

compiled = pytest.mark.skipif(sys.version_info < (3, 11), reason="no embedded compiler on this Python")

# Classifies three fixed images by the largest mean; where it runs is in the report's own words, for the test to read.
SCRIPT = """\
import json, sys
import numpy as np
from qnnci.runtime import load
model, report = sys.argv[1:3]
with load(model) as runner, open("places", "a") as places:
    print(runner.place, file=places)
    got = [runner.run({"image": image}) for image in np.load("images.npz")["images"]]
labels = [int(each["features"].mean(axis=(0, 2, 3)).argmax()) for each in got]
json.dump({"reference": json.load(open("labels.json")), "hypothesis": labels}, open(report, "w"))
"""
COMMAND = "python score.py {model} {report}"


def written(folder: Path, script: str = SCRIPT, **verify: object) -> None:
    graphs.cnn(folder / "g.onnx")
    (folder / "score.py").write_text(script)
    images = np.random.default_rng(0).uniform(-1, 1, (3, 1, 3, 8, 8)).astype(np.float32)
    np.savez(folder / "images.npz", images=images)
    (folder / "labels.json").write_text("[0, 0, 0]")
    settings = {"command": COMMAND, "metric": "top1", "reads": ["images.npz", "labels.json"], **verify}
    project(folder, {"g": {"source": "g.onnx"}}, ["SM8550", "SM8750"], verify=settings)


@compiled
def test_the_command_is_run_with_the_graph_and_with_each_binary_once(tmp_path):
    written(tmp_path, max_decrease=0)
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert sorted((tmp_path / "places").read_text().split()) == ["cpu", "emulator", "emulator"]
    entries = manifest.load(tmp_path / "build/manifest.json").entries
    for entry in entries:
        assert entry.task is not None
        assert (entry.task.metric, entry.task.samples, entry.task.value) == ("top1", 3, entry.task.cpu)
    assert f"top1 {entries[0].task.value:.4g} ({entries[0].task.cpu:.4g})" in ended.said
    assert not list(tmp_path.rglob("*report.json"))
    assert qnnci("build", cwd=tmp_path).code == 0
    assert len((tmp_path / "places").read_text().split()) == 3  # kept
    (tmp_path / "labels.json").write_text("[1, 1, 1]")
    assert qnnci("build", cwd=tmp_path).code == 0
    assert len((tmp_path / "places").read_text().split()) == 6  # what it reads has changed


@compiled
def test_a_bound_that_is_missed_fails_the_build(tmp_path):
    written(tmp_path, SCRIPT.replace('json.load(open("labels.json"))', "[9, 9, 9]"), min=0.5)
    summary = tmp_path / "summary"
    ended = qnnci("build", cwd=tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert ended.code == 1
    told = "top1 is 0 on the binary and 0 on the CPU; it must be at least 0.5"
    assert f"task-metric g on SM8550, SM8750: {told}" in ended.said
    assert "| metric (CPU) |" in summary.read_text()
    assert "| top1 0 (0) |" in summary.read_text()


@compiled
@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("raise SystemExit('no data today')", "exit code 1: no data today"),
        ("pass", "cannot read the report"),
        ("import sys; open(sys.argv[2], 'w').write('[]')", "the report is a list"),
        ("import sys; open(sys.argv[2], 'w').write('{\"value\": NaN}')", "not finite"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
def test_a_command_that_fails_says_why(tmp_path, script, told):
    written(tmp_path, script)
    ended = qnnci("build", "--soc", "SM8750", cwd=tmp_path)
    assert ended.code == 4, ended.said
    assert told in ended.said
    assert "metric-failed" in ended.said
    assert "Traceback" not in ended.said


def test_a_file_that_it_should_read_is_missed(tmp_path):
    written(tmp_path, reads=["nothing-*.wav"])
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code in {2, 3}
    if sys.version_info >= (3, 11):
        assert "no file fits 'nothing-*.wav' of the metric's inputs" in ended.said


@pytest.mark.parametrize(
    ("verify", "value", "told"),
    [
        ({"max": 0.1}, 0.1, ""),
        ({"max": 0.1}, 0.11, "at most 0.1"),
        ({"min": 0.9}, 0.8, "at least 0.9"),
        ({"max_increase": 0.05}, 0.55, ""),
        ({"max_increase": 0.05}, 0.56, "at most 0.05 above the CPU's"),
        ({"max_decrease": 0.05}, 0.44, "at most 0.05 below the CPU's"),
        ({"max_decrease": 0.05}, 0.9, ""),
    ],
)
def test_bounds(verify, value, told):
    settings = Verify(command=COMMAND, metric="wer", severity="warning", **verify)
    found = judge("wer", value, 0.5, settings)
    assert [each.severity for each in found] == (["warning"] if told else [])
    assert all(told in each.message for each in found)


@pytest.mark.parametrize(
    ("verify", "told"),
    [
        ({"command": "python a.py {report}", "metric": "wer"}, "{model}"),
        ({"command": "python a.py {model}", "metric": "wer"}, "{report}"),
        ({"command": COMMAND}, "name the `metric`"),
        ({"metric": "wer"}, "`command`, which is missing"),
        ({"max_increase": 1}, "`command`, which is missing"),
        ({"command": "python 'a {model} {report}", "metric": "wer"}, "not a command"),
        ({"command": COMMAND, "metric": "wer", "max_increase": -1}, "greater than or equal to 0"),
    ],
)
def test_what_is_no_task(verify, told):
    data = {"name": "x", "socs": ["SM8750"], "graphs": {"g": {"source": "g.onnx"}}, "verify": verify}
    with pytest.raises(UsageError) as error:
        validate(data, "qnn.yaml")
    assert told in str(error.value)


def test_manifests_without_one_are_read_as_before(tmp_path):
    from test_shards import entry
    from test_shards import manifest as made

    manifest.save(tmp_path / "manifest.json", made(entry("a", "SM8750")))
    data = json.loads((tmp_path / "manifest.json").read_text())
    del data["entries"][0]["task"]
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    assert manifest.load(tmp_path / "manifest.json").entries[0].task is None
