"""The verb `device aihub`: binaries profiled and run on a device that AI Hub hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from qnnci import gates
from qnnci.commands import device_kit
from qnnci.commands.device_kit import Case
from qnnci.device import aihub
from qnnci.errors import ExitCode
from qnnci.findings import Finding, worst
from qnnci.manifest import Parity
from qnnci.model.parity import compare
from qnnci.project import ParityGate
from qnnci.report.problems import clean
from qnnci.report.terminal import console, show_findings, show_parity
from qnnci.rules import finding


def run(
    name: str,
    where: Path,
    *,
    soc: str,
    graphs: Sequence[str],
    source: str,
    feeds: Path | None,
    samples: int,
    min_cosine: float,
    as_json: bool,
) -> ExitCode:
    """Profile and run the binaries that a manifest has for a hosted device, against the original on the CPU.

    Raises:
        ToolMissing, UsageError: no client, no token, no such device, or no binary for its chip.
        MachineError: AI Hub fails.

    """
    manifest, base = device_kit.loaded(where)
    hub = aihub.client()
    device = aihub.find(hub, name)
    entries = device_kit.entries_for(manifest, aihub.chip(device.attributes, device.name, soc), graphs)
    cases = [device_kit.case(entry, base, source, feeds, samples) for entry in entries]
    told: dict[str, Any] = {}
    found: list[Finding] = []
    for each in cases:
        figures, wrong = _one(hub, device, each, min_cosine)
        told[each.entry.graph] = figures
        found += [one.at(graph=each.entry.graph, soc=each.entry.soc, stage="aihub") for one in wrong]
        if not as_json:
            _show(each.entry.graph, figures)
    if as_json:
        for each in told.values():
            each["parity"] = each["parity"] and each["parity"].model_dump(mode="json")
        click.echo(json.dumps({"device": device.name, "graphs": told}, indent=2))
    show_findings(found, console(error=as_json))
    return ExitCode.GATE if worst(found) == "error" else ExitCode.OK


def _one(hub: Any, device: Any, case: Case, min_cosine: float) -> tuple[dict[str, Any], list[Finding]]:
    label = f"{case.entry.graph} {case.entry.soc}"
    model = aihub.upload(hub, case.binary, label)
    click.echo(f"{label}: profiling on {clean(device.name)}", err=True)
    profiled = aihub.profile(hub, model, device, label)
    click.echo(f"{label}: running {len(case.samples)} samples", err=True)
    ran = aihub.run(hub, model, device, label, case.feeds())
    figures: dict[str, Any] = {"jobs": [profiled.url, ran.url], "profile": None, "parity": None}
    found = [finding("aihub-failed", f"{each.problem}: {each.url}") for each in (profiled, ran) if each.problem]
    if profiled.result:
        figures["profile"] = asdict(profiled.result)
    if ran.result:
        outputs, wrong = compare([want for _, want in case.samples], case.outputs(ran.result))
        parity = Parity.model_validate(
            {"runner": "device", "inputs": case.inputs, "samples": len(case.samples), "outputs": outputs}
        )
        figures["parity"] = parity
        found += [*wrong, *gates.judge_parity(parity, [ParityGate(metric="cosine", min=min_cosine)])]
    return figures, found


def _show(graph: str, figures: dict[str, Any]) -> None:
    if each := figures["profile"]:
        layers = ", ".join(f"{count} on {unit}" for unit, count in each["layers"].items()) or "not told"
        time, peak = each["microseconds"] / 1000, each["peak_bytes"] / (1 << 20)
        click.echo(f"{graph}: {time:.2f} ms an inference, peak {peak:.0f} MB, layers: {layers}")
    if figures["parity"]:
        show_parity(figures["parity"], console())
    for url in figures["jobs"]:
        click.echo(f"  {clean(url)}")
