"""Findings as workflow commands of GitHub: as many as it shows, the worst and rarest, each a single line."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from qnnci.findings import SEVERITIES, Finding, Severity
from qnnci.report.problems import Problem, clean, counted, problems, shortened
from qnnci.rules import RULES

# What GitHub shows; it drops the rest without a word.
PER_TYPE = 10  # of one step
PER_JOB = 50  # of all its steps

_TITLE, _TEXT = 255, 4000  # characters; what GitHub shows of an annotation


def command(name: str, message: str, **properties: str | int) -> str:
    """One workflow command on one line; empty properties are left out."""
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value)
    return f"::{name}{' ' if given else ''}{given}::{_data(message)}"


def _data(text: str) -> str:
    return clean(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def annotate(findings: Sequence[Finding], *, folder: str = "", room: int = PER_JOB, rest: str) -> list[str]:
    """Workflow commands for the findings, at most `room`.

    Where there are more, the most severe and rarest are shown, and one last notice counts the others; `rest` is its
    sentence on where they are. `folder` is where the findings' paths start, seen from the repository's root.
    """
    by_type: dict[Severity, list[Problem]] = {severity: [] for severity in SEVERITIES}
    for problem in problems(findings):
        by_type[problem.finding.severity].append(problem)
    shares = _shares({severity: len(found) for severity, found in by_type.items()}, room)
    shown = [
        _annotation(problem, folder) for severity, found in by_type.items() for problem in found[: shares[severity]]
    ]
    others = [
        counted(len(found) - shares[severity], f"more {severity}")
        for severity, found in by_type.items()
        if len(found) > shares[severity]
    ]
    if not others:
        return shown
    return [*shown, command("notice", f"{', '.join(others)}. {rest}", title="More findings")]


def _shares(counts: Mapping[Severity, int], room: int) -> dict[Severity, int]:
    """How many of each type are shown, the worst first, with a place left for the notice that counts the others."""

    def share(room: int, notices: int) -> dict[Severity, int]:
        shares: dict[Severity, int] = {}
        for severity in SEVERITIES:
            shares[severity] = min(counts[severity], notices if severity == "notice" else PER_TYPE, room)
            room -= shares[severity]
        return shares

    all_of_them = share(room, PER_TYPE)
    return all_of_them if all_of_them == counts else share(max(room - 1, 0), PER_TYPE - 1)


def _annotation(problem: Problem, folder: str) -> str:
    f = problem.finding
    text = f"{problem.where}: {problem.message}" if problem.where else problem.message
    file = _repository_file(f, folder)
    place = f"\nin {f.file}{f':{f.line}' if f.line else ''}" if f.file and not file else ""
    hint = f"\n→ {f.hint}" if f.hint else ""
    end = shortened(place + hint, _TEXT // 2)  # a long message leaves what to do about it
    title = RULES[f.rule].title if f.rule in RULES else f.rule
    return command(
        f.severity,
        shortened(text, _TEXT - len(end)) + end,
        title=shortened(title, _TITLE),
        file=file,
        line=f.line if file else 0,
    )


def _repository_file(f: Finding, folder: str) -> str:
    """The path from the repository's root of a project file or export script; logs and models are in no diff."""
    path = posixpath.normpath(posixpath.join(folder, f.file))
    ours = is_project_file(f.file) or (f.file and f.rule == "export-failed")
    return path if ours and not path.startswith(("/", "..")) else ""


def is_project_file(file: str) -> bool:
    return file.endswith((".yaml", ".yml"))
