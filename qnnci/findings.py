"""A finding is the one currency of judgement: every check, log and measurement speaks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class Finding:
    """One judgement and where it holds. `rule` is an id of the catalogue in `qnnci.rules`."""

    rule: str
    severity: Severity
    message: str
    hint: str = ""
    graph: str = ""
    soc: str = ""
    stage: str = ""
    node: str = ""
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """Graph, SoC, node and file in one short phrase, empty where nothing is known."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        target = f"{self.graph}-{self.soc}" if self.graph and self.soc else self.graph or self.soc
        return ", ".join(part for part in (target, f"node {self.node}" if self.node else "", place) if part)

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value or key == "message"}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Finding:
        return cls(**data)

    def at(self, **where: Any) -> Finding:
        """The same finding with places filled in that it did not know itself."""
        return replace(self, **{key: value for key, value in where.items() if not getattr(self, key)})


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, then warnings, then notices; the order within a severity is kept."""
    return sorted(findings, key=lambda f: SEVERITIES.index(f.severity))


def worst(findings: Iterable[Finding]) -> Severity | None:
    found = {f.severity for f in findings}
    return next((s for s in SEVERITIES if s in found), None)


def plain(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON has them."""
    return [each.to_json() for each in findings]
