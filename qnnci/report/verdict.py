"""What a build may be said to be: one that passes with errors has passed only because nothing fails it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qnnci.findings import Finding
from qnnci.manifest import Entry, FindingRecord, Manifest
from qnnci.report.problems import counted


@dataclass(frozen=True, slots=True)
class Excused:
    """Errors of a build that passed."""

    errors: int

    @property
    def why(self) -> str:
        return f"only because nothing fails this build (fail-on never): {counted(self.errors, 'error')}"


def excused(findings: Sequence[Finding | FindingRecord]) -> Excused | None:
    """The errors among the findings of a build that passed; None where it has none."""
    errors = sum(each.severity == "error" for each in findings)
    return Excused(errors) if errors else None


def verdict(findings: Sequence[Finding | FindingRecord], *, passed: bool) -> str:
    """`passed`, `failed`, or that it passed only because nothing could fail it."""
    if not passed:
        return "failed"
    spared = excused(findings)
    return f"passed, {spared.why}" if spared else "passed"


def marred(entry: Entry, manifest: Manifest) -> bool:
    """Whether a finding of this binary, its graph or the whole build is an error."""
    return any(
        each.severity == "error" and each.graph in {"", entry.graph} and each.soc in {"", entry.soc}
        for each in manifest.findings
    )


def good(manifest: Manifest) -> int:
    """How many binaries have passed and have no error."""
    return sum(entry.passed and not marred(entry, manifest) for entry in manifest.entries)
