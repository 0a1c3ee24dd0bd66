"""What a build decides and reports, on graphs small enough to build many times."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci import manifest

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")


@pytest.fixture
def cnn(tmp_path):
    graphs.cnn(tmp_path / "cnn.onnx")
    return tmp_path


def test_a_model_and_a_chip_are_enough(cnn):
    ended = qnnci("build", "--model", "cnn.onnx", "--soc", "SM8750P,qcs9075", cwd=cnn)
    assert ended.code == 0, ended.said
    made = sorted(path.name for path in (cnn / "build").rglob("*.bin"))
    assert made == ["cnn_fp16_QCS9100_v73.bin", "cnn_fp16_SM8750_v79.bin"]
    told = manifest.load(cnn / "build/manifest.json")
    once = [each.stage for each in told.stages if (each.graph, each.soc) == ("cnn", "")]
    assert once == ["source", "prepare", "check", "reference"]
    assert [each.stage for each in told.stages if each.soc == "SM8750"] == ["compile", "inspect", "verify"]
    assert all(each.state == "done" and each.began for each in told.stages)
    page = (cnn / "build/report.html").read_text()
    assert "passed: 2 of 2 binaries are good" in page
    assert re.search(r"compile: [\d.]+ s", page)
    assert told.settings["graphs"]["cnn"]["gates"]["spill_fill_bytes"] == {"max": 0, "severity": "warning"}
    assert (cnn / "build/cnn/SM8750/cnn_fp16_SM8750_v79_ctx.onnx").exists()
    assert "QnnLogging" in (cnn / "build/cnn/SM8750/logs/compile.log").read_text()


@pytest.mark.parametrize(
    ("gates", "severity", "code"),
    [
        ({"parity": {"metric": "snr_db", "min": 500}}, "error parity", 1),
        ({"parity": {"metric": "snr_db", "min": 500, "severity": "warning"}}, "warning parity", 0),
        ({"parity": {"metric": "max_abs", "max": 1e-9}}, "error parity", 1),
        ({"binary_mb": {"max": 0}}, "error binary-size", 1),
        ({"vtcm_mb": {"max": 4}}, "error vtcm", 1),
    ],
)
def test_a_gate_fails_and_the_binary_stands(cnn, gates, severity, code):
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"], gates=gates)
    ended = qnnci("build", cwd=cnn)
    assert ended.code == code
    assert severity in ended.said
    made = manifest.load(cnn / "build/manifest.json")
    assert made.passed == (code == 0)
    assert made.entries[0].passed == (code == 0)
    assert bool(made.devices) == (code == 0)  # what failed is not offered to phones


@pytest.mark.parametrize(("fail_on", "code"), [("error", 0), ("warning", 1), ("never", 0)])
def test_fail_on(cnn, fail_on, code):
    parity = {"metric": "snr_db", "min": 500, "severity": "warning"}
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"], gates={"parity": parity})
    assert qnnci("build", "--fail-on", fail_on, cwd=cnn).code == code


def test_fail_on_never_passes_a_failed_gate_but_not_a_missing_binary(cnn):
    graphs.with_det(cnn / "det.onnx")
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"], gates={"binary_mb": {"max": 0}})
    assert qnnci("build", "--fail-on", "never", cwd=cnn).code == 0
    project(cnn, {"det": {"source": "det.onnx"}}, ["SM8550"])
    assert qnnci("build", "--fail-on", "never", cwd=cnn).code == 1


def test_changing_a_gate_compiles_nothing(cnn):
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"])
    assert qnnci("build", cwd=cnn).code == 0
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"], gates={"binary_mb": {"max": 0}})
    ended = qnnci("build", cwd=cnn)
    assert ended.code == 1
    assert " done in " not in ended.said


def test_a_damaged_binary_is_made_again(cnn):
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"])
    assert qnnci("build", cwd=cnn).code == 0
    binary = cnn / "build/cnn/SM8550/cnn_fp16_SM8550_v73.bin"
    binary.write_bytes(binary.read_bytes()[:-1] + b"?")
    ended = qnnci("build", cwd=cnn)
    assert "cnn-SM8550: compile done" in ended.said
    assert "cnn: prepare done" not in ended.said


def test_given_inputs_are_what_is_run(cnn):
    np.savez(cnn / "feeds.npz", image=np.ones((3, 1, 3, 8, 8), np.float32))
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"], verify={"inputs": "feeds.npz"})
    assert qnnci("build", cwd=cnn).code == 0
    parity = manifest.load(cnn / "build/manifest.json").entries[0].parity
    assert parity is not None
    assert (parity.samples, parity.inputs) == (3, "feeds.npz")
    np.savez(cnn / "feeds.npz", image=np.ones((3, 1, 3, 8, 9), np.float32))
    ended = qnnci("build", cwd=cnn)
    assert ended.code == 2
    assert "image has shape [3, 1, 3, 8, 9], the graph wants [1, 3, 8, 8]" in ended.said


def test_one_chip_of_an_arch_can_stand_for_the_others(cnn):
    verify = {"targets": "one-per-arch"}
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550", "QCS8550", "SM8650"], verify=verify)
    ended = qnnci("build", cwd=cnn)
    assert ended.code == 0
    entries = manifest.load(cnn / "build/manifest.json").entries
    assert [entry.parity is not None for entry in entries] == [True, False, True]
    assert "SM8550 of the same dsp arch was verified in its place" in ended.said


def test_a_failure_can_stop_the_build(cnn):
    (cnn / "bad.onnx").write_bytes(b"")
    graph_of = {"bad": {"source": "bad.onnx"}, "cnn": {"source": "cnn.onnx"}}
    project(cnn, graph_of, ["SM8550"])
    ended = qnnci("build", "--fail-fast", "--jobs", "1", cwd=cnn)
    assert ended.code == 2
    assert "compile" not in ended.said


def test_a_precision_that_the_graph_does_not_have(cnn):
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"], precision="w8a8")
    ended = qnnci("build", cwd=cnn)
    assert ended.code == 1
    assert "quantize-needed" in ended.said


def test_another_precision_removes_the_binary_of_the_first(cnn):
    graphs.quantized(cnn / "q.onnx")
    project(cnn, {"q": {"source": "q.onnx"}}, ["SM8550", "QCS6490"], precision="w8a8")
    ended = qnnci("build", cwd=cnn)
    assert ended.code == 0, ended.said
    made = manifest.load(cnn / "build/manifest.json").entries
    assert [entry.binary for entry in made] == ["q/SM8550/q_w8a8_SM8550_v73.bin", "q/QCS6490/q_w8a8_QCS6490_v68.bin"]
    assert qnnci("build", "--precision", "fp16", "--soc", "SM8550", cwd=cnn).code == 0
    left = sorted(path.name for path in (cnn / "build/q/SM8550").glob("q_*"))
    assert left == ["q_fp16_SM8550_v73.bin", "q_fp16_SM8550_v73.json", "q_fp16_SM8550_v73_ctx.onnx"]


def test_matrix_shards_build_to_the_same_binaries(cnn):
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550", "SM8650"])
    plan = json.loads(qnnci("matrix", cwd=cnn).said)
    assert plan["graphs"] == [{"graph": "cnn"}]
    for shard in plan["shards"]:
        ended = qnnci("build", "--graph", shard["graph"], "--soc", shard["socs"], "--no-verify", cwd=cnn)
        assert ended.code == 0, ended.said
    assert len(list((cnn / "build").rglob("*.bin"))) == 2


def test_a_build_that_did_not_end_leaves_no_word_that_it_passed(cnn):
    project(cnn, {"cnn": {"source": "cnn.onnx"}}, ["SM8550"])
    assert qnnci("build", cwd=cnn).code == 0
    (cnn / "cnn.onnx").write_bytes(b"")  # ends before anything is compiled
    assert qnnci("build", cwd=cnn).code == 2
    assert not manifest.load(cnn / "build/manifest.json").passed
    graphs.with_det(cnn / "cnn.onnx")  # is refused by the compiler: the binary that stands there is another graph's
    assert qnnci("build", cwd=cnn).code == 1
    assert not (cnn / "build/cnn/SM8550/cnn_fp16_SM8550_v73.json").exists()
    page = (cnn / "build/report.html").read_text()
    assert '<span class="marked">' in page  # the line of the log
    assert "Unsupported nodes in QNN EP" in page
    assert qnnci("build", "--until", "prepare", cwd=cnn).code == 0
    assert not (cnn / "build/report.html").exists()


def test_a_forecast_is_told_where_the_compiler_names_no_node(tmp_path):
    shape = [1, 2, 2, 2, 2, 2]
    nodes = [onnx.helper.make_node("Add", ["x", "x"], ["y"], name="add6")]
    graphs.save(tmp_path / "six.onnx", nodes, {"x": shape}, {"y": shape})
    ended = qnnci("build", "--model", "six.onnx", "--soc", "SM8550", cwd=tmp_path)
    assert ended.code == 1
    assert "add6" in ended.said


def test_an_output_that_nothing_computes_is_named_before_compiling(tmp_path):
    relu = onnx.helper.make_node("Relu", ["x"], ["y"], name="relu")
    graphs.save(tmp_path / "idle.onnx", [relu], {"x": [1, 4]}, {"y": [1, 4], "x": [1, 4]})
    ended = qnnci("build", "--model", "idle.onnx", "--soc", "SM8550", cwd=tmp_path)
    assert ended.code == 1
    assert "error idle-output idle: output x is an input of the graph" in ended.said
    assert "compile" not in ended.said.split("✗")[0]
