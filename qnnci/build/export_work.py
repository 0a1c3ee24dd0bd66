"""The commands of an export, run in a worker: what they wrote is taken over, or told why not."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qnnci.build.export import EXPORTED, MEASURED, ORIGINAL
from qnnci.build.scratch import filled, fresh
from qnnci.build.verdict import shell_code
from qnnci.errors import UsageError
from qnnci.files import commit, disk_errors
from qnnci.metric import read_report
from qnnci.model.exported import take
from qnnci.rules import finding
from qnnci.toolchain.export_venv import file_of, run_command

Json = dict[str, Any]


def run_export(command: Json, room: Path, folder: Path, *, reference: bool) -> Json:
    """Run the export command; what it wrote goes from `room` to `folder` when it is whole."""
    hint = _hint(folder, "export")
    with fresh(room):
        ended = run_command(**command)
        wanted = {"{output}": EXPORTED, **({"{reference}": ORIGINAL} if reference else {})}
        missing = [place for place, name in wanted.items() if not filled(room / name)]
        if ended.code or missing:
            how = f"exit code {shell_code(ended.code)}" if ended.code else f"it wrote no {' and no '.join(missing)}"
            place = _at(ended.traced if ended.code else None, command["argv"], Path(command["base"]))
            return {"findings": [finding("export-failed", f"{how}: {ended.said}", hint=hint, **place).to_json()]}
        try:
            with disk_errors(folder):
                if reference:
                    commit(room / ORIGINAL, folder / ORIGINAL)
                take(room / EXPORTED, folder)
        except UsageError as error:
            message = f"what it wrote cannot be used: {error.message}"
            place = _at(None, command["argv"], Path(command["base"]))
            return {"findings": [finding("export-failed", message, hint=hint, **place).to_json()]}
    return {"peak_mb": _peak_mb(), "findings": []}


def run_measure(command: Json, room: Path, folder: Path, metric: str) -> Json:
    """Run the command that compares an exported graph; its report is kept in `folder`."""
    report = room / MEASURED
    hint = _hint(folder, "measure")
    with fresh(room):
        ended = run_command(**command)
        problem = f"exit code {shell_code(ended.code)}: {ended.said}" if ended.code else ""
        if not problem and not filled(report):
            problem = f"it wrote no {{report}}: {ended.said}"
        if not problem:
            try:
                score = read_report(report, metric)
            except UsageError as error:
                problem, hint = f"its report cannot be used: {error.message}", error.hint
        if problem:
            return {"findings": [finding("compare-failed", problem, hint=hint).to_json()]}
        with disk_errors(folder):
            commit(report, folder / MEASURED)
    return {"value": score.value, "samples": score.samples, "peak_mb": _peak_mb(), "findings": []}


def _at(traced: tuple[str, int] | None, argv: Sequence[str], base: Path) -> Json:
    """Where to look after a failed export: its traceback's last place in the repository, else the program itself."""
    files = (file_of(word, base) for word in argv if word == argv[0] or word.endswith((".py", ".sh")))
    file, line = traced or (next(filter(None, files), ""), 0)
    return {"file": os.path.relpath(base / file), "line": line} if file else {}


def _hint(folder: Path, stage: str) -> str:
    return f"read {os.path.relpath(folder)}/logs/{stage}.log; run the command by hand in the project file's folder"


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
