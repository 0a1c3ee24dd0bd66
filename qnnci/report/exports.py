"""What exports and the project's own commands measured, in one phrase each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from qnnci.manifest import Entry, Figures, Measured, Task


def export_figures(parity: Mapping[str, Figures] | None, metrics: Mapping[str, Measured] | None) -> str:
    """The worst output's cosine and SNR, and every metric; empty where nothing was measured."""
    told = []
    if parity:
        # Rounded down: a figure below a gate must not read as if it had met it.
        cosine, snr = (_least([getattr(each, name) for each in parity.values()]) for name in ("cosine", "snr_db"))
        told.append(f"cosine {'not finite' if cosine is None else f'{math.floor(cosine * 1e6) / 1e6:.6f}'}")
        told += [] if snr is None else [f"SNR {snr:.1f} dB"]
    for name, each in (metrics or {}).items():
        over = f" over {each.samples} sample{'s' * (each.samples > 1)}" if each.samples else ""
        told.append(f"{name} {each.value:.4g}{over}")
    return ", ".join(told)


def export_lines(entries: Sequence[Entry]) -> dict[str, str]:
    """The same for each graph of a manifest that has such figures."""
    by_graph = {entry.graph: export_figures(entry.export_parity, entry.export_metrics) for entry in entries}
    return {graph: text for graph, text in by_graph.items() if text}


def _least(figures: Sequence[float | None]) -> float | None:
    """The worst of all outputs; an output that has no figure is worse than any."""
    known = [figure for figure in figures if figure is not None]
    return min(known) if len(known) == len(figures) else None


def task_text(task: Task | None) -> str:
    """The figure of the project's own command, and that of the CPU."""
    return f"{task.metric} {task.value:.4g} ({task.cpu:.4g})" if task else "–"
