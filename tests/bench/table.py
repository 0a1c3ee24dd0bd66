"""A figure beside its goal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    what: str
    got: str
    goal: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"{self.what:66} {self.got:>40}   {self.goal:>14}  {verdict}".rstrip()
