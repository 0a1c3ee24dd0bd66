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
from qnnci.build.quantize import computes_float
from qnnci.build.run import Options, build
from qnnci.commands.model import alone
from qnnci.errors import ExitCode, UsageError
from qnnci.files import default_cache, write_json
from qnnci.findings import worst
from qnnci.flags import Flags, project_file
from qnnci.model.layers import Layer, fine_db, jumps
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
    file = _float_ports(project_file(replace(Flags(**flags), verify=True)))
    target = _target(file, name)
    options = Options(default_cache(), os.cpu_count() or 1, until="prepare" if simulate else "convert")
    with progress(0, live=False) as listen:
        built = build(file, [target], options, (lambda _: None) if as_json else listen)
    if built.code != ExitCode.OK:
        show_findings(built.findings, console(error=as_json))
        for error in built.errors:
            raise error
        return built.code
    folder = file.base / file.project.output / target.graph
    precision = "fp16, simulated" if simulate else target.precision
    fine = fine_db("fp16" if simulate else target.precision)
    call = _call(file, target, folder, samples, simulate=simulate)
    with alone() as (stages, worker):
        record = stages.run(call, worker)
    show_findings(record.findings, console(error=as_json))
    if worst(record.findings) == "error":
        return ExitCode.GATE
    layers = [Layer.from_json(each) for each in record.data["layers"]]
    stem = "layers_simulated" if simulate else f"layers_{target.stem}"
    write_json(folder / f"{stem}.json", [each.to_json() for each in layers])
    plot(layers, folder / f"{stem}.svg", f"{target.id}, {precision}: error by depth", fine)
    if as_json:
        found = by_node(jumps(layers, fine))
        told = [{**each.to_json(), "advice": advice(each, target.precision)} for each in found]
        click.echo(json.dumps(told, indent=2))
        return ExitCode.OK
    out = console()
    show_layers(layers, "fp16" if simulate else target.precision, top, out)
    out.print(f"wrote {folder / stem}.json and {stem}.svg: {len(layers)} layers, {record.data['samples']} samples")
    if not simulate:
        out.print("from the host emulator: it checks numbers, not speed")
    return ExitCode.OK


def _float_ports(file: ProjectFile) -> ProjectFile:
    """The project with float inputs and outputs: they are no layers, and what is exposed is float."""
    project, plain = file.project, {"io": "float32"}
    graphs = {
        name: graph.model_copy(update={"quantize": project.quantize_for(name).model_copy(update=plain)})
        for name, graph in project.graphs.items()
    }
    return replace(file, project=project.model_copy(update={"graphs": graphs}))


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
    options, settings = file.project.compile, file.project.quantize_for(target.graph)
    quantized = folder / target.precision / calls.QUANTIZED
    compiled = quantized if target.precision != "fp16" and not simulate and quantized.exists() else None
    chip = {
        "soc_id": target.soc.id,
        "vtcm_mb": options.vtcm_for(target.soc),
        "optimization": options.optimization,
        "fp16": computes_float(target, settings, quantized_here=compiled is not None),
    }
    arguments = {
        "prepared": str(folder / calls.PREPARED),
        "compiled": str(compiled or folder / calls.PREPARED),
        "reference": str(folder / calls.REFERENCE),
        "samples": samples,
        "chip": None if simulate else chip,
        "fine": fine_db("fp16" if simulate else target.precision),
    }
    files = [digests(folder / name) for name in (calls.PREPARED, f"{calls.PREPARED}.data", calls.REFERENCE)]
    files += [digests(compiled)] if compiled else []
    said = {name: arguments[name] for name in ("samples", "chip", "fine")}
    return calls.Call(target.id, "layers", folder, arguments, key_of(files=files, **said))
