"""Figures of how far outputs are apart: always finite, always within bounds, and what they say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qnnci.model.parity import Distance, distance, finite

NOTHING = Distance(None, None, None, None)
DTYPES = st.sampled_from(
    [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_]
)


@st.composite
def pairs(draw):
    """Two arrays of one shape, of any dtypes and any finite values."""
    shape = draw(hnp.array_shapes(max_dims=3, max_side=4))
    floats = {"allow_nan": False, "allow_infinity": False}
    arrays = [
        draw(hnp.arrays(dtype, shape, elements=floats if np.issubdtype(dtype, np.floating) else None))
        for dtype in (draw(DTYPES), draw(DTYPES))
    ]
    return arrays[0], arrays[1]


@given(pairs())
@settings(max_examples=300, deadline=None)
def test_figures_are_within_bounds(pair):
    found = distance(*pair)
    assert -1 <= found.cosine <= 1
    assert -200 <= found.snr_db <= 200
    assert 0 <= found.max_abs < math.inf
    assert 0 <= found.max_rel < math.inf
    figures = [found.cosine, found.snr_db, found.max_abs, found.max_rel]
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_an_array_is_equal_to_itself(pair):
    array, _ = pair
    assert distance(array, array.copy()) == Distance(pytest.approx(1), 200, 0, 0)


USUAL = hnp.arrays(np.float32, 4, elements=st.floats(1, 1000, width=16))


@given(USUAL, USUAL, st.integers(-20, 100))
@settings(max_examples=50, deadline=None)
def test_both_scaled_alike_are_as_far_apart(want, got, exponent):
    found, scaled = distance(want, got), distance(np.ldexp(want, exponent), np.ldexp(got, exponent))
    assert (scaled.cosine, scaled.snr_db, scaled.max_rel) == (found.cosine, found.snr_db, found.max_rel)
    assert scaled.max_abs == math.ldexp(found.max_abs, exponent)


@pytest.mark.parametrize(
    ("want", "got", "cosine", "snr_db", "max_abs", "max_rel"),
    [
        ([1, 0], [0, 1], 0, 10 * math.log10(1 / 2), 1, 1),
        ([3, 4], [-3, -4], -1, 10 * math.log10(1 / 4), 8, 2),
        ([3, 4], [6, 8], 1, 0, 4, 1),
        ([10.0], [9.9], 1, 40, 0.1, 0.01),
        ([0, 0], [0, 0], 1, 200, 0, 0),
        ([0, 0], [0, 1e-9], 1, -60, 1e-9, 1e3),  # as good as zero
        ([0, 0], [0, 1], 0, -200, 1, 1e12),
        ([0, 1], [0, 0], 0, 0, 1, 1),
        ([1e-6, 2e-6], [2e-6, -1e-6], 0, 10 * math.log10(1 / 2), 3e-6, 1.5),  # small, but not nothing
        ([1e300, 0], [0, 1e300], 0, 10 * math.log10(1 / 2), 1e300, 1),
        ([True, False], [True, True], 1 / math.sqrt(2), 0, 1, 1),
        ([2**62], [2**62 + 2**40], 1, 200 * math.log10(2) * 2.2, 2**40, 2**-22),
    ],
)
def test_figures(want, got, cosine, snr_db, max_abs, max_rel):
    found = distance(np.array(want), np.array(got))
    assert found == Distance(
        pytest.approx(cosine, abs=1e-9),
        pytest.approx(snr_db, abs=1e-5),
        pytest.approx(max_abs),
        pytest.approx(max_rel),
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_not_finite_has_no_figures(bad, dtype):
    fine, spoiled = np.ones(3, dtype), np.array([1, bad, 1], dtype)
    assert distance(fine, spoiled) == distance(spoiled, fine) == distance(spoiled, spoiled) == NOTHING
    assert not finite(spoiled)


def test_nothing_has_no_figures():
    assert distance(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)) == NOTHING
    assert finite(np.empty(0, np.float32))


def test_integers_are_finite():
    assert finite(np.array([2**63], np.uint64))


def test_the_shape_does_not_matter_but_every_value_does():
    want = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    got = want.copy()
    got[1, 2, 3] = 0
    assert distance(want, got) == distance(want.ravel(), got.ravel())
    assert distance(want, got).max_abs == 23
