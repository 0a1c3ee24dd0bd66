"""Named arrays and how samples of them are kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qnnci.files import replacing

Arrays = dict[str, NDArray[Any]]


def save_samples(path: Path, samples: Sequence[tuple[Arrays, Arrays]]) -> None:
    """Write (feed, outputs) pairs to one .npz whose keys are `<index>/feed/<name>` and `<index>/want/<name>`."""
    arrays = {
        f"{index}/{kind}/{name}": array
        for index, pair in enumerate(samples)
        for kind, named in zip(("feed", "want"), pair, strict=True)
        for name, array in named.items()
    }
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type] # numpy's stub takes the names for its own options


def load_samples(path: Path) -> list[tuple[Arrays, Arrays]]:
    """Read what `save_samples` wrote."""
    samples: dict[int, tuple[Arrays, Arrays]] = {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            index, kind, name = key.split("/", 2)
            feed, want = samples.setdefault(int(index), ({}, {}))
            (feed if kind == "feed" else want)[name] = archive[key]
    return [samples[index] for index in sorted(samples)]
