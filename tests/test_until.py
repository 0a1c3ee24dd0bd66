"""What is done once for each graph travels: another folder, other times, other paths, and nothing is done again."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import onnx
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci import manifest

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")


@pytest.fixture
def sender(tmp_path):
    """A project whose weights stand beside the model, and whose feeds are given."""
    folder = tmp_path / "sender"
    folder.mkdir()
    graphs.cnn(folder / "cnn.onnx")
    model = onnx.load(folder / "cnn.onnx")
    onnx.save(model, folder / "cnn.onnx", save_as_external_data=True, location="cnn.weights", size_threshold=0)
    port = model.graph.input[0]
    shape = [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim]
    np.savez(folder / "feeds.npz", **{port.name: np.ones(shape, np.float32)})
    project(folder, {"cnn": {"source": "cnn.onnx"}}, ["SM8550", "SM8750"], verify={"inputs": "feeds.npz"})
    return folder


def test_until_prepare_compiles_nothing_and_claims_nothing(sender):
    ended = qnnci("build", "--until", "prepare", cwd=sender)
    assert ended.code == 0, ended.said
    assert "passed: prepared cnn" in ended.said
    assert sorted(path.stem for path in (sender / "build/cnn/.stages").iterdir()) == ["check", "prepare", "reference"]
    assert not list((sender / "build").rglob("*.bin"))
    assert not (sender / "build/manifest.json").exists()


def test_a_graph_that_travelled_is_not_prepared_again(sender, tmp_path):
    assert qnnci("build", "--until", "prepare", cwd=sender).code == 0
    receiver = tmp_path / "another place"
    # As an artifact and a checkout bring files: the names and what is in them, and no more.
    shutil.copytree(sender, receiver, copy_function=shutil.copyfile)
    shutil.rmtree(sender)
    for path in receiver.rglob("*"):
        os.utime(path, (1, 1))
    ended = qnnci("build", "--graph", "cnn", "--soc", "SM8750", cwd=receiver)
    assert ended.code == 0, ended.said
    assert [line for line in ended.said.splitlines() if line.startswith("cnn: ")] == []
    assert "cnn-SM8750: compile done" in ended.said
    assert "cnn-SM8750: verify done" in ended.said
    made = manifest.load(receiver / "build/manifest.json")
    assert [target.soc for target in made.targets] == ["SM8750"]


@pytest.mark.parametrize("changed", ["cnn.weights", "feeds.npz"])
def test_what_changed_on_the_way_is_done_again(sender, changed):
    assert qnnci("build", "--until", "prepare", cwd=sender).code == 0
    path = sender / changed
    if changed == "feeds.npz":
        with np.load(path) as feeds:
            np.savez(path, **{name: feeds[name] * 2 for name in feeds})
    else:
        path.write_bytes(path.read_bytes()[::-1])
    ended = qnnci("build", "--until", "prepare", cwd=sender)
    stage = "reference" if changed == "feeds.npz" else "prepare"
    assert f"cnn: {stage} done" in ended.said


def test_what_a_check_refuses_is_told_before_anything_is_compiled(tmp_path):
    graphs.with_det(tmp_path / "det.onnx")
    project(tmp_path, {"det": {"source": "det.onnx"}, "gone": {"source": "gone.onnx"}}, ["SM8550"])
    ended = qnnci("build", "--until", "prepare", cwd=tmp_path)
    assert ended.code == 2
    assert "gone.onnx" in ended.said
    assert json.loads((tmp_path / "build/det/.stages/check.json").read_text())["findings"]
