"""The original model, in numpy: frames of features to a letter each, and from these to a text."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FRAMES, WIDTH, HIDDEN = 40, 16, 64
LETTERS = "-abcdefghijklmnopqrstuvwxyz "
SAMPLES = 8

_rng = np.random.default_rng(7)
WEIGHT = _rng.normal(0, 0.4, (WIDTH, HIDDEN)).astype(np.float32)
BIAS = _rng.normal(0, 0.1, HIDDEN).astype(np.float32)
OUT = _rng.normal(0, 0.4, (HIDDEN, len(LETTERS))).astype(np.float32)


def samples() -> list[Array]:
    """Features of some texts: [1, FRAMES, WIDTH], float32."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal((1, FRAMES, WIDTH)).astype(np.float32) for _ in range(SAMPLES)]


def logits(features: Array) -> Array:
    """[1, FRAMES, letters]."""
    made: Array = np.tanh(features @ WEIGHT + BIAS) @ OUT
    return made


def text(found: Array) -> str:
    """The best letter of each frame; one that repeats is one, and `-` is none."""
    letters = (LETTERS[index] for index in found[0].argmax(-1))
    return "".join(letter for letter, _ in groupby(letters)).replace("-", "")
