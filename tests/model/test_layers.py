"""Which layers a graph has, and which of them lose the numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from support import graphs

from qnnci.model.layers import Alone, Layer, Tensor, chunks, ends, exposed, jumps, rounded, tensors
from qnnci.model.reference import Original

FEED = {"image": np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)}


def layer(snr, before, **more):
    return Layer("t", 0, "n", "Op", snr, before, 1.0, **more)


@pytest.mark.parametrize(
    ("snr", "before", "jumps_"),
    [
        (75.0, None, False),  # an input, rounded to fp16
        (61.0, 79.0, False),  # lost much, and still as good as fp16 is
        (50.0, 55.0, False),
        (49.0, 55.0, True),
        (27.0, 51.0, True),
        (None, 60.0, True),  # not finite
        (None, None, True),
        (50.0, None, True),
        (55.0, 40.0, False),  # better than what went in
    ],
)
def test_a_jump_is_a_loss_that_matters(snr, before, jumps_):
    assert bool(jumps([layer(snr, before)])) is jumps_


def test_layers_travel_as_json():
    made = layer(1.5, None, alone_db=2.0, ends=("y",))
    assert Layer.from_json(made.to_json()) == made


def test_tensors_in_the_graphs_order(tmp_path):
    found = tensors(graphs.cnn(tmp_path / "a.onnx"))
    assert [(each.name, each.depth, each.node, each.op) for each in found] == [
        ("c", 0, "conv", "Conv"),
        ("features", 1, "relu", "Relu"),
    ]
    assert [each.bytes for each in found] == [4 * 4 * 8 * 8] * 2


def test_chunks_hold_what_fits_and_at_least_one():
    made = [Tensor(str(number), 0, "", "", (), size) for number, size in enumerate((5, 5, 5, 100, 1))]
    assert [[each.name for each in chunk] for chunk in chunks(made, 10)] == [["0", "1"], ["2"], ["3"], ["4"]]
    assert list(chunks([], 10)) == []


def test_tensors_become_outputs(tmp_path):
    model = graphs.cnn(tmp_path / "a.onnx")
    assert exposed(model, ["c", "gone", "features"], tmp_path / "b.onnx") == {"c": "c", "features": "features"}
    assert set(Original(tmp_path / "b.onnx", {}).run(FEED)) == {"features", "c"}


def test_in_a_qdq_graph_a_tensor_is_what_was_dequantized(tmp_path):
    nodes = [
        helper.make_node("Relu", ["x"], ["t"]),
        helper.make_node("QuantizeLinear", ["t", "s", "z"], ["t_QuantizeLinear_Output"]),
        helper.make_node("DequantizeLinear", ["t_QuantizeLinear_Output", "s", "z"], ["t_DequantizeLinear_Output"]),
        helper.make_node("Relu", ["t_DequantizeLinear_Output"], ["y"]),
    ]
    weights = {"s": np.float32(0.5), "z": np.uint8(0)}
    model = graphs.save(tmp_path / "q.onnx", nodes, {"x": [1, 2]}, {"y": [1, 2]}, weights)
    assert exposed(model, ["t"], tmp_path / "p.onnx") == {"t": "t_DequantizeLinear_Output"}
    got = Original(tmp_path / "p.onnx", {}).run({"x": np.array([[0.6, 7.0]], np.float32)})
    assert got["t_DequantizeLinear_Output"].tolist() == [[0.5, 7.0]]


def test_outputs_that_a_tensor_only_changes_its_shape_to_reach(tmp_path):
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Flatten", ["s"], ["f"]),
        helper.make_node("Identity", ["f"], ["y"]),
        helper.make_node("Relu", ["f"], ["z"]),
    ]
    model = graphs.save(tmp_path / "a.onnx", nodes, {"x": [1, 2]}, {"y": [1, 2], "z": [1, 2]})
    assert {name: found for name, found in ends(model).items() if name != "x"} == {
        "s": ("y",), "f": ("y",), "y": ("y",), "z": ("z",)
    }  # fmt: skip


def test_a_graph_rounded_to_half(tmp_path):
    model = graphs.cnn(tmp_path / "a.onnx")
    rounded(model, tmp_path / "half.onnx")
    got = Original(tmp_path / "half.onnx", {}).run(FEED)["features"]
    want = Original(model, {}).run(FEED)["features"]
    assert (got == got.astype(np.float16)).all()
    assert 0 < np.abs(got - want).max() < 0.01


def test_a_rounded_graph_overflows_as_fp16_does(tmp_path):
    model = graphs.overflowing(tmp_path / "a.onnx")
    rounded(model, tmp_path / "half.onnx")
    assert np.isinf(Original(tmp_path / "half.onnx", {}).run({"x": np.ones((1, 64), np.float32)})["y"]).all()


def test_a_node_alone_takes_its_weights_with_it(tmp_path):
    model = graphs.with_external_weights(tmp_path / "a.onnx")
    exposed(model, ["c"], tmp_path / "b.onnx")
    every = Original(tmp_path / "b.onnx", {}).run(FEED)
    conv = Alone(model, "c", tmp_path / "conv.onnx")
    assert conv.inputs == ("image",)
    assert np.array_equal(conv.run({**FEED, "more": 1})["c"], every["c"])
    relu = Alone(model, "features", tmp_path / "relu.onnx")
    assert np.array_equal(relu.run(every)["features"], every["features"])
    assert onnx.load(str(tmp_path / "conv.onnx")).graph.node[0].name == "conv"
