"""Layers of a graph whose error jumps, as a person reads them: a table, what to do, a plot of the error by depth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from qnnci.files import write_text
from qnnci.model.layers import Layer, fine_db, jumps
from qnnci.report.terminal import escape

_LARGEST_HALF = 65504.0
_OWN_DB = 6.0  # a node alone is as bad as the layer: the error is its own
# Functions of one tensor that an app computes in a moment, in float32.
_APP = frozenset({"Sigmoid", "Softmax", "LogSoftmax", "Tanh", "Exp", "Log", "Sqrt", "HardSigmoid", "Softplus"})
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_WIDTH, _HEIGHT = 1200, 500  # pixels


def show_layers(layers: Sequence[Layer], precision: str, top: int, out: Console) -> None:
    """Print the first layers whose error jumps, and for each what to do about it."""
    found = jumps(layers, fine_db(precision))
    if not found:
        worst = min((each.snr_db for each in layers if each.snr_db is not None), default=None)
        told = f"; the worst has {worst:.1f} dB" if worst is not None else ""
        out.print(f"in none of {len(layers)} layers does the error jump{told}")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("depth", "op", "node", "before", "after", "node alone", "peak"):
        table.add_column(name, justify="left" if name in {"op", "node"} else "right", overflow="fold")
    for each in found[:top]:
        dbs = (_db(each.before_db), _db(each.snr_db), _db(each.alone_db))
        table.add_row(str(each.depth), escape(each.op), escape(each.node), *dbs, f"{each.peak:.3g}")
    out.print(table)
    if len(found) > top:
        out.print(f"and {len(found) - top} more, further on (`--top`)")
    for each in by_node(found[:top]):
        out.print(f"→ {escape(each.node)}: {escape(advice(each, precision))}")


def _db(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} dB"


def by_node(layers: Sequence[Layer]) -> list[Layer]:
    """One layer for each node: of several outputs, the one that loses most."""
    worst: dict[str, Layer] = {}
    for each in layers:
        if each.node not in worst or each.drop_db > worst[each.node].drop_db:
            worst[each.node] = each
    return list(worst.values())


def advice(layer: Layer, precision: str) -> str:
    """What to do about a layer whose error jumps."""
    if layer.snr_db is None or (precision == "fp16" and layer.peak > _LARGEST_HALF):
        return (
            f"values up to {layer.peak:.3g} overflow fp16, which ends at 65504: scale what goes in down, and back after"
        )
    own = layer.alone_db is not None and layer.alone_db < layer.snr_db + _OWN_DB
    if layer.ends and layer.op in _APP:
        before = f", which has {layer.before_db:.0f} dB" if layer.before_db is not None else ""
        return (
            f"it ends in {', '.join(layer.ends)}: make its input{before} an output of the graph instead, "
            f"and compute {layer.op} in the app"
        )
    if not own and layer.alone_db is not None:
        return "it computes well and makes the error of its inputs larger: mend the layers before it"
    if precision != "fp16":
        names = ", ".join((*reversed(layer.parts), layer.node))
        return f"keep it more precise: `quantize: {{keep: {{fp16: [{names}]}}}}`, or give it more calibration inputs"
    if layer.op in _RECURRENT:
        return (
            "its gates and its state are fp16, and each step adds to the error: compile the part before it and run it "
            "on the CPU, or compile it as w8a16 on calibration inputs and compare"
        )
    return (
        "fp16 is too coarse for it: scale its inputs towards 1, take a difference before and not after a large sum, or "
        "compile it as w8a16 on calibration inputs and compare"
    )


def plot(layers: Sequence[Layer], path: Path, title: str, fine: float) -> None:
    """Write the error by depth as one SVG file that needs nothing else."""
    import pygal

    chart = pygal.XY(
        title=title,
        x_title="depth (nodes from the start)",
        y_title="signal to noise, dB: higher is better",
        width=_WIDTH,
        height=_HEIGHT,
        stroke=False,
        js=[],
        include_x_axis=True,
    )
    finite = [each for each in layers if each.snr_db is not None]
    found = set(jumps(layers, fine))
    points = {
        "layers": [each for each in finite if each not in found],
        "the error jumps": [e for e in finite if e in found],
    }
    for name, chosen in points.items():
        chart.add(name, [{"value": (each.depth, each.snr_db), "label": f"{each.op} {each.node}"} for each in chosen])
    end = max((each.depth for each in layers), default=1)
    chart.add(f"{fine:.0f} dB", [(0, fine), (end, fine)], stroke=True)
    write_text(path, chart.render(is_unicode=True))
