"""The catalogue of rules: data/rules.csv. A finding can only be made of a rule there; docs/rules.md is made from it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from qnnci.findings import Finding, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """What a finding of this kind means, and what a person does about it."""

    section: str  # what it is a rule of, in words
    id: str
    title: str
    severity: Severity
    meaning: str
    todo: str


def _catalogue() -> dict[str, Rule]:
    with (files("qnnci") / "data" / "rules.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        row["id"]: Rule(
            row["section"], row["id"], row["title"], cast("Severity", row["severity"]), row["meaning"], row["todo"]
        )
        for row in rows
    }


RULES = _catalogue()


def finding(rule: str, message: str, *, severity: Severity | None = None, hint: str = "", **where: Any) -> Finding:
    """A finding of a catalogued rule, with its default severity and hint unless they are given."""
    entry = RULES[rule]
    return Finding(rule, severity or entry.severity, message, hint or entry.todo, **where)
