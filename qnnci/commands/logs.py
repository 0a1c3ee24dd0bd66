"""The verb about logs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal

import click

from qnnci.errors import ExitCode, UsageError
from qnnci.logs import LogReport, Seen, read
from qnnci.report import github
from qnnci.report.annotations import annotate
from qnnci.report.problems import clean
from qnnci.report.terminal import console, show_findings

_FALLOUT = 5  # lines of it that are shown


def run(
    file: Path, *, tool: str | None, exit_code: int | None, quantized: bool, form: Literal["text", "json", "github"]
) -> ExitCode:
    """Print what a log says; a gate failed where the tool did.

    Raises:
        UsageError: there is no such file.

    """
    name = "" if file == Path("-") else str(file)
    if not name:
        report = read(sys.stdin.buffer, tool, exit_code, quantized=quantized)
    elif not file.is_file() and not file.is_fifo():
        what = "a folder, not a log" if file.is_dir() else "no such file"
        raise UsageError(what, where=name, hint="give the log's path, or - to read it from a pipe")
    else:
        with file.open("rb") as stream:
            report = read(stream, tool, exit_code, quantized=quantized)
    if form == "json":
        click.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    elif form == "github":
        rest = "`qnnci logs` without `--format` lists every finding."
        github.say(*annotate([each.at(file=name) for each in report.findings], rest=rest))
    else:
        _show(report)
    return ExitCode.GATE if report.outcome == "failed" else ExitCode.OK


def _show(report: LogReport) -> None:
    out = console()
    for each in report.seen:
        show_findings([each.total], out)
        _show_fallout(each)
    for line in _facts(report):
        click.echo(clean(line))
    why = f": {report.why}" if report.why else ""
    click.echo(f"{report.outcome}{why} ({report.lines} lines{f' of {report.tool}' if report.tool else ''})")


def _show_fallout(cause: Seen) -> None:
    for each in cause.fallout[:_FALLOUT]:
        times = f" ({each.count} times)" if each.count > 1 else ""
        click.echo(clean(f"    then line {each.finding.line}: {each.finding.message}{times}"))
    if len(cause.fallout) > _FALLOUT:
        click.echo(f"    and {len(cause.fallout) - _FALLOUT} more")


def _facts(report: LogReport) -> list[str]:
    facts = report.facts
    told = {
        "encodings read": facts.encodings,
        "overrides without a tensor": ", ".join(facts.unmatched),
        "ops in float": ", ".join(facts.float_ops),
        "DDR": ", ".join(f"{key} {value}" for key, value in facts.ddr.items()),
        "stages": ", ".join(f"{stage} {us / 1000:.1f} ms" for stage, us in facts.stages_us.items()),
    }
    return [f"{what}: {value}" for what, value in told.items() if value not in (None, "")]
