"""How far one set of outputs is from another. Pure numpy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Distance:
    """Figures of one output over all samples. None where a figure means nothing (empty, or not finite).

    cosine: of the flattened values, -1 to 1. snr_db: signal to noise in dB, capped at 200 for equal values.
    max_abs: largest absolute difference. max_rel: that difference over the largest absolute wanted value.
    """

    cosine: float | None
    snr_db: float | None
    max_abs: float | None
    max_rel: float | None


def distance(want: NDArray[Any], got: NDArray[Any]) -> Distance:
    """Compare two arrays of one shape, in float64."""
    if want.size == 0 or not (finite(want) and finite(got)):
        return Distance(None, None, None, None)
    a, b = want.astype(np.float64).ravel(), got.astype(np.float64).ravel()
    noise = b - a
    max_abs = float(np.abs(noise).max())
    peak = float(np.abs(a).max())
    return Distance(
        cosine=_cosine(a, b),
        snr_db=_snr(a, noise),
        max_abs=max_abs,
        max_rel=max_abs / max(peak, _TINY),
    )


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    if norm < _TINY**2:  # a zero vector is like another zero vector and like nothing else
        return 1.0 if np.allclose(a, b) else 0.0
    return float(np.clip(np.dot(a, b) / norm, -1.0, 1.0))


def _snr(signal: NDArray[Any], noise: NDArray[Any]) -> float:
    power, lost = float(np.dot(signal, signal)), float(np.dot(noise, noise))
    if lost == 0:
        return 200.0
    return max(-200.0, min(200.0, 10 * math.log10(max(power, _TINY**2) / lost)))


def finite(array: NDArray[Any]) -> bool:
    return not np.issubdtype(array.dtype, np.floating) or bool(np.isfinite(array).all())
