"""The verb `device run`: binaries on a device against the original on the CPU."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from qnnci import gates
from qnnci.commands import device_kit
from qnnci.commands.device_kit import Case, Reached
from qnnci.device import room, run
from qnnci.device.about import folder_for
from qnnci.errors import ExitCode
from qnnci.files import write_text
from qnnci.findings import Finding, worst
from qnnci.manifest import Parity
from qnnci.model.parity import compare
from qnnci.project import ParityGate
from qnnci.report import github
from qnnci.report.terminal import console, show_findings, show_parity

LOG = "device.log"


def compare_all(
    address: str,
    ssh_options: Sequence[str],
    where: Path,
    *,
    soc: str,
    graphs: Sequence[str],
    libs: Path | None,
    root: str | None,
    source: str,
    feeds: Path | None,
    samples: int,
    folder: str,
    seconds: float,
    min_cosine: float,
    min_snr: float | None,
    keep: bool,
    as_json: bool,
) -> ExitCode:
    """Run the binaries that a manifest has for a device, and hold their outputs against the original's.

    Raises:
        UsageError: no binary is for this device, or there is nothing to run it on.
        QnnciError: the device, its libraries or the tool are not there.

    """
    manifest, base = device_kit.loaded(where)
    reached = device_kit.reach(address, ssh_options, soc)
    entries = device_kit.entries_for(manifest, reached.soc, graphs)
    cases = [device_kit.case(entry, base, source, feeds, samples) for entry in entries]
    bounds = [ParityGate(metric="cosine", min=min_cosine)]
    bounds += [ParityGate(metric="snr_db", min=min_snr)] if min_snr is not None else []
    found: list[Finding] = []
    figures: dict[str, Parity] = {}
    broke = False
    for same in _by_version(cases):
        with device_kit.libraries(reached, same[0].entry.qairt, libs, root) as local:
            kit = device_kit.kit(reached, same[0].entry.qairt, local, root)
            for each, ran in _on_device(reached, same, kit, folder, seconds, keep=keep):
                broke |= not ran.worked
                judged, told = _judged(each, ran, bounds)
                found += [one.at(graph=each.entry.graph, soc=each.entry.soc, stage="device") for one in told]
                figures |= {each.entry.graph: judged} if judged else {}
    _report(figures, found, as_json=as_json)
    if broke:
        return ExitCode.TOOL_CRASHED
    return ExitCode.GATE if worst(found) == "error" else ExitCode.OK


def _by_version(cases: Sequence[Case]) -> list[list[Case]]:
    groups: dict[str, list[Case]] = {}
    for each in cases:
        groups.setdefault(each.entry.qairt, []).append(each)
    return list(groups.values())


def _on_device(
    reached: Reached, cases: Sequence[Case], kit: dict[str, Path], folder: str, seconds: float, *, keep: bool
) -> list[tuple[Case, run.Ran]]:
    """Run binaries that share their libraries, one after the other; all that the tool said goes to a log of each."""
    needed = room.space({**kit, **{each.binary.name: each.binary for each in cases}})
    place, key = folder_for(reached.about, needed, folder), (sorted(kit), cases[0].entry.qairt)
    ended = []
    with room.opened(reached.link, place, key, keep=keep) as at:
        for each in cases:
            ran = run.once(at, each.binary, each.graph, each.feeds(), kit, timeout=seconds, say=device_kit.say)
            log = each.binary.parent / "logs" / LOG
            write_text(log, ran.log)
            if not ran.worked:
                device_kit.say(f"all that it said: {os.path.relpath(log)}")
            ended.append((each, ran))
        if keep:
            device_kit.say(f"kept on the device: {at.path}")
    return ended


def _judged(case: Case, ran: run.Ran, bounds: Sequence[ParityGate]) -> tuple[Parity | None, list[Finding]]:
    found = [each for each in ran.findings if each.severity != "notice"]
    if not ran.worked:
        return None, found
    outputs, wrong = compare([want for _, want in case.samples], case.outputs(ran.outputs))
    parity = Parity.model_validate(
        {"runner": "device", "inputs": case.inputs, "samples": len(case.samples), "outputs": outputs}
    )
    return parity, [*found, *wrong, *gates.judge_parity(parity, bounds)]


def _report(figures: dict[str, Parity], found: list[Finding], *, as_json: bool) -> None:
    if as_json:
        told: dict[str, Any] = {name: parity.model_dump(mode="json") for name, parity in figures.items()}
        click.echo(json.dumps({"graphs": told, "findings": [each.to_json() for each in found]}, indent=2))
    else:
        for name, parity in figures.items():
            click.echo(name)
            show_parity(parity, console())
    show_findings(found, console(error=as_json))
    if github.on_github():
        github.report_findings("device", found, passed=worst(found) != "error")
