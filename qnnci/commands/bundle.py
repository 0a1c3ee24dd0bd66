"""The verb bundle: archives of what a build made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from qnnci import shards
from qnnci.errors import ExitCode, UsageError
from qnnci.findings import Finding
from qnnci.flags import DEFAULT_CONFIG
from qnnci.project import Bundle
from qnnci.project_file import ProjectFile, load
from qnnci.report import github
from qnnci.report.terminal import console, show_findings
from qnnci.ship import bundle
from qnnci.ship.archive import Archive

FOLDER = "bundles"


def run(
    where: Path | None,
    config: str | None,
    given: Mapping[str, Any],
    output: Path | None,
    *,
    include_failed: bool,
    as_json: bool,
) -> ExitCode:
    """Write every archive that nothing speaks against; `given` are settings over those of the project file.

    Raises:
        UsageError: no project, manifest or settings that hold; a file that is not what the manifest says.
        MachineError: no room on the disk.

    """
    file = _project(config)
    where = where or (file.base / file.project.output if file else Path("build"))
    found = shards.find([where])
    folder = where if where.is_dir() else where.parent
    manifest = shards.join(found, folder)
    if file and file.project.name != manifest.name:
        message = f"{file.path} is of the project {file.project.name}, the manifest of {manifest.name}"
        raise UsageError(message, where=str(where), hint="name the project file with `-c`")
    settings = _settings(file, given)
    base = file.base if file else Path()
    planned = bundle.plan(bundle.Source(manifest, folder, base, settings, include_failed=include_failed))
    output = output or folder / FOLDER
    made: list[dict[str, Any]] = []
    for each in planned:
        if each.refused:
            continue
        made.append(_row(each, bundle.write(each, output, settings)))
        if not as_json:
            click.echo(f"wrote {os.path.relpath(made[-1]['path'])}: {made[-1]['bytes'] / (1 << 20):.1f} MB")
    return _report([finding for each in planned for finding in each.findings], made, output, as_json=as_json)


def _project(config: str | None) -> ProjectFile | None:
    return load(Path(config or DEFAULT_CONFIG)) if config or Path(DEFAULT_CONFIG).exists() else None


def _settings(file: ProjectFile | None, given: Mapping[str, Any]) -> Bundle:
    own = file.project.bundle if file else Bundle()
    return own.model_copy(update={key: value for key, value in given.items() if value})


def _row(planned: bundle.Planned, written: Archive) -> dict[str, Any]:
    """`graphs` are in the order in which a loader that wants a list wants it."""
    return {
        "path": str(written.path),
        "sha256": written.sha256,
        "bytes": written.bytes,
        "soc": planned.soc,
        "graphs": [item.entry.graph for item in planned.items],
    }


def _report(findings: list[Finding], made: list[dict[str, Any]], output: Path, *, as_json: bool) -> ExitCode:
    refused = any(each.severity == "error" for each in findings)
    if as_json:
        click.echo(json.dumps({"archives": made, "findings": [each.to_json() for each in findings]}, indent=2))
    else:
        out = console()
        show_findings(findings, out)
        out.print(f"{'failed' if refused else 'done'}: {len(made)} archives in {output}")
    if github.on_github():
        rows = [{**each, "path": github.workspace_path(Path(each["path"]))} for each in made]
        more = {"archives": json.dumps(rows), "directory": github.workspace_path(output)}
        github.report_findings("bundles", findings, passed=not refused, more=more)
    return ExitCode.GATE if refused else ExitCode.OK
