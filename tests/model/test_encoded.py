"""AIMET's encodings: read strictly, each accounted for, and in the graph with exactly their scales."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from support import graphs

from qnnci.encodings import Encoding, parse
from qnnci.errors import UsageError
from qnnci.model.encoded import encode, match
from qnnci.model.parity import distance
from qnnci.model.prepare import prepare
from qnnci.model.reference import Original

W = graphs.weight(4, 3, 3, 3)
STEPS = (np.abs(W).max(axis=(1, 2, 3)) / 127).tolist()


def in_three_versions():
    """The same encodings as each version writes them: `image` and `features` 8 bits unsigned, `w` by channel."""
    image, features = (0.0078125, -128), (0.015625, 0)
    rows = {"image": image, "features": features}
    oldest = {
        "version": "0.6.1",
        "activation_encodings": {
            name: [{"bitwidth": 8, "dtype": "int", "is_symmetric": "False", "scale": scale, "offset": offset,
                    "min": offset * scale, "max": (offset + 255) * scale}]
            for name, (scale, offset) in rows.items()
        },
        "param_encodings": {
            "w": [{"bitwidth": 8, "dtype": "int", "is_symmetric": "True", "scale": scale, "offset": -128,
                   "min": -128 * scale, "max": 127 * scale} for scale in STEPS]
        },
    }  # fmt: skip
    old = {
        "version": "1.0.0",
        "activation_encodings": [
            {"name": name, "enc_type": "PER_TENSOR", "dtype": "INT", "bw": 8, "is_sym": False, "scale": [scale],
             "offset": [offset]}
            for name, (scale, offset) in rows.items()
        ],
        "param_encodings": [
            {"name": "w", "enc_type": "PER_CHANNEL", "dtype": "INT", "bw": 8, "is_sym": True, "scale": STEPS,
             "offset": [-128] * 4}
        ],
    }  # fmt: skip
    new = {
        "version": "2.0.0",
        "encodings": [
            {"name": "image", "output_dtype": "uint8", "y_scale": image[0], "y_zero_point": 128},
            {"name": "features", "output_dtype": "uint8", "y_scale": features[0]},
            {"name": "w", "output_dtype": "int8", "y_scale": STEPS, "axis": 0},
        ],
    }
    return [oldest, old, new]


VERSIONS = in_three_versions()


def read(document) -> dict[str, Encoding]:
    return parse(json.dumps(document).encode(), "x.encodings")


@pytest.mark.parametrize("document", VERSIONS, ids=lambda each: each["version"])
def test_three_versions_say_the_same(document):
    found = read(document)
    assert found["image"] == Encoding("image", 8, scales=(0.0078125,), zero_points=(128,))
    assert found["features"] == Encoding("features", 8, scales=(0.015625,), zero_points=(0,))
    weight = found["w"]
    assert (weight.bits, weight.signed, weight.scales, weight.zero_points) == (8, True, tuple(STEPS), (0,) * 4)


@pytest.fixture
def net(tmp_path):
    """Conv with bias, Relu, Reshape: c and y have no encodings of their own."""
    nodes = [
        helper.make_node("Conv", ["image", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["features"], name="relu"),
        helper.make_node("Reshape", ["features", "shape"], ["y"], name="reshape"),
    ]
    held = {"w": W, "b": graphs.weight(4), "shape": np.array([1, 256])}
    return graphs.save(tmp_path / "net.onnx", nodes, {"image": [1, 3, 8, 8]}, {"y": [1, 256]}, held)


@pytest.mark.parametrize("document", VERSIONS, ids=lambda each: each["version"])
def test_scales_are_exactly_those_of_the_file(net, tmp_path, document):
    made = encode(net, read(document), tmp_path / "q.onnx")
    assert (made.matched, made.unmatched, made.float_nodes, made.findings) == (3, (), (), ())
    model = onnx.load(tmp_path / "q.onnx")
    onnx.checker.check_model(model)
    held = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    assert (held["image_scale"], held["image_zero_point"]) == (np.float32(0.0078125), np.uint8(128))
    assert held["w_quantized"].dtype == np.int8
    assert np.array_equal(held["w_scale"], np.asarray(STEPS, np.float32))
    for name in ("c", "features", "y"):  # the Conv before its Relu and the Reshape after it have the Relu's steps
        assert (held[f"{name}_scale"], held[f"{name}_zero_point"]) == (np.float32(0.015625), np.uint8(0))
    assert held["conv/b_quantized"].dtype == np.int32
    feed = {"image": np.random.default_rng(0).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)}
    want, got = (Original(path, {}).run(feed)["y"] for path in (net, tmp_path / "q.onnx"))
    figures = distance(want, got)
    assert figures.snr_db is not None
    assert figures.snr_db > 30
    assert np.all(got / 0.015625 == np.rint(got / 0.015625))


def test_names_that_preparing_changed_are_followed(tmp_path):
    nodes = [
        helper.make_node("Identity", ["w"], ["w2"], name="copy"),
        helper.make_node("Conv", ["image", "w"], ["c"], name="one", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["other", "w2"], ["d"], name="two", pads=[1, 1, 1, 1]),
        helper.make_node("Identity", ["d"], ["d2"], name="pass"),
        helper.make_node("Add", ["c", "d2"], ["y"], name="add"),
    ]
    shapes = {name: [1, 3, 8, 8] for name in ("image", "other")}
    graphs.save(tmp_path / "net.onnx", nodes, shapes, {"y": [1, 4, 8, 8]}, {"w": W})
    assert prepare(tmp_path / "net.onnx", tmp_path / "p", inputs={}, simplify=True) == []
    prepared = onnx.load(tmp_path / "p/prepared.onnx").graph.node
    assert not {"w2", "d2"} & {name for node in prepared for name in (*node.input, *node.output)}
    step = {"output_dtype": "uint8", "y_scale": 0.01, "y_zero_point": 128}
    weight = {"output_dtype": "int8", "y_scale": float(np.abs(W).max() / 127)}
    rows = [{"name": name, **step} for name in ("image", "other", "c", "d2", "y")] + [{"name": "w2", **weight}]
    made = encode(tmp_path / "p/prepared.onnx", read({"version": "2.0.0", "encodings": rows}), tmp_path / "q.onnx")
    assert (made.matched, made.unmatched, made.float_nodes) == (6, (), ())
    feed = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    assert Original(tmp_path / "q.onnx", {}).run(feed)["y"].shape == (1, 4, 8, 8)


def test_each_encoding_is_accounted_for(net, tmp_path):
    document = json.loads(json.dumps(VERSIONS[2]))
    document["encodings"] += [{"name": name, "output_dtype": "uint8", "y_scale": 1} for name in ("feature", "zzzzzz")]
    made = encode(net, read(document), tmp_path / "q.onnx")
    assert made.unmatched == ("feature", "zzzzzz")
    (lost,) = made.findings
    assert (lost.rule, lost.severity) == ("encodings-lost", "warning")
    assert "2 of 5 encodings are of no tensor: feature (near: features), zzzzzz" in lost.message
    strange = {"version": "2.0.0", "encodings": [{"name": "else", "output_dtype": "uint8", "y_scale": 1}]}
    made = encode(net, read(strange), tmp_path / "none.onnx")
    assert [(each.rule, each.severity) for each in made.findings] == [("encodings-none", "error")]
    assert not (tmp_path / "none.onnx").exists()


def test_what_has_no_encoding_stays_float_and_is_told(net, tmp_path):
    document = {"version": "2.0.0", "encodings": VERSIONS[2]["encodings"][:1]}
    made = encode(net, read(document), tmp_path / "q.onnx")
    assert made.float_nodes == ("conv (Conv)", "relu (Relu)", "reshape (Reshape)")
    assert [each.rule for each in made.findings] == ["encodings-gap"]
    document["encodings"] = [*VERSIONS[2]["encodings"][1:], {"name": "image", "output_dtype": "float16"}]
    assert encode(net, read(document), tmp_path / "q.onnx").matched == 3


def test_an_encoding_that_does_not_fit(net, tmp_path):
    row = {"name": "w", "output_dtype": "int8", "y_scale": [1.0, 1.0, 1.0], "axis": 0}
    with pytest.raises(UsageError, match="has 3 scales, axis 0"):
        encode(net, read({"version": "2.0.0", "encodings": [row]}), tmp_path / "q.onnx")
    row = {"name": "features", "output_dtype": "uint8", "y_scale": [1.0, 1.0]}
    with pytest.raises(UsageError, match="is no weight"):
        encode(net, read({"version": "2.0.0", "encodings": [row]}), tmp_path / "q.onnx")


_ROW = VERSIONS[2]["encodings"][0]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "no encodings file"),
        ({"version": "3.0.0"}, "of version '3.0.0'"),
        ({"version": ["2.0.0"]}, "of version"),
        ({"version": "2.0.0", "encodings": []}, "holds no encodings"),
        ({"version": "1.0.0"}, "no encodings file"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "output_dtype": "int3"}]}, "has 3 bits"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "output_dtype": "tensor"}]}, "has the type 'tensor'"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "y_scale": 0}]}, "not above zero"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "y_zero_point": 300}]}, "outside of its 8 bits"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "y_zero_point": 1.5}]}, "no whole number"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "block_size": 4}]}, "scales for blocks"),
        ({"version": "2.0.0", "encodings": [_ROW, {**_ROW, "y_scale": 1}]}, "two encodings of 'image'"),
        ({"version": "2.0.0", "encodings": [{**_ROW, "y_scale": [1, 2]}]}, "2 scales and 1 zero points"),
    ],
)  # fmt: skip
def test_what_is_no_encodings_file(document, told):
    with pytest.raises(UsageError) as error:
        read(document)
    assert told in str(error.value)
    assert "x.encodings" in str(error.value)


_KEYS = st.sampled_from(["version", "encodings", "activation_encodings", "param_encodings", "name", "y_scale", "bw"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["2.0.0", "1.0.0", "0.6.1", "int8", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=40) | st.dictionaries(_KEYS, _VALUES, max_size=4).map(lambda each: json.dumps(each).encode()))
@settings(max_examples=150)
def test_no_file_crashes_it(data):
    try:
        found = parse(data, "x")
    except UsageError:
        return
    assert all(each.bits in {0, 4, 8, 16, 32} for each in found.values())


@given(st.dictionaries(st.text(max_size=5), st.just(_ROW), max_size=4), st.lists(st.text(max_size=5), unique=True))
def test_all_are_matched_or_lost(rows, names):
    encodings = {name: Encoding(name, 8, scales=(1.0,), zero_points=(0,)) for name in rows}
    given_, lost = match(encodings, names, {})
    assert set(given_) | set(lost) == set(rows)
    assert not set(given_) & set(lost)
