"""`qnnci export`: a repository's own export, prepared and held against the original model; nothing is compiled."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qnnci.build.outcome import Built, Exported
from qnnci.build.run import Options
from qnnci.commands.build import show_ending, watched
from qnnci.errors import ExitCode, UsageError
from qnnci.files import default_cache
from qnnci.flags import DEFAULT_CONFIG, Flags, parse_input, parse_variable, project_file
from qnnci.plan import plan
from qnnci.project_file import ProjectFile, validate
from qnnci.report import github
from qnnci.report.exports import export_figures
from qnnci.report.terminal import console, show_exports

NAME = "model"


def run(
    graphs: Sequence[str],
    *,
    config: str | None,
    command: str | None,
    jobs: int | None,
    cache: Path | None,
    **flags: Any,
) -> ExitCode:
    """Export and prepare every graph of the project that has an `export`, or the one of `command`.

    Raises:
        UsageError: flags that do not go together, no graph to export, or settings that do not hold.

    """
    file = _of_flags(config, command, graphs, **flags) if command else _of_file(config, graphs, **flags)
    wanted = list(graphs) or [name for name, graph in file.project.graphs.items() if graph.export]
    options = Options(cache or default_cache(), jobs or os.cpu_count() or 1, until="prepare")
    built, heard = watched(file, plan(file.project, wanted), options)
    out, figures = console(), {each.graph: export_figures(each.parity, each.metrics) for each in built.exports}
    show_exports({graph: text for graph, text in figures.items() if text}, out)
    show_ending(built, heard, out)
    made = ", ".join(os.path.relpath(each.prepared) for each in built.exports) or "nothing"
    out.print(f"{'passed' if built.code == ExitCode.OK else 'failed'}: wrote {made}", markup=False)
    if github.on_github():
        github.report(built.manifest, built.path, errors=built.errors, exports=figures)
        github.write_outputs(_outputs(built))
    return built.code


def _of_file(config: str | None, graphs: Sequence[str], **flags: Any) -> ProjectFile:
    given = {"inputs", "output", "fail_on"}
    alone = [name for name, value in flags.items() if value and name not in given]
    if alone:
        option = {"python": "export-python", "variables": "env"}.get(alone[0], alone[0])
        raise UsageError(f"--{option} goes with --run", hint="a project file has it under `export:`")
    file = project_file(Flags(config=config, **{name: flags[name] for name in given}))
    exports = [name for name, graph in file.project.graphs.items() if graph.export]
    plan(file.project, graphs)  # a name that it has not is told first
    for name in graphs if exports else [next(iter(file.project.graphs))]:
        if name not in exports:
            told = f"the graph {name!r} has no `export`" if exports else "no graph has an `export`"
            where = config or DEFAULT_CONFIG
            raise UsageError(f"{told}: {where}", hint="give it one in place of `source`, or use --run")
    return file


def _of_flags(  # each is one key of the project file
    config: str | None,
    command: str,
    graphs: Sequence[str],
    *,
    name: str | None,
    requirements: str | None,
    python: str | None,
    variables: Sequence[str],
    reads: Sequence[str],
    reference: str | None,
    inputs: Sequence[str],
    output: str | None,
    fail_on: str | None,
) -> ProjectFile:
    """Return a project of one graph; the chip in it is never looked at."""
    if config or graphs:
        hint = "a project file has its own command, under `export: {run: …}`"
        raise UsageError(f"give --run or --{'config' if config else 'graph'}, not both", hint=hint)
    export = {
        "run": command,
        "requirements": requirements,
        "python": python,
        "env": dict(map(parse_variable, variables)),
        "inputs": list(reads),
        "reference": reference,
    }
    graph = {"export": export, "inputs": dict(map(parse_input, inputs))}
    top = {"output": output, "fail_on": fail_on}
    data = {
        "name": name or NAME,
        "socs": ["SM8750"],
        "graphs": {name or NAME: graph},
        "verify": {"enabled": False},
        **{key: value for key, value in top.items() if value},
    }
    return ProjectFile(validate(data, "flags"))


def _outputs(built: Built) -> dict[str, str]:
    """What the action gives beside the verdict: `models` and `parity` as JSON, `model` where there is one graph."""
    models = [
        {"graph": each.graph, "path": github.workspace_path(each.prepared), "sha256": each.sha256}
        for each in built.exports
    ]
    parity = {each.graph: _figures(each) for each in built.exports}
    return {
        "model": models[0]["path"] if len(models) == 1 else "",
        "models": json.dumps(models),
        "parity": json.dumps(parity),
    }


def _figures(each: Exported) -> dict[str, Any]:
    return {
        "outputs": {name: figures.model_dump() for name, figures in (each.parity or {}).items()},
        "metrics": {name: measured.model_dump() for name, measured in (each.metrics or {}).items()},
    }
