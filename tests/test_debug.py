"""`qnnci debug graph`: the layer that loses the numbers is named, on real models in the emulator."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci.model.layers import Layer
from qnnci.report.layers import advice, by_node

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")


def layer(op="Conv", snr=20.0, before=60.0, **more):
    return Layer("t", 0, "n", op, snr, before, **{"peak": 1.0, "alone_db": 20.0, **more})


@pytest.mark.parametrize(
    ("of", "precision", "said"),
    [
        (layer(snr=None), "fp16", "overflow"),
        (layer(peak=70000.0), "fp16", "overflow"),
        (layer("Sigmoid", ends=("y",)), "fp16", "compute Sigmoid in the app"),
        (layer("Sigmoid"), "fp16", "too coarse"),
        (layer(alone_db=60.0), "fp16", "mend the layers before"),
        (layer("LSTM"), "fp16", "gates"),
        (layer(), "w8a8", "keep: {fp16: [n]}"),
        (layer("Relu", parts=("conv",)), "w8a8", "keep: {fp16: [conv, n]}"),
    ],
)
def test_each_cause_has_its_advice(of, precision, said):
    assert said in advice(of, precision)


def test_a_node_is_told_once():
    worse = layer(snr=10.0)
    assert by_node([layer(), worse, layer(snr=15.0)]) == [worse]


def test_what_ruins_silero_vad_in_fp16(tmp_path, models):
    inputs = {"input": [1, 576], "state": [2, 1, 128], "sr": {"value": 16000}}
    project(tmp_path, {"vad": {"source": str(models("silero_vad.onnx")), "inputs": inputs}}, ["SM8750"])
    ended = qnnci("debug", "graph", cwd=tmp_path)
    assert ended.code == 0, ended.said
    told = [line for line in ended.said.splitlines() if line.startswith("→ ")]
    assert len(told) == 2
    assert "LSTM: its gates and its state" in told[0]
    assert "Sigmoid: it ends in output: make its input" in told[1]
    ET.parse(tmp_path / "build/vad/layers_vad_fp16_SM8750_v79.svg")  # noqa: S314 - our own file
    layers = json.loads((tmp_path / "build/vad/layers_vad_fp16_SM8750_v79.json").read_text())
    worst = min(layers, key=lambda each: each["snr_db"])
    assert worst["op"] in {"Sigmoid", "Squeeze"}
    # Simulated, functions are exact: the LSTM is not blamed, and at most the last op enlarges its input's error.
    ended = qnnci("debug", "graph", "--simulate", "--json", cwd=tmp_path)
    assert {each["op"] for each in json.loads(ended.said)} <= {"Sigmoid"}
    assert len(json.loads((tmp_path / "build/vad/layers_simulated.json").read_text())) == len(layers)


def test_an_overflow_is_found_where_it_begins(tmp_path):
    graphs.overflowing(tmp_path / "a.onnx")
    project(tmp_path, {"a": {"source": "a.onnx"}}, ["SM8550"])
    ended = qnnci("debug", "graph", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.said
    found = json.loads(ended.said)
    assert found[0]["node"] == "square"
    assert "overflow fp16" in found[0]["advice"]


def test_what_ruins_a_graph_in_8_bits_and_is_cured_by_keeping_it(tmp_path):
    graphs.spreading(tmp_path / "a.onnx")
    np.savez(tmp_path / "feeds.npz", x=np.random.default_rng(0).uniform(-1, 1, (8, 1, 3, 8, 8)).astype(np.float32))
    graph = {"source": "a.onnx", "calibration": "feeds.npz", "simplify": False}
    project(tmp_path, {"a": graph}, ["SM8550"], precision="w8a8")
    ended = qnnci("debug", "graph", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.said
    (found,) = json.loads(ended.said)
    assert (found["node"], found["op"]) == ("gather", "Mul")
    assert "keep: {fp16: [gather]}" in found["advice"]
    graph |= {"quantize": {"keep": {"fp16": ["spread", "gather"]}, "io": "ufixed16"}}
    project(tmp_path, {"a": graph}, ["SM8550"], precision="w8a8")
    ended = qnnci("debug", "graph", "--json", cwd=tmp_path)
    assert (ended.code, json.loads(ended.said)) == (0, []), ended.said


def test_a_graph_that_is_well(tmp_path):
    graphs.cnn(tmp_path / "a.onnx")
    project(tmp_path, {"a": {"source": "a.onnx"}}, ["SM8550"])
    ended = qnnci("debug", "graph", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "in none of 2 layers does the error jump; the worst has" in ended.said


def test_what_cannot_be_measured_is_told(tmp_path):
    for name in ("a", "b"):
        graphs.cnn(tmp_path / f"{name}.onnx")
    project(tmp_path, {name: {"source": f"{name}.onnx"} for name in ("a", "b")}, ["QCS6490"])
    for args, said in (
        ((), "name one: `--graph a`"),
        (("--graph", "a"), "no fp16"),
        (("--graph", "a", "--route", "dlc"), "--route ort"),
        (("--graph", "c"), "no graph"),
    ):
        ended = qnnci("debug", "graph", *args, cwd=tmp_path)
        assert (ended.code, said in ended.said) == (2, True), ended.said
    (tmp_path / "a.onnx").write_bytes(b"not a model")
    ended = qnnci("debug", "graph", "--graph", "a", "--soc", "SM8550", cwd=tmp_path)
    assert (ended.code, "not ONNX" in ended.said) == (2, True)
