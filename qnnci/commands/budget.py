"""The verb `budget`: which graphs of a manifest fit into memory at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from qnnci import shards
from qnnci.budget import Budget, budget, judge
from qnnci.context.info import ContextInfo
from qnnci.context.read import inspect_all
from qnnci.errors import ExitCode, QnnciError, UsageError
from qnnci.findings import Finding, worst
from qnnci.manifest import Entry
from qnnci.report import github
from qnnci.report.terminal import console, show_budgets, show_findings
from qnnci.rules import finding
from qnnci.soc import find_soc


def run(where: Path, resident: Sequence[str], socs: Sequence[str], process_mb: int, *, as_json: bool) -> ExitCode:
    """Sum up the chosen graphs of each SoC from the binaries themselves, and judge the sums.

    Raises:
        UsageError: no such graph or SoC in the manifest, or a binary that cannot be read.

    """
    folder = where if where.is_dir() else where.parent
    manifest = shards.join(shards.find([where]), folder)
    entries = _chosen(manifest.entries, resident, socs)
    answers = inspect_all([folder / entry.binary for entry in entries])
    infos: dict[str, dict[str, ContextInfo]] = {}
    for entry, answer in zip(entries, answers, strict=True):
        if isinstance(answer, QnnciError):
            raise answer
        infos.setdefault(entry.soc, {})[entry.graph] = answer
    wanted = list(dict.fromkeys(resident)) or list(dict.fromkeys(entry.graph for entry in manifest.entries))
    found: list[Finding] = []
    budgets: list[Budget] = []
    for soc, contexts in infos.items():
        for graph in (each for each in wanted if each not in contexts):
            message = f"the manifest has no binary of {graph} for it: the sums are without"
            found.append(finding("not-in-budget", message, soc=soc, graph=graph, stage="budget"))
        budgets.append(budget(find_soc(soc), {name: contexts[name] for name in wanted if name in contexts}))
        found += judge(budgets[-1], process_mb)
    if as_json:
        rows = [{**asdict(each), "soc": each.soc.name, "chip_vtcm": each.soc.vtcm_mb << 20} for each in budgets]
        click.echo(json.dumps({"budgets": rows, "findings": [each.to_json() for each in found]}, indent=2))
    else:
        show_budgets(budgets, process_mb, console())
    show_findings(found, console(error=as_json))
    bad = worst(found) == "error"
    if github.on_github():
        github.report_findings("memory", found, passed=not bad)
    return ExitCode.GATE if bad else ExitCode.OK


def _chosen(entries: Sequence[Entry], resident: Sequence[str], socs: Sequence[str]) -> list[Entry]:
    graphs, chips = {entry.graph for entry in entries}, {entry.soc for entry in entries}
    if unknown := [name for name in resident if name not in graphs]:
        raise UsageError(f"the manifest has no graph {unknown[0]!r}", hint=f"it has {', '.join(sorted(graphs))}")
    names = {find_soc(name).name for name in socs} or chips
    if absent := sorted(names - chips):
        raise UsageError(f"the manifest has nothing for {absent[0]}", hint=f"it has {', '.join(sorted(chips))}")
    return [entry for entry in entries if entry.soc in names and (not resident or entry.graph in resident)]
