"""Verbs about manifests: join those of many jobs, and judge what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import click

from qnnci import shards
from qnnci.errors import ExitCode
from qnnci.findings import Finding
from qnnci.gates import failed
from qnnci.manifest import FindingRecord, save
from qnnci.project import FailOn
from qnnci.report import github
from qnnci.report.terminal import console, show_findings, show_results


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
    if output:
        save(output, manifest)
    out = console()
    if manifest.entries:
        show_results(manifest, out)
    show_findings(findings, out)
    good = sum(entry.passed for entry in manifest.entries)
    out.print(f"{'passed' if passed else 'failed'}: {good} of {len(manifest.entries)} binaries are good")
    if github.on_github():
        github.report(manifest, path)
    return ExitCode.OK if passed else ExitCode.GATE
