"""What a person sees of devices: which are there, what one is, and what was measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from qnnci.device.about import About
from qnnci.device.attached import Attached
from qnnci.manifest import DeviceMeasurement, DeviceRun, Spread, Vitals
from qnnci.report.terminal import escape
from qnnci.soc import Soc

_MB = 1 << 20


def show_attached(found: Sequence[Attached], out: Console) -> None:
    """Print what adb sees, and what to do for what is not ready."""
    table = Table(box=None, pad_edge=False)
    for name in ("address", "state", "model", "what to do"):
        table.add_column(name, overflow="fold")
    for each in found:
        table.add_row(*map(escape, (each.address, each.state, each.model, each.todo)))
    out.print(table)


def show_about(about: About, soc: Soc | None, binaries: Mapping[str, str] | None, out: Console) -> None:
    """Print what a device says of itself; `binaries` are those that a manifest has for it, by graph."""
    told = {
        "device": " ".join(filter(None, (about.maker, about.model))),
        "system": ", ".join(filter(None, (about.system, about.abi))),
        "chip": f"{soc.name}, {soc.dsp_arch}, {soc.vtcm_mb} MB VTCM{'' if soc.fp16 else ', no fp16'}" if soc else "",
        "calls itself": " ".join(filter(None, (about.chip_maker, *about.chips))),
        "kernel's soc_id": about.soc_id and f"{about.soc_id} (the kernel's own number, not QNN's)",
        "validator": f"v{about.arch}" if about.arch else "",
        "folder": f"{about.folder}, {about.free_bytes // _MB} MB free" if about.folder else "",
    }
    for name, text in told.items():
        if text:
            out.print(f"{name:<16}{escape(text)}")
    for graph, path in (binaries or {}).items():
        out.print(f"{'binary':<16}{escape(f'{graph}: {path}')}")


def show_measurement(made: DeviceMeasurement, out: Console) -> None:
    """Print each run of a task on a device, and the middle of them with their spread."""
    table = Table(box=None, pad_edge=False)
    for name in ("run", "wall", "CPU", "battery", "hottest", "busiest threads"):
        table.add_column(name, justify="left" if name in {"run", "hottest", "busiest threads"} else "right")
    for run in made.runs:
        table.add_row(*map(escape, _run(run)))
    out.print(table)
    much = f"{made.inferences} inferences" if made.inferences else f"{made.minutes:g} minutes"
    where = ", ".join(filter(None, (made.device, made.soc_model, made.system)))
    out.print(escape(f"{much}, loading included, on {where}; CPU is the share of one core"))
    for name, seconds, share in (
        ("NPU", made.npu_seconds, made.npu_cpu_percent),
        ("CPU", made.cpu_seconds, made.cpu_cpu_percent),
    ):
        if seconds:
            told = f"{name}: {_spread(seconds, ' s')}"
            if made.inferences:
                told += f", {seconds.median * 1000 / made.inferences:.2f} ms each"
            out.print(told + (f", CPU {_spread(share, '%')}" if share else ""))


def _run(run: DeviceRun) -> tuple[str, ...]:
    threads = ", ".join(f"{name} {share:g}%" for name, share in list(run.threads.items())[:3])
    share = "–" if run.cpu_percent is None else f"{run.cpu_percent:g}%"
    return (run.processor.upper(), f"{run.seconds:.2f} s", share, _battery(run), _heat(run.before, run.after), threads)


def _battery(run: DeviceRun) -> str:
    before, after = run.before, run.after
    if before.battery_percent is None or after.battery_percent is None:
        return "–"
    lost = f"{before.battery_percent:g} → {after.battery_percent:g}%"
    if before.battery_uah is not None and after.battery_uah is not None:
        lost += f", {(before.battery_uah - after.battery_uah) / 1000:g} mAh"
    return f"{lost}, charging" if before.charging or after.charging else lost


def _heat(before: Vitals, after: Vitals) -> str:
    if before.hottest_c is None or after.hottest_c is None:
        return "–"
    return f"{before.hottest_c:g} → {after.hottest_c:g} °C ({after.hottest})"


def _spread(values: Spread, unit: str) -> str:
    return f"{values.median:g}{unit} ({values.low:g} to {values.high:g})"
