"""Findings as reports show them: one for each problem, in the order worth reading, as text that is safe to show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qnnci.findings import SEVERITIES, Finding

# Control characters would move the cursor or end a line, bidirectional ones would make text read as another.
_INVISIBLE = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the same finding on one or more SoCs."""

    finding: Finding
    socs: tuple[str, ...]

    @property
    def where(self) -> str:
        node = f"node {self.finding.node}" if self.finding.node else ""
        target = " on ".join(part for part in (self.finding.graph, ", ".join(self.socs)) if part)
        return ", ".join(part for part in (target, node) if part)


def problems(findings: Sequence[Finding]) -> list[Problem]:
    """Findings that differ only in the SoC become one; worst first, and of those the rarest rule first."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for f in findings:
        groups.setdefault((f.severity, f.rule, f.message, f.graph, f.node), []).append(f)
    merged = [Problem(group[0], tuple(dict.fromkeys(f.soc for f in group if f.soc))) for group in groups.values()]
    frequency = Counter(problem.finding.rule for problem in merged)
    return sorted(merged, key=lambda p: (SEVERITIES.index(p.finding.severity), frequency[p.finding.rule]))


def clean(text: str) -> str:
    """The text without characters that do something instead of showing; line ends stay."""
    return _INVISIBLE.sub(" ", text.replace("\r\n", "\n"))


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
