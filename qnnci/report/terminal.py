"""What a person sees in a terminal: live progress (plain lines in CI), findings, and the table of results."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import markup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from qnnci.budget import Budget
from qnnci.context.info import ContextInfo, TensorInfo
from qnnci.findings import Finding, ranked
from qnnci.manifest import Entry, Manifest, Parity
from qnnci.manifest_diff import EFFECTS, Change
from qnnci.report.chains import chain_lines, context_lines
from qnnci.report.exports import export_lines, task_text
from qnnci.report.problems import clean, problems, shortened
from qnnci.report.verdict import marred

if TYPE_CHECKING:  # it brings numpy, which a job that only judges has not
    from qnnci.build.stage import Event


def escape(text: str) -> str:
    """Text of others, safe to print: neither rich markup nor control sequences."""
    return markup.escape(clean(text))


_COLOURS = {"error": "red", "warning": "yellow", "notice": "cyan"}
_MARKS = {"error": "✗", "warning": "!", "notice": "·"}
_STEPS = frozenset({"compile", "verify"})  # what takes the time
_MB = 1 << 20
_NARROW = 100  # columns: the table of results gets less space between its own


def console(*, error: bool = False) -> Console:
    """Return a console that neither wraps nor cuts where its output is not a terminal."""
    stream = sys.stderr if error else sys.stdout
    return Console(file=stream, soft_wrap=True, width=None if stream.isatty() else 200, highlight=False, emoji=False)


@contextmanager
def progress(total: int, *, live: bool) -> Iterator[Callable[[Event], None]]:
    """Yield a listener for events: a live display on a terminal, else a line for each stage that ended.

    `total` is how many compiles and verifications there will be at most.
    """
    if live:
        display = _Live(total)
        with display.bar:
            yield display
    else:
        yield _print_line


class Heard:
    """Passes events on, and counts the stages that had nothing to do. Events come from several threads."""

    def __init__(self, listen: Callable[[Event], None]) -> None:
        self._listen, self._lock = listen, threading.Lock()
        self.stood = self.worked = 0

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.stood += event.state == "cached"
            self.worked += event.state in {"done", "failed"} and event.stage != "source"  # looked at in every build
        self._listen(event)

    @property
    def nothing_new(self) -> bool:
        return self.stood > 0 and not self.worked


def _print_line(event: Event) -> None:
    if event.state in {"done", "failed"} and event.seconds:
        sys.stdout.write(f"{event.what}: {event.stage} {event.state} in {event.seconds:.2f} s\n")
        sys.stdout.flush()


class _Live:
    """A bar over compiles and verifications, and beside it what runs now. Events come from several threads."""

    def __init__(self, total: int) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, str] = {}
        self.bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            # A narrow terminal cuts this column and no other.
            TextColumn("{task.fields[now]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
            console=console(error=True),
            transient=True,
            expand=True,
        )
        self._task = self.bar.add_task("", total=total, now="")

    def __call__(self, event: Event) -> None:
        with self._lock:
            if event.state == "start":
                self._running[event.what] = event.stage
            else:
                self._running.pop(event.what, None)
            if event.stage in _STEPS and event.state != "start":
                self.bar.advance(self._task)
            now = ", ".join(f"{stage} {what}" for what, stage in self._running.items())
            self.bar.update(self._task, now=escape(now[:100]))


def show_findings(found: Sequence[Finding], out: Console) -> None:
    """Print findings, worst first; the same one on several chips is told once."""
    for problem in problems(ranked(found)):
        first = problem.finding
        colour, mark = _COLOURS[first.severity], _MARKS[first.severity]
        where = escape(problem.where)
        out.print(
            f"[{colour}]{mark} {first.severity} {first.rule}[/] {where}{': ' if where else ''}{_inset(problem.message)}"
        )
        if first.severity != "notice":
            out.print(f"    → {_inset(first.hint)}")


def _inset(text: str) -> str:
    """Further lines stand further in: none can pass for a line of our own."""
    return escape(text).replace("\n", "\n    ")


def show_results(manifest: Manifest, out: Console) -> None:
    """Print the table of results, one row for each binary."""
    table = Table(box=None, pad_edge=False, padding=(0, 1 if out.width < _NARROW else 2, 0, 0))
    for name in ("", "graph", "SoC", "arch", "precision", "size", "VTCM", "spill", "cosine", "SNR", "compile"):
        figure = name in {"size", "VTCM", "spill", "cosine", "SNR", "compile"}
        table.add_column(name, justify="right" if figure else "left", no_wrap=name != "graph", overflow="fold")
    tasks = any(entry.task for entry in manifest.entries)
    if tasks:
        table.add_column("metric (CPU)", justify="right", no_wrap=True)
    for entry in manifest.entries:
        table.add_row(*_row(entry, manifest), *([escape(task_text(entry.task))] if tasks else []))
    out.print(table)
    if any(entry.parity for entry in manifest.entries):
        out.print("cosine and SNR are the worst output's, from the host emulator: it checks numbers, not speed")
    for line in (*chain_lines(manifest.chains), *context_lines(manifest.contexts)):
        out.print(escape(line))
    show_exports(export_lines(manifest.entries), out)


def show_exports(exports: Mapping[str, str], out: Console) -> None:
    """Print how far each exported graph is from its original model."""
    for graph, figures in exports.items():
        out.print(f"the export of {graph} against the original, on the CPU: {escape(figures)}")


def _row(entry: Entry, manifest: Manifest) -> tuple[str, ...]:
    return (
        "[red]✗[/]" if not entry.passed else "[yellow]![/]" if marred(entry, manifest) else "[green]✓[/]",
        *map(escape, (entry.graph, entry.soc, entry.dsp_arch, entry.precision)),
        _size(entry.bytes),
        _size(entry.vtcm_bytes),
        _size(entry.spill_fill_bytes),
        _worst(entry, "cosine", "{:.5f}"),
        _worst(entry, "snr_db", "{:.1f} dB"),
        f"{entry.compile_seconds:.2f} s",
    )


def _worst(entry: Entry, metric: str, form: str) -> str:
    if entry.parity is None:
        return "–"
    values = [getattr(figures, metric) for figures in entry.parity.outputs.values()]
    return "NaN" if None in values else form.format(min(values))


def _size(count: int | None) -> str:
    if count is None:
        return "–"
    return f"{count / _MB:.1f} MB" if count >= _MB // 10 else f"{count / 1024:.0f} kB" if count else "0"


def show_budgets(budgets: Sequence[Budget], process_mb: int, out: Console) -> None:
    """Print what the graphs of each SoC need together."""
    table = Table(box=None, pad_edge=False)
    for name in ("SoC", "graphs", "VTCM at once", "of chip", "constants", "op data", "spill", "I/O", "mapped"):
        table.add_column(name, justify="left" if name in {"SoC", "graphs"} else "right")
    for each in budgets:
        sizes = (each.constants, each.op_data, each.spill_fill, each.io, each.mapped)
        chip = _size(each.soc.vtcm_mb * _MB)
        table.add_row(each.soc.name, escape(" ".join(each.graphs)), _size(each.vtcm_sum), chip, *map(_size, sizes))
    out.print(table)
    out.print(f"mapped is to stay below about {process_mb} MB; VTCM is held only while a graph runs")


def show_changes(changes: Sequence[Change], out: Console) -> None:
    """Print what changed between two manifests, what may change numbers first; one change of many targets is one."""
    targets: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        what = change.meaning if change.effect != "record" else f"{change.meaning} (a record only)"
        step = f": {_value(change.old)} → {_value(change.new)}" if change.field else ""
        targets.setdefault((change.effect, what, step), []).append(f"{change.graph}-{change.soc}".strip("-"))
    for effect, title in EFFECTS.items():
        told = {key: names for key, names in targets.items() if key[0] == effect}
        if told:
            out.print(f"[bold]{title}[/]")
        for (_, what, step), names in told.items():
            where = f" ({', '.join(names)})" if any(names) else ""
            out.print(f"  {escape(what + step + where)}")
    if not changes:
        out.print("nothing: both builds did the same work")


def _value(value: object) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shortened(text, 120)


def show_parity(parity: Parity, out: Console) -> None:
    """Print each output's distance from the original."""
    table = Table(box=None, pad_edge=False)
    for name in ("output", "cosine", "SNR dB", "max abs", "max rel"):
        table.add_column(name, justify="left" if name == "output" else "right")
    for name, figures in parity.outputs.items():
        values = (figures.cosine, figures.snr_db, figures.max_abs, figures.max_rel)
        table.add_row(escape(name), *("NaN" if value is None else f"{value:.6g}" for value in values))
    out.print(table)
    ran = "host emulator: it checks numbers, not speed" if parity.runner == "emulator" else "run on the device"
    out.print(f"{parity.samples} samples, {escape(parity.inputs)}; {ran}")


