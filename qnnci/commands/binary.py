"""Verbs about one context binary: inspect and verify."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from qnnci import gates
from qnnci.build import calls
from qnnci.build.cache import Record
from qnnci.build.stage import Stages, prepare
from qnnci.commands.model import alone, fetched, one_model, only_graph
from qnnci.context.read import inspect as read
from qnnci.errors import ExitCode, UsageError
from qnnci.manifest import Parity
from qnnci.project import Project
from qnnci.report import github
from qnnci.report.terminal import console, show_context, show_findings, show_parity
from qnnci.toolchain.pool import Worker


def inspect(binary: Path, *, as_json: bool) -> None:
    """Print what libQnnSystem reads out of a binary, in a child process."""
    info = read(binary)
    if as_json:
        click.echo(json.dumps(info.to_json(), indent=2, ensure_ascii=False))
    else:
        show_context(info, console())
    if github.on_github():
        github.write_outputs({"info": json.dumps(info.to_json())})


def verify(
    binary: Path,
    source: str,
    inputs: Sequence[str],
    *,
    feeds: Path | None,
    samples: int,
    seed: int,
    min_cosine: float,
    min_snr: float | None,
    as_json: bool,
) -> ExitCode:
    """Compare a binary in the emulator with its original on the CPU, and gate the figures.

    Raises:
        UsageError: no EPContext model beside the binary, or an input that does not hold.

    """
    bounds = [{"metric": "cosine", "min": min_cosine}]
    bounds += [{"metric": "snr_db", "min": min_snr}] if min_snr is not None else []
    options = {"samples": samples, "seed": seed, "seconds": 3600}
    project = one_model(source, inputs, verify=options, gates={"parity": bounds})
    context_model = _context_model(binary)
    info = read(context_model.with_name(context_model.name.replace("_ctx.onnx", ".bin")))
    with tempfile.TemporaryDirectory(prefix="qnnci-verify-") as name, alone() as (stages, worker):
        folder = Path(name)
        records = referenced(source, project, feeds, folder, stages, worker)
        if calls.REFERENCE in records[-1].files:
            reference = folder / calls.REFERENCE
            call = calls.verify(
                binary.stem,
                folder,
                context_model.absolute(),
                reference,
                info=info,
                soc_id=info.soc_id or 0,
                seconds=project.verify.seconds,
                order="same",
                keys={},
            )
            records.append(stages.run(call, worker))
    found = [each for record in records for each in record.findings]
    figures, told = records[-1].data, {"parity": "null"}
    if "outputs" in figures:
        inputs_from = str(feeds) if feeds else f"seeded ({seed})"
        parity = Parity(inputs=inputs_from, samples=figures["samples"], outputs=figures["outputs"])
        found += gates.judge_parity(parity, project.gates.parity)
        told["parity"] = parity.model_dump_json()
        if as_json:
            click.echo(parity.model_dump_json(indent=2))
        else:
            show_parity(parity, console())
    show_findings(found, console(error=as_json))
    bad = gates.failed(found, "error")
    if github.on_github():
        github.report_findings(binary.name, found, passed=not bad, more=told)
    return ExitCode.GATE if bad else ExitCode.OK


def referenced(
    source: str, project: Project, feeds: Path | None, folder: Path, stages: Stages, worker: Worker
) -> list[Record]:
    """Prepare a model and run it on the CPU: `reference.npz` in `folder`, unless a finding is an error."""
    graph, original = only_graph(project), fetched(source)
    records = [prepare(stages, "original", graph, folder, original, worker)]
    if calls.PREPARED in records[-1].files:
        call = calls.reference("original", graph, project.verify, folder, original.path, given=feeds, keys={})
        records.append(stages.run(call, worker))
    return records


def _context_model(binary: Path) -> Path:
    """The EPContext model of a binary, which may itself be what was named."""
    if binary.name.endswith("_ctx.onnx"):
        return binary
    beside = binary.with_name(f"{binary.stem}_ctx.onnx")
    if not beside.exists():
        hint = "verify a binary where `qnnci build` put it, with its _ctx.onnx beside it"
        raise UsageError(f"there is no {beside.name} beside {binary}", hint=hint)
    return beside
