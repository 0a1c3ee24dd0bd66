"""Findings as reports show them: one for each problem, in the order worth reading, as text that is safe to show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qnnci.findings import SEVERITIES, Finding

# Control characters would move the cursor or end a line; marks of direction, of no width and of no look would make text
# read as another, or two texts look the same.
_INVISIBLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
_FIGURE = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the same finding on one or more SoCs. `told` has each message with the SoCs that it is of."""

    finding: Finding
    told: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def socs(self) -> tuple[str, ...]:
        return tuple(soc for _, socs in self.told for soc in socs)

    @property
    def message(self) -> str:
        """What there is to say; where the figures differ from SoC to SoC, each with its own."""
        if len(self.told) == 1:
            return self.finding.message
        return "; ".join(f"{message} ({', '.join(socs)})" for message, socs in self.told)

    @property
    def where(self) -> str:
        node = f"node {self.finding.node}" if self.finding.node else ""
        target = " on ".join(part for part in (self.finding.graph, ", ".join(self.socs)) if part)
        return ", ".join(part for part in (target, node) if part)


def problems(findings: Sequence[Finding]) -> list[Problem]:
    """Findings that differ only in the SoC and its figures become one; worst first, of those the rarest rule first."""
    same: dict[tuple[str, ...], list[Finding]] = {}
    for f in findings:
        same.setdefault((f.severity, f.rule, f.message, f.graph, f.node), []).append(f)
    alike: dict[tuple[str, ...], list[list[Finding]]] = {}
    for group in same.values():
        f = group[0]
        alike.setdefault((f.severity, f.rule, _shape(f), f.graph, f.node), []).append(group)
    merged = [problem for groups in alike.values() for problem in _merged(groups)]
    frequency = Counter(problem.finding.rule for problem in merged)
    return sorted(merged, key=lambda p: (SEVERITIES.index(p.finding.severity), frequency[p.finding.rule]))


def _shape(f: Finding) -> str:
    """What the message says, whatever its figures and the name of its SoC."""
    return _FIGURE.sub("#", f.message.replace(f.soc, "#") if f.soc else f.message)


def _merged(groups: Sequence[list[Finding]]) -> list[Problem]:
    """One problem of all, unless two of them are of one SoC: those are two problems."""
    told = [(group[0].message, tuple(dict.fromkeys(f.soc for f in group if f.soc))) for group in groups]
    socs = [soc for _, each in told for soc in each]
    if all(each for _, each in told) and len(set(socs)) == len(socs):
        return [Problem(groups[0][0], tuple(told))]
    return [Problem(group[0], (each,)) for group, each in zip(groups, told, strict=True)]


def clean(text: str) -> str:
    """The text without characters that do something instead of showing; line ends stay."""
    return _INVISIBLE.sub(" ", text.replace("\r\n", "\n"))


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def counted(count: int, what: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{count} {what}{'' if count == 1 else 's'}"
