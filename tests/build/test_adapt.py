"""A converter renames, transposes and quantizes: what goes in and comes out is still the graph's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnnci.build.adapt import from_binary, permutation, to_binary
from qnnci.context.info import Quantization, TensorInfo
from qnnci.errors import UsageError

U16 = Quantization("SCALE_OFFSET", 2 / 65535, -32768)


def tensor(name, shape, dtype="FLOAT_32", quantization=None):
    return TensorInfo(name, dtype, tuple(shape), quantization)


@pytest.mark.parametrize(
    ("shape", "wanted", "order", "axes"),
    [
        ((1, 3, 8, 8), (1, 3, 8, 8), "same", None),
        ((1, 3, 8, 8), (1, 8, 8, 3), "same", (0, 2, 3, 1)),
        ((1, 8, 8, 8), (1, 8, 8, 8), "channel-last", (0, 2, 3, 1)),  # shapes do not tell: the converter's habit does
        ((1, 8, 8, 8), (1, 8, 8, 8), "same", None),
        ((1, 80, 100), (1, 100, 80), "channel-last", (0, 2, 1)),
        ((1, 100, 80), (1, 100, 80), "channel-last", None),
        ((1, 2, 3), (2, 3, 1), "same", (1, 2, 0)),
        ((1, 2, 3), (4, 5, 6), "same", None),
        ((2, 3), (3, 2), "same", None),
    ],
)
def test_the_order_of_axes(shape, wanted, order, axes):
    assert permutation(shape, wanted, order) == axes


def test_there_and_back():
    array = np.random.default_rng(0).uniform(-1, 1, (1, 3, 4, 5)).astype(np.float32)
    inside = tensor("save_infer_model_scale_0", (1, 4, 5, 3), "UFIXED_POINT_16", U16)
    feed = to_binary({"save_infer_model/scale_0": array}, [inside], "channel-last")
    assert feed[inside.name].dtype == np.uint16
    assert feed[inside.name].shape == (1, 4, 5, 3)
    back = from_binary(feed, {"save_infer_model/scale_0": array}, [inside], "channel-last")
    assert np.abs(back["save_infer_model/scale_0"] - array).max() < 2 / 65535


def test_integers_and_half_floats():
    inside = [tensor("ids", [2], "INT_32"), tensor("x", [2], "FLOAT_16")]
    feed = to_binary({"ids": np.array([1, 2], np.int32), "x": np.zeros(2, np.float32)}, inside, "same")
    assert (feed["ids"].dtype, feed["x"].dtype) == (np.int32, np.float16)


@pytest.mark.parametrize("wrong", [tensor("z", [2]), tensor("x", [3])])
def test_what_does_not_fit_is_told(wrong):
    with pytest.raises(UsageError, match="x"):
        to_binary({"x": np.zeros(2, np.float32)}, [wrong], "same")
    with pytest.raises(UsageError, match="no output"):
        from_binary({}, {"y": np.zeros(2)}, [tensor("x", [2])], "same")


@given(st.floats(-10, 10, width=32), st.sampled_from(["UFIXED_POINT_8", "UFIXED_POINT_16", "SFIXED_POINT_8"]))
def test_quantizing_errs_by_half_a_step_or_clips(value, dtype):
    offset = 0 if dtype.startswith("S") else -128
    inside = tensor("x", [1], dtype, Quantization("SCALE_OFFSET", 1 / 64, offset))
    feed = to_binary({"x": np.array([value], np.float32)}, [inside], "same")
    back = from_binary(feed, {"x": np.zeros(1)}, [inside], "same")["x"][0]
    high = {"UFIXED_POINT_8": 127, "UFIXED_POINT_16": 65535 - 128, "SFIXED_POINT_8": 127}[dtype] / 64
    assert abs(back - min(max(value, -2.0), high)) <= 1 / 128 + 1e-6
