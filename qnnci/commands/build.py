"""`qnnci build`: the whole job, reported to a terminal or to GitHub."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from qnnci.build.outcome import REPORT, Built
from qnnci.build.run import Options, Until, build
from qnnci.errors import ExitCode
from qnnci.files import default_cache
from qnnci.flags import Flags, project_file
from qnnci.plan import Target, plan
from qnnci.project import Project
from qnnci.project_file import ProjectFile
from qnnci.report import github, page
from qnnci.report.problems import clean
from qnnci.report.terminal import Heard, console, progress, show_findings, show_results
from qnnci.report.verdict import good, verdict


def run(
    flags: dict[str, Any],
    graphs: Sequence[str],
    *,
    report: bool,
    jobs: int | None,
    keep_going: bool,
    cache: Path | None,
    until: Until | None,
) -> ExitCode:
    """Build and report; the exit code is that of the worst thing that happened.

    Without `report`, GitHub is told only of errors that are in no manifest: who joins the manifests tells the rest.
    """
    given = Flags(**flags)
    file = project_file(given)
    targets = plan(file.project, graphs)
    options = Options(cache or default_cache(), jobs or os.cpu_count() or 1, keep_going, until)
    built, heard = watched(file, targets, options)
    shown = None if until else built.path.with_name(REPORT)
    if shown:
        page.write(shown, built.manifest, [built.path.parent])
    out = console()
    if built.manifest.entries:
        show_results(built.manifest, out)
    show_ending(built, heard, out)
    ended = verdict(built.findings, passed=built.code == ExitCode.OK)
    if until:
        done = "converted" if until == "convert" and file.project.route != "ort" else "prepared"
        out.print(f"{ended}: {done} {', '.join(dict.fromkeys(each.graph for each in targets))}, {built.path.parent}")
    else:
        out.print(f"{ended}: {good(built.manifest)} of {len(targets)} binaries are good, {built.path}")
    if github.on_github():
        table = report and not until
        github.report(built.manifest, built.path, page=shown, errors=built.errors, findings=report, table=table)
    return built.code


def watched(file: ProjectFile, targets: Sequence[Target], options: Options) -> tuple[Built, Heard]:
    """Build, with a live display where somebody looks on."""
    live = sys.stderr.isatty() and not github.on_github() and not os.environ.get("CI")
    with progress(0 if options.until else _steps(file.project, targets), live=live) as listen:
        heard = Heard(listen)
        return build(file, targets, options, heard), heard


def show_ending(built: Built, heard: Heard, out: Console) -> None:
    """Print what was found and what went wrong, or that there was nothing to do."""
    show_findings(built.findings, out)
    for told in dict.fromkeys(map(str, built.errors)):  # one cause may stop many targets
        click.echo(f"error: {clean(told)}", err=True)
    if heard.nothing_new:
        out.print(f"nothing to do: all {heard.stood} stages stood")


def _steps(project: Project, targets: Sequence[Target]) -> int:
    """How many compiles and verifications there are, if nothing fails."""
    wanted = [target for target in targets if target.refusal is None]
    verified = set()
    for target in wanted:
        verify = project.verify_for(target.graph)
        which = target.soc.dsp_arch if verify.targets == "one-per-arch" else target.soc.name
        verified |= {(target.graph, target.precision, which)} if verify.enabled else set()
    return len(wanted) + len(verified)
