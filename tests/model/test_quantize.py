"""What the quantizer makes of small graphs: types, scales, names, ports, and what stays float."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support import graphs

from qnnci.arrays import save_samples
from qnnci.errors import UsageError
from qnnci.model.parity import distance, off_grid
from qnnci.model.quantize import change_ports, quantize
from qnnci.model.reference import Original
from qnnci.quantization import Quantize

pytest.importorskip("onnxruntime_qnn", reason="quantizing is pinned to the onnxruntime of the compiler")

FEEDS = [{"image": image} for image in np.random.default_rng(0).uniform(-1, 1, (8, 1, 3, 8, 8)).astype(np.float32)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Conv, a Relu, a Softmax over a MatMul: names of tensors are c, features, m, y."""
    folder = tmp_path_factory.mktemp("quantize")
    nodes = [
        helper.make_node("Conv", ["image", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["features"], name="relu"),
        helper.make_node("MatMul", ["features", "v"], ["m"], name="project"),
        helper.make_node("Softmax", ["m"], ["y"], name="softmax", axis=-1),
    ]
    held = {"w": graphs.weight(4, 3, 3, 3), "b": graphs.weight(4), "v": graphs.weight(8, 6) * 4}
    graphs.save(folder / "net.onnx", nodes, {"image": [1, 3, 8, 8]}, {"y": [1, 4, 8, 6]}, held)
    save_samples(folder / "samples.npz", [(feed, {}) for feed in FEEDS])
    return folder


def made(folder, activations=8, weight_bits=8, **settings):
    out = folder / "q/quantized.onnx"
    asked = Quantize.model_validate(settings)
    result = quantize(
        folder / "net.onnx",
        folder / "samples.npz",
        out,
        asked,
        activations=activations,
        weight_bits=weight_bits,
    )
    return onnx.load(str(out)), result


def held(model, name):
    return onnx.numpy_helper.to_array(next(each for each in model.graph.initializer if each.name == name))


def snr(folder, feed=lambda image: image, back=lambda y: y):
    want, got = Original(folder / "net.onnx", {}), Original(folder / "q/quantized.onnx", {})
    pairs = [(want.run(each)["y"], back(got.run({"image": feed(each["image"])})["y"])) for each in FEEDS]
    return distance(*(np.stack(side) for side in zip(*pairs, strict=True))).snr_db


@pytest.mark.parametrize(
    ("widths", "kinds", "least"),
    [
        ((8, 8), (TensorProto.UINT8, TensorProto.INT8), 25),
        ((16, 8), (TensorProto.UINT16, TensorProto.INT8), 35),
        ((16, 4), (TensorProto.UINT16, TensorProto.INT4), 10),
    ],
)
def test_each_precision(folder, widths, kinds, least):
    model, result = made(folder, *widths)
    types = {each.name: each.data_type for each in model.graph.initializer}
    assert (types["image_zero_point"], types["w_quantized"], types["v_quantized"]) == (*kinds, kinds[1])
    assert len(held(model, "w_scale")) == 4  # by channel, MatMul too
    assert len(held(model, "v_scale")) == 6
    assert result.float_nodes == ()
    assert set(result.grids) == ({"y"} if widths[0] == 8 else set())
    assert snr(folder) > least


def test_one_scale_for_all_weights(folder):
    model, _ = made(folder, per_channel=False)
    assert held(model, "w_scale").shape == ()
    assert held(model, "w_quantized").dtype == np.uint8


@pytest.mark.parametrize("method", ["entropy", "percentile"])
def test_ranges_without_the_rarest_values(folder, method):
    model, _ = made(folder)
    whole = held(model, "features_scale")
    model, _ = made(folder, calibrate=method, percentile=90)
    assert held(model, "features_scale") < whole


def test_single_tensors_are_quantized_as_they_are_told_to(folder):
    tensors = {
        "image": {"min": -2, "max": 2},
        "features": {"scale": 0.5, "zero_point": 3},
        "m": {"symmetric": True},
        "w": {"bits": 4},
    }
    model, result = made(folder, tensors=tensors)
    assert held(model, "image_scale") == pytest.approx(4 / 255)
    assert (held(model, "features_scale"), held(model, "features_zero_point")) == (0.5, 3)
    assert held(model, "m_zero_point") == 128
    assert len(held(model, "w_scale")) == 4
    types = {each.name: each.data_type for each in model.graph.initializer}
    assert types["w_quantized"] == TensorProto.INT4
    assert result.findings == ()


def test_a_wider_tensor_widens_what_makes_it(folder):
    model, _ = made(folder, tensors={"y": {"bits": 16}})
    types = {each.name: each.data_type for each in model.graph.initializer}
    assert types["y_zero_point"] == TensorProto.UINT16
    assert types["features_zero_point"] == TensorProto.UINT8


def test_what_an_override_cannot_reach_is_told(folder):
    _, result = made(folder, tensors={"c": {"min": -1, "max": 1}})  # it becomes part of the Conv with its Relu
    assert [each.rule for each in result.findings] == ["override-unused"]
    assert "'c'" in result.findings[0].message


@pytest.mark.parametrize(
    ("settings", "said", "hint"),
    [
        ({"tensors": {"m": {"symmetric": True}, "y": {"bits": 16}}}, "that do not go together", "the same width"),
        ({"tensors": {"feature": {"bits": 8}}}, "`tensors` names 'feature'", "'features'"),
        ({"tensors": {"m": {"bits": 4}}}, "asks for 4 bits; it can have 8, 16", ""),
        ({"tensors": {"w": {"bits": 16}}}, "asks for 16 bits; it can have 4, 8", ""),
        ({"keep": {"fp16": ["sofmax"]}}, "names 'sofmax', which fits no node", "'softmax'"),
        ({"keep": {"fp16": ["q*"]}}, "names 'q*'", ""),
    ],
)
def test_unknown_names_and_widths_are_told(folder, settings, said, hint):
    with pytest.raises(UsageError) as caught:
        made(folder, **settings)
    assert said in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize("pattern", ["softmax", "y", "soft*", "y*"])
def test_what_is_kept_computes_in_half_precision(folder, pattern):
    model, result = made(folder, keep={"fp16": [pattern]})
    assert result.float_nodes == ("softmax (Softmax)",)
    node = next(each for each in model.graph.node if each.name == "softmax")
    casts = {each.output[0]: each for each in model.graph.node if each.op_type == "Cast"}
    assert casts[node.input[0]].attribute[0].i == TensorProto.FLOAT16
    assert casts["y"].input[0] == node.output[0]
    assert snr(folder) > 25


def test_nodes_kept_side_by_side_share_their_half_tensors_and_have_their_own_constants(folder):
    model, result = made(folder, keep={"fp16": ["conv", "relu", "project"]})
    assert result.float_nodes == ("conv (Conv)", "relu (Relu)", "project (MatMul)")
    assert len([each for each in model.graph.node if each.op_type == "Cast"]) == 2  # in, out
    node = next(each for each in model.graph.node if each.name == "conv")
    assert held(model, node.input[1]).dtype == np.float16
    assert np.allclose(held(model, node.input[1]), graphs.weight(4, 3, 3, 3), atol=1e-3)


@pytest.mark.parametrize("activations", [8, 16])
@pytest.mark.parametrize("keep", [[], ["softmax"], ["conv"]], ids=["all", "the end", "the start"])
def test_fixed_point_ports(folder, activations, keep):
    model, _ = made(folder, activations, io="ufixed16", keep={"fp16": keep})
    ports = {each.name: each.type.tensor_type.elem_type for each in (*model.graph.input, *model.graph.output)}
    assert ports == {"image": TensorProto.UINT16, "y": TensorProto.UINT16}
    first = next(each for each in model.graph.node if "image" in each.input)
    last = next(each for each in model.graph.node if "y" in each.output)
    last = last if last.op_type == "QuantizeLinear" else next(each for each in model.graph.node if "y" in each.input)
    (low, zero), (step, none) = ([held(model, name) for name in node.input[1:3]] for node in (first, last))
    assert snr(
        folder,
        lambda image: np.clip(np.rint(image / low) + zero, 0, 65535).astype(np.uint16),
        lambda y: (y.astype(np.float32) - none) * step,
    ) > (25 if activations == 8 else 35)


def test_half_ports(folder):
    model, _ = made(folder, io="float16")
    kinds = {each.type.tensor_type.elem_type for each in (*model.graph.input, *model.graph.output)}
    assert kinds == {TensorProto.FLOAT16}
    assert snr(folder, lambda image: image.astype(np.float16)) > 25
    change_ports(folder / "net.onnx", folder / "q/quantized.onnx", "float16", {})
    assert snr(folder, lambda image: image.astype(np.float16)) > 50


def test_an_erf_becomes_the_gelu_that_it_is_part_of(tmp_path):
    """The compiler has no Erf; so old an opset is lifted behind the fusing, which needs axes as attributes."""
    nodes = [
        helper.make_node("Div", ["x", "root"], ["d"], name="div"),
        helper.make_node("Erf", ["d"], ["e"], name="erf"),
        helper.make_node("Add", ["e", "one"], ["a"], name="add"),
        helper.make_node("Mul", ["x", "a"], ["m"], name="mul"),
        helper.make_node("Mul", ["m", "half"], ["g"], name="halve"),
        helper.make_node("MatMul", ["g", "w"], ["y"], name="project"),
    ]
    held = {name: np.array(value, np.float32) for name, value in (("root", 2**0.5), ("one", 1), ("half", 0.5))}
    graphs.save(tmp_path / "net.onnx", nodes, {"x": [1, 8]}, {"y": [1, 4]}, {**held, "w": graphs.weight(8, 4)})
    feeds = [{"x": x} for x in np.random.default_rng(0).uniform(-3, 3, (8, 1, 8)).astype(np.float32)]
    save_samples(tmp_path / "samples.npz", [(feed, {}) for feed in feeds])
    model, result = made(tmp_path, 16, keep={"fp16": ["y"]})
    assert [each.op_type for each in model.graph.node if each.domain == "com.microsoft"] == ["Gelu"]
    assert result.float_nodes == ("project (MatMul)",)
    want, got = (
        np.stack([Original(tmp_path / name, {}).run(feed)["y"] for feed in feeds])
        for name in ("net.onnx", "q/quantized.onnx")
    )
    assert distance(want, got).snr_db > 40


def test_a_weight_of_one_channel_keeps_8_bits(tmp_path):
    node = helper.make_node("Conv", ["image", "w", "b"], ["y"], name="conv", pads=[1, 1, 1, 1])
    held_ = {"w": graphs.weight(1, 3, 3, 3), "b": graphs.weight(1)}
    graphs.save(tmp_path / "net.onnx", [node], {"image": [1, 3, 8, 8]}, {"y": [1, 1, 8, 8]}, held_)
    save_samples(tmp_path / "samples.npz", [(feed, {}) for feed in FEEDS])
    model, _ = made(tmp_path, 16, 4)
    assert held(model, "w_quantized").dtype == np.int8  # the compiler refuses 4 bits of it
    assert snr(tmp_path) > 35


def test_values_between_steps_are_found():
    steps = {"y": 0.5}
    assert off_grid([{"y": np.array([0.5, 1.0, 7.5])}], steps) == []
    (found,) = off_grid([{"y": np.array([0.5, 1.2])}], steps)
    assert found.rule == "not-fixed-point"
