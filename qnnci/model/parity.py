"""How far one set of outputs is from another. Pure."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnnci.arrays import Arrays
from qnnci.findings import Finding
from qnnci.rules import finding

_TINY = 1e-12  # values below are nothing: they stand for zero
_NEAR = 1e-8  # what may stand where zero is wanted
_MOST_DB = 200.0
_OFF_GRID = 0.1  # of a step
_LARGEST = sys.float_info.max  # JSON has no infinity


@dataclass(frozen=True, slots=True)
class Distance:
    """Figures of one output over all samples. None where a figure means nothing (empty, or not finite).

    cosine: of the flattened values, -1 to 1. snr_db: signal to noise in dB, -200 to 200, which equal values have.
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
    # Squares of the largest and smallest doubles leave their range: a power of two on everything changes no figure.
    exponent = int(np.frexp(max(_peak(a), _peak(b)))[1])
    a, b = np.ldexp(a, -exponent), np.ldexp(b, -exponent)
    tiny, near = _ldexp(_TINY, -exponent), _ldexp(_NEAR, -exponent)
    noise = b - a
    lost = _peak(noise)
    return Distance(
        cosine=_cosine(a, b) if min(_peak(a), _peak(b)) > tiny else float(lost <= near),
        snr_db=_snr(max(_power(a), tiny * tiny), _power(noise)),
        max_abs=_ldexp(lost, exponent),
        max_rel=min(lost / max(_peak(a), tiny), _LARGEST),
    )


def compare(wants: Sequence[Arrays], gots: Sequence[Arrays]) -> tuple[dict[str, Any], list[Finding]]:
    """Figures of each output of a binary over all samples together, as JSON has them; and what is wrong with them."""
    outputs: dict[str, Any] = {}
    findings: list[Finding] = []
    for name in wants[0]:
        want, got = _joined(wants, name), _joined(gots, name)
        if want.shape != got.shape:
            message = f"{name} has {got.size} values in the binary, {want.size} in the original"
            findings.append(finding("verify-failed", message))
            continue
        if not finite(got):
            findings.append(finding("not-finite", f"the binary gives NaN or infinity in {name}"))
        outputs[name] = asdict(distance(want, got))
    return outputs, findings


def off_grid(gots: Sequence[Arrays], grids: Mapping[str, float]) -> list[Finding]:
    """Outputs that a fixed-point op was to make, by the size of its steps, and whose values lie between steps."""
    found = []
    for name, scale in grids.items():
        steps = _joined(gots, name).astype(np.float64) / scale
        off = float(np.abs(steps - np.rint(steps)).max(initial=0))
        if off > _OFF_GRID:
            message = f"{name} was to come out of a fixed-point op, in steps of {scale:.4g}, and does not"
            found.append(finding("not-fixed-point", message))
    return found


def _joined(samples: Sequence[Arrays], name: str) -> NDArray[Any]:
    # One long vector over all samples: the cosine of a single scalar would always be 1.
    joined: NDArray[Any] = np.concatenate([sample[name].ravel() for sample in samples])
    return joined


def _peak(values: NDArray[Any]) -> float:
    return float(np.abs(values).max())


def _power(values: NDArray[Any]) -> float:
    return float(np.dot(values, values))


def _ldexp(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return _LARGEST


def _cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    return float(np.clip(np.dot(_unit(a), _unit(b)), -1.0, 1.0))


def _unit(values: NDArray[Any]) -> NDArray[Any]:
    values = values / _peak(values)
    unit: NDArray[Any] = values / np.linalg.norm(values)
    return unit


def _snr(signal: float, noise: float) -> float:
    if not noise:
        return _MOST_DB
    if not signal:
        return -_MOST_DB
    return max(-_MOST_DB, min(_MOST_DB, 10 * (math.log10(signal) - math.log10(noise))))


def finite(array: NDArray[Any]) -> bool:
    return not np.issubdtype(array.dtype, np.floating) or bool(np.isfinite(array).all())
