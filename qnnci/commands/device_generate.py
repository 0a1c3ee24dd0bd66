"""The verb `device generate`: a context binary out of a model library, compiled on the device itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from qnnci.commands import device_kit
from qnnci.context.info import ContextInfo
from qnnci.context.read import inspect
from qnnci.device import room
from qnnci.device.about import folder_for
from qnnci.device.generate import EXTENSIONS, GENERATOR, generate, graph_name
from qnnci.errors import ExitCode, UsageError
from qnnci.files import write_text
from qnnci.findings import Finding, worst
from qnnci.report import github
from qnnci.report.terminal import console, show_context, show_findings
from qnnci.rules import finding
from qnnci.soc import Soc
from qnnci.toolchain import sdk


def on_device(
    address: str,
    ssh_options: Sequence[str],
    library: Path,
    output: Path,
    *,
    soc: str,
    graph: str,
    libs: Path | None,
    root: str | None,
    folder: str,
    seconds: float,
    keep: bool,
    as_json: bool,
) -> ExitCode:
    """Compile a model library on a device, bring the binary here and read it.

    Raises:
        UsageError: no library, or it is for no chip that is known.
        QnnciError: the device, its libraries or the tool are not there.

    """
    if not library.is_file():
        raise UsageError(
            "there is no such file", where=str(library), hint="a model library for the device, such as libnet.so"
        )
    reached = device_kit.reach(address, ssh_options, soc)
    version = sdk.find(None, root).version
    with device_kit.libraries(reached, version, libs, root, prepare=True) as local:
        kit = device_kit.kit(reached, version, local, root, name=GENERATOR, prepare=True)
        if EXTENSIONS not in kit:
            kit[EXTENSIONS] = device_kit.tool(reached, version, root, EXTENSIONS, place="lib")
        place = folder_for(reached.about, room.space({**kit, "model": library}) * 2, folder)
        with room.opened(reached.link, place, (sorted(kit), version), keep=keep) as at:
            made = generate(
                at, library, kit, output, reached.soc,
                graph=graph or graph_name(library), timeout=seconds, say=device_kit.say,
            )  # fmt: skip
    log = output.with_name(f"{output.stem}.log")
    write_text(log, made.log)
    found = [each for each in made.report.findings if each.severity != "notice"]
    info = inspect(output) if made.written else None
    found += _judged(info, reached.soc) if info else []
    _report(
        info, output, [each.at(soc=reached.soc.name, stage="device", file=str(log)) for each in found], as_json=as_json
    )
    if not made.written:
        return ExitCode.TOOL_CRASHED
    return ExitCode.GATE if worst(found) == "error" else ExitCode.OK


def _judged(info: ContextInfo, soc: Soc) -> list[Finding]:
    found = []
    if info.soc_id not in {None, soc.id}:
        found.append(
            finding("wrong-soc", f"the binary is for SoC id {info.soc_id}, the device is {soc.name} ({soc.id})")
        )
    if info.dsp_arch not in {None, soc.arch}:
        found.append(finding("wrong-arch", f"the binary is for v{info.dsp_arch}, {soc.name} is {soc.dsp_arch}"))
    return found


def _report(info: ContextInfo | None, output: Path, found: list[Finding], *, as_json: bool) -> None:
    if as_json:
        told = {"binary": str(output) if info else "", "info": info.to_json() if info else None}
        click.echo(json.dumps({**told, "findings": [each.to_json() for each in found]}, indent=2))
    elif info:
        show_context(info, console())
        click.echo(f"wrote {output}")
    show_findings(found, console(error=as_json))
    if github.on_github():
        github.report_findings("device", found, passed=info is not None and worst(found) != "error")
