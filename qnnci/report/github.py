"""What goes to GitHub's runner: annotations, step summary, step outputs, and the quoting of vendor output.

What stands in names and messages comes out of other people's models, so nothing here reaches the runner unescaped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from qnnci.ci import run_url
from qnnci.errors import QnnciError
from qnnci.findings import Finding
from qnnci.manifest import Manifest
from qnnci.report.annotations import PER_JOB, annotate, command, is_project_file
from qnnci.report.summary import capped, export_summary, findings_summary, summary

SUMMARY_BYTES = (1 << 20) - 1024  # at 1 MiB the runner throws the whole summary away; it may add line ends

_COUNT = "qnnci-annotations"  # a file in RUNNER_TEMP, which the runner empties for each job: a byte for each we made
_OUTPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def on_github(env: Mapping[str, str] = os.environ) -> bool:
    return env.get("GITHUB_ACTIONS") == "true"


def report(
    manifest: Manifest,
    path: Path,
    *,
    page: Path | None = None,
    errors: Sequence[QnnciError] = (),
    findings: bool = True,
    table: bool = True,
    exports: Mapping[str, str] | None = None,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Annotations, step summary and outputs of a build whose manifest stands at `path` and its report at `page`.

    Without `findings` or `table`, those are left to another step; errors are in no manifest and always told. Where
    `exports` are given, the figures of each graph, the summary is that of an export.
    """
    broken = tuple(map(_finding, errors))
    judged = tuple(Finding(**record.model_dump()) for record in manifest.findings if findings)
    _annotate([*broken, *judged], env)
    if exports is not None:
        write_summary(export_summary(manifest.name, exports, [*broken, *judged], passed=manifest.passed), env)
    elif table:
        write_summary(summary(manifest, broken), env)
    shown = {"report": workspace_path(page, env)} if page else {}
    write_outputs(outputs(manifest, path, broken, env) | shown, env)


