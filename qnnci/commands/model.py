"""Verbs about one ONNX graph: check and prepare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from qnnci.build import calls
from qnnci.build.stage import Stages
from qnnci.errors import ExitCode
from qnnci.findings import Finding, ranked, worst
from qnnci.flags import graph_name, parse_input
from qnnci.gates import failed
from qnnci.model.source import Source, default_cache, fetch
from qnnci.project import FailOn, Graph, Project
from qnnci.project_file import validate
from qnnci.report.terminal import console, show_findings
from qnnci.toolchain.pool import Limit, Worker, machine_mb


def one_model(source: str, inputs: Sequence[str], *, simplify: bool = True, **settings: Any) -> Project:
    """Return a project of one model that is named on the command line; `settings` are the project's own keys.

    Raises:
        UsageError: inputs or settings that do not hold.

    """
    name = graph_name(source)
    graph = {"source": source, "inputs": dict(map(parse_input, inputs)), "simplify": simplify}
    return validate({"name": name, "socs": ["SM8750"], "graphs": {name: graph}, **settings}, "flags")


def only_graph(project: Project) -> Graph:
    return next(iter(project.graphs.values()))


def fetched(source: str) -> Source:
    return fetch(source, sha256=None, base=Path(), cache=default_cache())


def check(model: str, inputs: Sequence[str], fail_on: str, *, as_json: bool) -> ExitCode:
    """Print findings about a graph as it came; weights are not read."""
    from qnnci.model.check import check as run

    found = run(fetched(model).path, inputs=only_graph(one_model(model, inputs)).inputs)
    _print(found, as_json=as_json)
    if not found and not as_json:
        click.echo("nothing stands between this model and the HTP, as far as it can be known without compiling")
    return ExitCode.GATE if failed(found, cast("FailOn", fail_on)) else ExitCode.OK


def prepare(model: str, output: Path, inputs: Sequence[str], *, simplify: bool) -> ExitCode:
    """Write `prepared.onnx` into a folder, in a child process as a build does."""
    graph = only_graph(one_model(model, inputs, simplify=simplify))
    source = fetched(model)
    worker = Worker()
    try:
        stages = Stages(Path(), Limit(3600, machine_mb() * 9 // 10), lambda _: None)
        record = stages.run(calls.prepare(graph_name(model), graph, output, source.path, source.sha256), worker)
    finally:
        worker.stop()
    _print(record.findings, as_json=False)
    if worst(record.findings) == "error":
        return ExitCode.GATE
    click.echo(f"wrote {output / calls.PREPARED}")
    return ExitCode.OK


def _print(found: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([each.to_json() for each in ranked(found)], indent=2, ensure_ascii=False))
    else:
        show_findings(found, console())
