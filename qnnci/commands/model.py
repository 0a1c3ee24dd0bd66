"""Verbs about one ONNX graph: check and prepare."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import click

from qnnci.build import calls
from qnnci.build.stage import Stages
from qnnci.build.stage import prepare as prepare_stage
from qnnci.errors import ExitCode
from qnnci.files import default_cache
from qnnci.findings import Finding, ranked, worst
from qnnci.flags import graph_name, parse_input
from qnnci.gates import failed
from qnnci.model.source import Source, fetch
from qnnci.project import FailOn, Graph, Project
from qnnci.project_file import validate
from qnnci.report import github
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
    """Print findings about a graph as it came; weights are not read. A hostile file can only crash a child."""
    arguments = {"model": str(fetched(model).path), "inputs": calls.inputs_of(only_graph(one_model(model, inputs)))}
    with tempfile.TemporaryDirectory(prefix="qnnci-check-") as name, alone() as (stages, worker):
        record = stages.run(calls.Call(graph_name(model), "check", Path(name), arguments, key=""), worker)
    _print(record.findings, as_json=as_json)
    if not as_json and "forecast" in record.data:
        from qnnci.model.forecast import in_words

        click.echo(in_words(record.data["forecast"]))
    if not record.findings and not as_json:
        click.echo("nothing stands between this model and the HTP, as far as it can be known without compiling")
    bad = failed(record.findings, cast("FailOn", fail_on))
    if github.on_github():
        github.report_findings(graph_name(model), record.findings, passed=not bad)
    return ExitCode.GATE if bad else ExitCode.OK


def prepare(model: str, output: Path, inputs: Sequence[str], *, simplify: bool) -> ExitCode:
    """Write `prepared.onnx` into a folder, as a build does."""
    graph = only_graph(one_model(model, inputs, simplify=simplify))
    source = fetched(model)
    with alone() as (stages, worker):
        record = prepare_stage(stages, graph_name(model), graph, output, source, worker)
    _print(record.findings, as_json=False)
    if worst(record.findings) == "error":
        return ExitCode.GATE
    click.echo(f"wrote {output / calls.PREPARED}")
    return ExitCode.OK


@contextmanager
def alone() -> Iterator[tuple[Stages, Worker]]:
    """Yield what runs the stages of one graph: a worker of its own, an hour for each stage, no display."""
    worker = Worker()
    try:
        yield Stages(Path(), Limit(3600, machine_mb() * 9 // 10), lambda _: None), worker
    finally:
        worker.stop()


def _print(found: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([each.to_json() for each in ranked(found)], indent=2, ensure_ascii=False))
    else:
        show_findings(found, console())
