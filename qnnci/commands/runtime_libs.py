"""The verb runtime-libs: the libraries that binaries need on a device."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from qnnci import shards
from qnnci.errors import ExitCode
from qnnci.files import SCRATCH, default_cache, disk_errors
from qnnci.report import github
from qnnci.report.terminal import console, show_findings
from qnnci.ship import runtime_libs
from qnnci.ship.archive import Archive
from qnnci.ship.runtime_libs import Planned, Settings
from qnnci.ship.runtime_set import PLATFORMS, need
from qnnci.ship.runtime_sources import Request

FOLDER = "runtime-libs"


def run(
    where: Path,
    platform: str,
    source: str | None,
    socs: Sequence[str],
    layout: str | None,
    output: Path | None,
    *,
    archive: str | None,
    prepare: bool,
    licence: Path | None,
    maven: str | None,
    as_json: bool,
) -> ExitCode:
    """Find, judge and write the libraries for what a manifest, or a folder of builds, has.

    Raises:
        UsageError: no manifest, binaries of several QAIRT versions, or a source that cannot be used.
        ToolMissing: there is no SDK of that version, or no pip.
        MachineError: the network or disk failed.
        ToolCrashed: pip did not end.

    """
    settings = Settings("jniLibs" if layout == "jniLibs" else "flat", prepare, licence)
    folder = where if where.is_dir() else where.parent
    manifest = shards.join(shards.find([where]), folder)
    request = Request(
        PLATFORMS[platform],
        need(manifest, socs),
        source or "",
        manifest.tools,
        maven or "",
        default_cache(),
        lambda text: click.echo(text, err=True),
    )
    output = output or folder / FOLDER
    kind: Any = archive or ("folder" if settings.layout == "jniLibs" else "tar.bz2")
    with disk_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=output) as scratch:
        planned = runtime_libs.plan(request, settings, Path(scratch))
        written = None if planned.refused else runtime_libs.write(planned, output, kind)
    made = _made(planned, written)
    _report(planned, made, as_json=as_json)
    return ExitCode.GATE if planned.refused else ExitCode.OK


def _made(planned: Planned, written: Archive | Path | None) -> dict[str, Any]:
    made: dict[str, Any] = {"version": planned.version, "source": planned.source, "archive": "", "directory": ""}
    made |= {"sha256": "", "bytes": sum(each.size for each in planned.members)}
    if isinstance(written, Archive):
        made |= {"archive": str(written.path), "sha256": written.sha256, "bytes": written.bytes}
    elif written:
        made["directory"] = str(written)
    return {**made, "files": [each.name for each in planned.members]}


def _report(planned: Planned, made: Mapping[str, Any], *, as_json: bool) -> None:
    findings = list(planned.findings)
    path = made["archive"] or made["directory"]
    if as_json:
        click.echo(json.dumps({**made, "findings": [each.to_json() for each in findings]}, indent=2))
    else:
        if path:
            size, count = made["bytes"] / (1 << 20), len(made["files"])
            click.echo(f"wrote {os.path.relpath(path)}: {count} files, {size:.1f} MB, out of {planned.source}")
        out = console()
        show_findings(findings, out)
        out.print("failed: no libraries were written" if planned.refused else f"done: QAIRT {planned.version}")
    if github.on_github():
        places = {name: github.workspace_path(Path(made[name])) if made[name] else "" for name in _PLACES}
        more = {**places, "sha256": made["sha256"], "version": made["version"]}
        github.report_findings("runtime libraries", findings, passed=not planned.refused, more=more)


_PLACES = ("archive", "directory")
