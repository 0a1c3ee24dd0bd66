"""Verbs about manifests: join those of many jobs, and judge what they say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import click

from qnnci import manifest_check, manifest_diff, shards
from qnnci.build.outcome import REPORT
from qnnci.errors import ExitCode
from qnnci.findings import Finding, worst
from qnnci.gates import failed
from qnnci.manifest import FindingRecord, save, schema_text
from qnnci.project import FailOn
from qnnci.report import github, page
from qnnci.report.terminal import console, show_changes, show_findings, show_results
from qnnci.report.verdict import good, verdict


def join(folders: Sequence[str], output: Path) -> None:
    """Write one manifest of many."""
    found = shards.find(map(Path, folders))
    manifest = shards.join(found, output.parent)
    save(output, manifest)
    click.echo(f"wrote {output}: {len(manifest.entries)} binaries of {len(found)} manifests")
    if github.on_github():
        github.write_outputs({"manifest": github.workspace_path(output)})


def gate(where: Path, plan: str | None, fail_on: str | None, output: Path | None) -> ExitCode:
    """Judge a manifest or those of a folder, and report all of it; what a build itself failed cannot pass here."""
    found = shards.find([where])
    path = output or (found[0].path if len(found) == 1 else where / shards.NAME)
    manifest = shards.join(found, path.parent)
    lost = shards.missing(manifest, shards.planned(plan) if plan else ())
    records = (*manifest.findings, *(FindingRecord.model_validate(each.to_json()) for each in lost))
    findings = [Finding(**each.model_dump()) for each in records]
    passed = manifest.passed and not lost and not failed(findings, cast("FailOn", fail_on or "never"))
    manifest = manifest.model_copy(update={"passed": passed, "findings": records})
    shown = output.with_name(REPORT) if output else None
    if output and shown:
        save(output, manifest)
        page.write(shown, manifest, [each.path.parent for each in found])
    out = console()
    if manifest.entries:
        show_results(manifest, out)
    show_findings(findings, out)
    out.print(f"{verdict(findings, passed=passed)}: {good(manifest)} of {len(manifest.entries)} binaries are good")
    if github.on_github():
        github.report(manifest, path, page=shown)
    return ExitCode.OK if passed else ExitCode.GATE


def report(where: Path, output: Path | None) -> None:
    """Write the report of a manifest, or of those in a folder, beside it."""
    found = shards.find([where])
    path = output or _folder(where) / REPORT
    page.write(path, shards.join(found, _folder(where)), [each.path.parent for each in found])
    click.echo(f"wrote {path}")


def check(where: Path, *, as_json: bool) -> ExitCode:
    """Hash every file of a manifest again and read every binary again."""
    folder = _folder(where)
    manifest = shards.join(shards.find([where]), folder)
    found = manifest_check.check(manifest, lambda path: folder / path)
    _tell(found, as_json=as_json)
    bad = worst(found) == "error"
    if not as_json:
        whole = len(manifest.entries) - len({(each.graph, each.soc) for each in found if each.soc})
        ended = "failed" if bad else "passed"
        click.echo(f"{ended}: {whole} of {len(manifest.entries)} binaries are as they were built")
    if github.on_github():
        github.report_findings(manifest.name, found, passed=not bad)
    return ExitCode.GATE if bad else ExitCode.OK


def _folder(where: Path) -> Path:
    """Where the paths of a manifest, or of those in a folder, start."""
    return where if where.is_dir() else where.parent


def _tell(found: Sequence[Finding], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([each.to_json() for each in found], indent=2))
    else:
        show_findings(found, console())


def diff(old: Path, new: Path, *, exit_code: bool, as_json: bool) -> ExitCode:
    """Say what changed between two builds of one project, and what it means for whoever runs the binaries."""
    before, after = (shards.join(shards.find([each]), _folder(each)) for each in (old, new))
    changes = manifest_diff.diff(before, after)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in changes], indent=2))
    else:
        show_changes(changes, console())
    matters = any(each.effect != "record" for each in changes)
    return ExitCode.GATE if exit_code and matters else ExitCode.OK


def schema() -> None:
    """Print the JSON Schema of manifest.json."""
    click.echo(schema_text(), nl=False)
