"""The verb `debug graph`: which layers lose the numbers on the HTP."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from qnnci.build import calls
from qnnci.build.cache import digests, key_of
from qnnci.build.run import Options, build
from qnnci.commands.model import alone
from qnnci.errors import ExitCode, UsageError
from qnnci.files import default_cache, write_json
from qnnci.findings import worst
from qnnci.flags import Flags, project_file
from qnnci.model.layers import Layer, jumps
from qnnci.plan import Target, plan
from qnnci.project_file import ProjectFile
from qnnci.report.layers import advice, by_node, plot, show_layers
from qnnci.report.terminal import console, progress, show_findings


def graph(
    flags: dict[str, Any], name: str | None, *, simulate: bool, samples: int, top: int, as_json: bool
) -> ExitCode:
    """Measure every layer of one graph on one chip, print those whose error jumps, and write table and plot.

    Raises:
        UsageError: no such graph, a route that cannot expose layers, or a chip that does not take the precision.

    """
    file = project_file(replace(Flags(**flags), verify=True))
    target = _target(file, name)
    options = Options(default_cache(), os.cpu_count() or 1, until="prepare")
    with progress(0, live=False) as listen:
        built = build(file, [target], options, (lambda _: None) if as_json else listen)
    if built.code != ExitCode.OK:
        show_findings(built.findings, console(error=as_json))
        for error in built.errors:
            raise error
        return built.code
    folder = file.base / file.project.output / target.graph
    precision = "fp16, simulated" if simulate else target.precision
    call = _call(file, target, folder, samples, simulate=simulate)
    with alone() as (stages, worker):
        record = stages.run(call, worker)
    show_findings(record.findings, console(error=as_json))
    if worst(record.findings) == "error":
        return ExitCode.GATE
    layers = [Layer.from_json(each) for each in record.data["layers"]]
    stem = "layers_simulated" if simulate else f"layers_{target.stem}"
    write_json(folder / f"{stem}.json", [each.to_json() for each in layers])
    plot(layers, folder / f"{stem}.svg", f"{target.id}, {precision}: error by depth")
    if as_json:
        told = [{**each.to_json(), "advice": advice(each, target.precision)} for each in by_node(jumps(layers))]
        click.echo(json.dumps(told, indent=2))
        return ExitCode.OK
    out = console()
    show_layers(layers, target.precision, top, out)
    out.print(f"wrote {folder / stem}.json and {stem}.svg: {len(layers)} layers, {record.data['samples']} samples")
    if not simulate:
        out.print("from the host emulator: it checks numbers, not speed")
    return ExitCode.OK


def _target(file: ProjectFile, name: str | None) -> Target:
    targets = plan(file.project, [name] if name else ())
    graphs = list(dict.fromkeys(each.graph for each in targets))
    if len(graphs) > 1:
        raise UsageError(f"the project has {len(graphs)} graphs", hint=f"name one: `--graph {graphs[0]}`")
    if file.project.route != "ort":
        raise UsageError(
            f"layers are measured on route ort, the project says {file.project.route}", hint="`--route ort`"
        )
    for target in targets:
        if target.refusal is None:
            return target
    refusal = targets[0].refusal
    raise UsageError(refusal.message if refusal else "nothing to do", hint=refusal.hint if refusal else "")


def _call(file: ProjectFile, target: Target, folder: Path, samples: int, *, simulate: bool) -> calls.Call:
    options = file.project.compile
    chip = {
        "soc_id": target.soc.id,
        "vtcm_mb": options.vtcm_for(target.soc),
        "optimization": options.optimization,
        "fp16": target.precision == "fp16",
    }
    arguments = {
        "prepared": str(folder / calls.PREPARED),
        "compiled": str(folder / calls.PREPARED),
        "reference": str(folder / calls.REFERENCE),
        "samples": samples,
        "chip": None if simulate else chip,
    }
    files = [digests(folder / name) for name in (calls.PREPARED, f"{calls.PREPARED}.data", calls.REFERENCE)]
    return calls.Call(
        target.id, "layers", folder, arguments, key_of(files=files, samples=samples, chip=arguments["chip"])
    )