def report_findings(
    what: str,
    findings: Sequence[Finding],
    *,
    passed: bool,
    more: Mapping[str, str] | None = None,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Annotations, summary and outputs of a verb that judges `what` without building; `more` are outputs of its own."""
    _annotate(findings, env)
    if findings:
        write_summary(findings_summary(what, findings, passed=passed), env)
    counts = Counter(each.severity for each in findings)
    judged = {"result": "pass" if passed else "fail", "errors": counts["error"], "warnings": counts["warning"]}
    write_outputs({name: str(value) for name, value in {**judged, **(more or {})}.items()}, env)


def report_failure(error: QnnciError, *, env: Mapping[str, str] = os.environ) -> None:
    """The annotation and outputs of a run that ended before there was a manifest."""
    _annotate([_finding(error)], env)
    write_outputs({"result": "fail", "errors": "1", "warnings": "0"}, env)


def _finding(error: QnnciError) -> Finding:
    """An error as a finding, to be shown as one; its `where` may be `qnn.yaml:12`."""
    place, _, line = error.where.rpartition(":")
    file, number = (place, int(line)) if place and line.isdecimal() else (error.where, 0)
    if not is_project_file(file):
        file, number = "", 0
    text = f"{error.where}: {error.message}" if error.where else error.message
    return Finding("qnnci", "error", text, error.hint, file=file, line=number)


def _annotate(findings: Sequence[Finding], env: Mapping[str, str]) -> None:
    """Say the findings, as many as GitHub shows of a job whose earlier steps have said some already."""
    count = Path(env["RUNNER_TEMP"]) / _COUNT if env.get("RUNNER_TEMP") else None
    said = count.stat().st_size if count and count.is_file() else 0
    rest = "The step summary lists every finding" + (f": {link}" if (link := summary_link(env)) else ".")
    commands = annotate(findings, folder=_folder(env), room=max(PER_JOB - said, 0), rest=rest)
    say(*commands)
    if count:
        with contextlib.suppress(OSError), count.open("ab") as file:
            file.write(b"." * len(commands))


def summary_link(env: Mapping[str, str]) -> str:
    """The address of this job's summary on the run's page; of the page where the job is not known; empty off GitHub."""
    page, job = run_url(env), env.get("QNNCI_CHECK_RUN", "")
    return "" if page == "local" else f"{page}#summary-{job}" if job.isdecimal() and job.isascii() else page


def _folder(env: Mapping[str, str]) -> str:
    """The folder we run in, seen from the repository's root; it starts with `..` where we run outside of it."""
    return os.path.relpath(Path.cwd(), Path(env["GITHUB_WORKSPACE"]).resolve()) if env.get("GITHUB_WORKSPACE") else ""


# the files that the runner reads


def write_summary(text: str, env: Mapping[str, str] = os.environ) -> None:
    """Append to the step's summary, as far as GitHub takes it."""
    if path := env.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("ab") as file:
            file.write(capped(text, SUMMARY_BYTES - file.tell()).encode())


def write_outputs(values: Mapping[str, str], env: Mapping[str, str] = os.environ) -> None:
    """Set outputs of the step. A value can hold anything, line ends too: it cannot set another output."""
    if path := env.get("GITHUB_OUTPUT"):
        with Path(path).open("ab") as file:
            file.writelines(_output(name, value).encode("utf-8", "replace") for name, value in values.items())


def _output(name: str, value: str) -> str:
    if not _OUTPUT_NAME.fullmatch(name):
        raise ValueError(f"not a name for a step output: {name!r}")
    while (delimiter := f"qnnci-{secrets.token_hex(16)}") in value:
        pass
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def outputs(
    manifest: Manifest, path: Path, errors: Sequence[Finding] = (), env: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The action's outputs for a build whose manifest stands at `path`. `binaries` lists what passed, as JSON."""
    counts = Counter([*(f.severity for f in errors), *(record.severity for record in manifest.findings)])
    binaries = [
        {
            "graph": entry.graph,
            "soc": entry.soc,
            "dsp_arch": entry.dsp_arch,
            "precision": entry.precision,
            "path": workspace_path(path.parent / entry.binary, env),
            "sha256": entry.sha256,
        }
        for entry in manifest.entries
        if entry.passed
    ]
    return {
        "result": "pass" if manifest.passed else "fail",
        "manifest": workspace_path(path, env),
        "directory": workspace_path(path.parent, env),
        "binaries": json.dumps(binaries),
        "errors": str(counts["error"]),
        "warnings": str(counts["warning"]),
    }


def workspace_path(path: Path, env: Mapping[str, str] = os.environ) -> str:
    """Relative to the workspace, so that it holds in other jobs and in containers; absolute outside of it."""
    full = path.resolve()
    root = Path(env.get("GITHUB_WORKSPACE") or "/").resolve()
    return str(full.relative_to(root)) if root != Path("/") and full.is_relative_to(root) else str(full)


# the log

_in_group: ContextVar[bool] = ContextVar("in_group", default=False)
_stop_token: ContextVar[str] = ContextVar("stop_token", default="")


@contextlib.contextmanager
def group(title: str) -> Iterator[None]:
    """Fold what is printed inside. GitHub has no nested groups: a group inside a group is only a line."""
    if _in_group.get():
        _print(f"- {' '.join(title.split()).replace('##[', '## [')}")
        yield
        return
    token = _in_group.set(True)
    say(command("group", title))
    try:
        yield
    finally:
        say("::endgroup::")
        _in_group.reset(token)


@contextlib.contextmanager
def stopped_commands() -> Iterator[None]:
    """What is printed inside is shown, never obeyed; only what this module says still is.

    The runner reads stdout and stderr one beside the other: the step has to join them (`2>&1`).
    """
    if _stop_token.get():
        yield
        return
    stop_token = secrets.token_hex(16)
    token = _stop_token.set(stop_token)
    _print(f"::stop-commands::{stop_token}")
    try:
        yield
    finally:
        _stop_token.reset(token)
        _print(*_resume(stop_token))


def _resume(token: str) -> tuple[str, str]:
    # A line that was left open would hide the mark, and nothing after it would be obeyed.
    return "", f"::{token}::"


def say(*commands: str) -> None:
    """Print workflow commands so that they are obeyed."""
    if not commands:
        return
    if token := _stop_token.get():
        commands = (*_resume(token), *commands, f"::stop-commands::{token}")
    _print(*commands)


def _print(*lines: str) -> None:
    """Print lines at once, behind whatever was printed before."""
    sys.stderr.flush()
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
