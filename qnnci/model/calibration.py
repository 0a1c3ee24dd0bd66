"""Calibration inputs: read, held against the graph, looked at, and kept in one file that every route takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnnci.arrays import Arrays, save_samples
from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.model.feeds import Spec
from qnnci.quantization import FEW
from qnnci.rules import finding


def keep(samples: Iterable[Arrays], specs: Sequence[Spec], out: Path, *, most: int, constant: Sequence[str]) -> int:
    """Write at most `most` samples to `out`, one held at a time; returns how many there are.

    `constant` names inputs that may be the same in every sample.

    Raises:
        UsageError: NaN or infinity, an input that is the same in all samples, or one that the graph has not.

    """
    names = [spec.name for spec in specs]
    unknown = sorted(set(constant) - set(names))
    if unknown:
        raise UsageError(f"`constant` names {unknown[0]!r}; the graph's inputs are {', '.join(names)}")
    looked = _Looked(set(names) - set(constant))
    save_samples(out, ((feed, {}) for feed in looked.at(islice(samples, most))))
    try:
        looked.judge()
    except UsageError:
        out.unlink()
        raise
    return looked.count


def judged(count: int, *, drawn: bool) -> list[Finding]:
    """What is to be said of so many samples; `drawn` where they are random."""
    found = []
    if drawn:
        message = f"{count} random samples: the ranges, and so the numbers of the binaries, mean nothing"
        found.append(finding("calibration-random", message))
    if count < FEW:
        found.append(finding("calibration-few", f"{count} samples; fewer than {FEW} seldom show a tensor's range"))
    return found


class _Looked:
    """Samples as they go by: how many, and which inputs were the same all the time."""

    def __init__(self, names: set[str]) -> None:
        self.count = 0
        self._first: Arrays = {}
        self._same = names

    def at(self, samples: Iterable[Arrays]) -> Iterator[Arrays]:
        for feed in samples:
            for name, array in feed.items():
                if array.dtype.kind == "f" and not np.isfinite(array).all():
                    raise UsageError(
                        f"sample {self.count} of the calibration inputs holds NaN or infinity in {name}",
                        hint="leave it out, or mend what writes it: one such value ruins the ranges of a whole graph",
                    )
                if name in self._same and not np.array_equal(self._first.setdefault(name, array), array):
                    self._same.discard(name)
            self.count += 1
            yield feed

    def judge(self) -> None:
        # Of a single sample, only what has one value throughout is known not to vary.
        stuck = [name for name in self._first if name in self._same]
        if self.count == 1:
            stuck = [name for name in stuck if self._first[name].size > 1 and _flat(self._first[name])]
        if stuck:
            raise UsageError(
                f"the input {stuck[0]} is the same in all {self.count} calibration inputs",
                hint=f"give samples in which it varies; if it never does, fold it (`inputs: {{{stuck[0]}: "
                f"{{value: …}}}}`), or say that it is meant (`calibration: {{constant: [{stuck[0]}]}}`)",
            )


def _flat(array: NDArray[Any]) -> bool:
    return bool((array == array.flat[0]).all())
