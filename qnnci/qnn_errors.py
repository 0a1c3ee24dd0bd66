"""QNN's error codes by name. Names and numbers are those of the public QNN headers; the meanings are our own words."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

SUCCESS = 0
NOT_SUPPORTED = 1000

# First and last code of each component, for codes that the table lacks.
_COMPONENTS = (
    (1000, 1999, "common"),
    (2000, 2999, "property"),
    (3000, 3999, "op package"),
    (4000, 4999, "backend"),
    (5000, 5999, "context"),
    (6000, 6999, "graph"),
    (7000, 7999, "tensor"),
    (8000, 8999, "memory"),
    (9000, 9999, "signal"),
    (10000, 10999, "error"),
    (11000, 11999, "log"),
    (12000, 12999, "profile"),
    (13000, 13999, "perf infrastructure"),
    (14000, 14999, "device"),
    (15000, 15999, "global config"),
    (30000, 49999, "system library"),
    (60000, 60999, "interface"),
)


@cache
def _table() -> dict[int, tuple[str, str]]:
    with (files("qnnci") / "data" / "qnn_errors.csv").open(encoding="utf-8") as file:
        return {int(row["code"]): (row["name"], row["meaning"]) for row in csv.DictReader(file)}


def public_code(code: int) -> int:
    """The documented number in a 64-bit handle: its low 16 bits."""
    return code & 0xFFFF


def is_known(code: int) -> bool:
    """Whether the table has a name for this handle."""
    return public_code(code) in _table()


def explain(code: int) -> str:
    """An error handle as a phrase for people: number, name and meaning, or the component of an unknown number."""
    number = public_code(code)
    if number in _table():
        name, meaning = _table()[number]
        return f"{number} {name}: {meaning}"
    component = next((name for first, last, name in _COMPONENTS if first <= number <= last), "unknown")
    return f"{number}: an error of QNN's {component} part"
