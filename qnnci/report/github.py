"""Everything that speaks GitHub Actions: annotations, step summary, step outputs, and quoting vendor output.

What stands in names and messages comes out of other people's models, so nothing here reaches the runner unescaped.
"""

# No `from __future__ import annotations`: the name is that of the function below.

import contextlib
import json
import os
import posixpath
import re
import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path

from qnnci.errors import QnnciError
from qnnci.findings import SEVERITIES, Finding, Severity
from qnnci.manifest import Manifest
from qnnci.report.problems import Problem, clean, problems, shortened
from qnnci.report.summary import capped, export_summary, summary
from qnnci.rules import RULES

PER_TYPE = 10  # GitHub shows ten annotations of each type for a step and drops the rest without a word
SUMMARY_BYTES = (1 << 20) - 1024  # at 1 MiB the runner throws the whole summary away; it may add line ends

_TITLE, _TEXT = 255, 4000  # characters; what GitHub shows of an annotation
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
    _say(*annotations([*broken, *judged], folder=_folder(env)))
    if exports is not None:
        write_summary(export_summary(manifest.name, exports, [*broken, *judged], passed=manifest.passed), env)
    elif table:
        write_summary(summary(manifest, broken), env)
    shown = {"report": workspace_path(page, env)} if page else {}
    write_outputs(outputs(manifest, path, broken, env) | shown, env)


def report_findings(
    findings: Sequence[Finding],
    *,
    passed: bool,
    more: Mapping[str, str] | None = None,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Annotations and outputs of a verb that judges without building; `more` are outputs of its own."""
    _say(*annotations(findings, folder=_folder(env)))
    counts = Counter(each.severity for each in findings)
    judged = {"result": "pass" if passed else "fail", "errors": counts["error"], "warnings": counts["warning"]}
    write_outputs({name: str(value) for name, value in {**judged, **(more or {})}.items()}, env)


def report_failure(error: QnnciError, *, env: Mapping[str, str] = os.environ) -> None:
    """The annotation and outputs of a run that ended before there was a manifest."""
    _say(*annotations([_finding(error)], folder=_folder(env)))
    write_outputs({"result": "fail", "errors": "1", "warnings": "0"}, env)


def _finding(error: QnnciError) -> Finding:
    """An error as a finding, to be shown as one; its `where` may be `qnn.yaml:12`."""
    place, _, line = error.where.rpartition(":")
    file, number = (place, int(line)) if place and line.isdecimal() else (error.where, 0)
    if not _is_yaml(file):
        file, number = "", 0
    text = f"{error.where}: {error.message}" if error.where else error.message
    return Finding("qnnci", "error", text, error.hint, file=file, line=number)


# workflow commands


def command(name: str, message: str, **properties: str | int) -> str:
    """One workflow command on one line; empty properties are left out."""
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    return f"::{name}{' ' if given else ''}{given}::{_data(message)}"


def _data(text: str) -> str:
    return clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


# findings


def annotations(findings: Sequence[Finding], *, folder: str = "") -> list[str]:
    """Workflow commands for the findings, as many as GitHub shows.

    Where there are more, the most severe and rarest are shown, and one last notice counts the others. `folder` is
    where the findings' paths start, seen from the repository's root.
    """
    by_type: dict[Severity, list[Problem]] = {severity: [] for severity in SEVERITIES}
    for problem in problems(findings):
        by_type[problem.finding.severity].append(problem)
    room = dict.fromkeys(SEVERITIES, PER_TYPE)
    if any(len(found) > PER_TYPE for found in by_type.values()):
        room["notice"] -= 1  # for the notice that counts the others
    shown = [_annotation(problem, folder) for severity in SEVERITIES for problem in by_type[severity][: room[severity]]]
    others = {
        severity: len(found) - room[severity] for severity, found in by_type.items() if len(found) > room[severity]
    }
    if not others:
        return shown
    kinds = ", ".join(f"{count} {severity}{'s' * (count > 1)}" for severity, count in others.items())
    return [*shown, command("notice", f"{kinds}. The step summary lists every finding.", title="More findings")]


def _annotation(problem: Problem, folder: str) -> str:
    f = problem.finding
    text = f"{problem.where}: {f.message}" if problem.where else f.message
    file = _repository_file(f.file, folder)
    place = f"\nin {f.file}{f':{f.line}' if f.line else ''}" if f.file and not file else ""
    hint = f"\n→ {f.hint}" if f.hint else ""
    title = RULES[f.rule].title if f.rule in RULES else f.rule
    return command(
        f.severity,
        shortened(text + place + hint, _TEXT),
        title=shortened(title, _TITLE),
        file=file,
        line=f.line if file else 0,
    )


def _repository_file(file: str, folder: str) -> str:
    """The path from the repository's root where `file` is a project file; logs and models are in no diff."""
    path = posixpath.normpath(posixpath.join(folder, file))
    return path if _is_yaml(file) and not path.startswith(("/", "..")) else ""


def _is_yaml(file: str) -> bool:
    return file.endswith((".yaml", ".yml"))


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
    _say(command("group", title))
    try:
        yield
    finally:
        _say("::endgroup::")
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


def _say(*commands: str) -> None:
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
