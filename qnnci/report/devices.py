"""What a person sees of devices: which are there, what one is, and what was measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from qnnci.device.about import About
from qnnci.device.attached import Attached
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
