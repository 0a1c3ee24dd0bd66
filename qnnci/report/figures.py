"""Figures as every report writes them: sizes, and the worst of many outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from qnnci.manifest import Parity

NONE = "—"


def size(count: int | None) -> str:
    """Bytes in the largest unit that leaves a figure of one or more."""
    if count is None:
        return NONE
    if count < 1 << 10:
        return f"{count} B"
    for unit, one in (("KiB", 1 << 10), ("MiB", 1 << 20)):
        if count < one << 10:
            return f"{count / one:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count / (1 << 30):.2f} GiB"


def cosine(value: float) -> str:
    """Rounded down: a figure below a gate must not read as if it had met it."""
    return f"{math.floor(value * 1e6) / 1e6:.6f}"


def decibel(value: float) -> str:
    return f"{value:.1f} dB"


def worst(parity: Parity | None) -> tuple[str, str]:
    """Cosine and SNR of the worst output; an output that has no figure is worse than any."""
    if parity is None or not parity.outputs:
        return NONE, NONE
    outputs = parity.outputs.values()
    return _least([each.cosine for each in outputs], cosine), _least([each.snr_db for each in outputs], decibel)


def _least(figures: Sequence[float | None], shown: Callable[[float], str]) -> str:
    known = [figure for figure in figures if figure is not None]
    return shown(min(known)) if len(known) == len(figures) else "not finite"