def show_context(info: ContextInfo, out: Console) -> None:
    """Print what a context binary says of itself."""
    arch = f"v{info.dsp_arch}" if info.dsp_arch is not None else "unknown arch"
    out.print(
        f"SoC id {info.soc_id if info.soc_id is not None else 'unknown'}, {arch}, compiled by QAIRT {info.build_id}"
    )
    api = f"core API {info.core_api}, backend API {info.backend_api}, blob {info.blob_version}"
    out.print(f"{api}, info version {info.info_version}, {_size(info.blob_bytes)}")
    for graph in info.graphs:
        out.print(f"\ngraph {escape(graph.name)}")
        facts = {
            "VTCM": _size(graph.vtcm_bytes),
            "spill-fill": _size(graph.spill_fill_bytes),
            "optimisation": str(graph.optimization if graph.optimization is not None else "–"),
            "constants": _size(graph.const_bytes),
            "op data": _size(graph.op_data_bytes),
            "I/O": _size(graph.io_bytes),
        }
        out.print("  " + ", ".join(f"{name} {value}" for name, value in facts.items()))
        for side, tensors in (("input", graph.inputs), ("output", graph.outputs)):
            for tensor in tensors:
                out.print(f"  {side:6} {escape(_tensor(tensor))}")


def _tensor(tensor: TensorInfo) -> str:
    shape = "×".join(map(str, tensor.shape)) or "scalar"
    text = f"{tensor.name}: {tensor.dtype} {shape}"
    quantization = tensor.quantization
    if quantization is None:
        return text
    if quantization.scale is None:
        return f"{text}, {quantization.encoding}"
    return f"{text}, scale {quantization.scale:.6g}, offset {quantization.offset}"
