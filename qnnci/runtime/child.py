"""What the child of an emulated runner does: it keeps the binary loaded between runs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from qnnci.arrays import load_samples, save_samples
from qnnci.toolchain.ort import Emulator


@lru_cache(maxsize=1)
def _loaded(context_model: str, soc_id: int) -> Emulator:
    return Emulator(Path(context_model), soc_id=soc_id)


def run(*, context_model: str, soc_id: int, feed: str, out: str) -> dict[str, Any]:
    """Run one feed out of one file; the outputs go to another."""
    ((given, _),) = load_samples(Path(feed))
    save_samples(Path(out), [({}, _loaded(context_model, soc_id).run(given))])
    return {}
