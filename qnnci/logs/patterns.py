"""The patterns as data: `patterns.yaml`, read and checked once. A regex is compiled when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal, get_args

import yaml

from qnnci.findings import SEVERITIES, Severity
from qnnci.rules import RULES

Role = Literal["cause", "fallout", "unknown", "note", "done", "benign", "info", "progress"]
Wanted = Literal["findings", "all"]

ERRORS: frozenset[Role] = frozenset({"cause", "fallout", "unknown"})
QUIET: frozenset[Role] = frozenset({"benign", "info", "progress"})
_MACROS = {"%code%": r"(?P<code>0x[0-9a-fA-F]+|\d+)"}
_WORDS = re.compile(r"[A-Za-z]+(?:\|[A-Za-z]+)*")


@dataclass(frozen=True)
class Pattern:
    """One kind of line. `words` are those that make the reader try `source`; `patterns.yaml` explains the others."""

    kind: str
    role: Role
    words: tuple[str, ...]
    source: str
    rule: str = ""
    tools: tuple[str, ...] = ()
    only: bool = False
    loud: bool = False
    quiet: bool = False
    severity: Severity = "error"
    hint: str = ""
    say: str = ""
    each: str = ""
    fact: str = ""
    hides: bool = False
    degrades: bool = False
    despite: str = ""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE)

    @cached_property
    def counts_digits(self) -> bool:
        """Whether other digits in a line could make it match or not; their number may, always."""
        return bool(re.search(r"\d", re.sub(r"\\d|\{[\d,]+\}|0x|\[0-9a-fA-F\]", "", self.source)))

    @cached_property
    def anchored(self) -> bool:
        """Whether it begins where the line's prefixes end."""
        return self.source.startswith(("^", "(?-i:^"))

    @cached_property
    def parts(self) -> re.Pattern[str]:
        return re.compile(self.each)


_KEYS = {each.name for each in fields(Pattern)} - {"words", "source"} | {"lines"}


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in order of priority.

    Raises:
        ValueError: the data is not as it should be; the message names the kind.

    """
    text = (files("qnnci.logs") / "patterns.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(each for group in yaml.load(text, loader) for each in _patterns(group))  # noqa: S506 # both are safe


def _patterns(group: dict[str, Any]) -> Iterator[Pattern]:
    kind, role = group["kind"], group["role"]
    wrong = _mistake(group)
    if wrong:
        raise ValueError(f"pattern {kind}: {wrong}")
    rule = group.get("rule", kind if kind in RULES and role not in QUIET else "")
    others = {key: value for key, value in group.items() if key not in {"kind", "role", "rule", "lines", "tools"}}
    others.setdefault("severity", RULES[rule].severity if rule else "notice")
    for line in filter(None, map(str.strip, group["lines"].splitlines())):
        words, _, source = line.partition(" ")
        for macro, meaning in _MACROS.items():
            source = source.replace(macro, meaning)
        yield Pattern(
            kind, role, tuple(words.split("|")), source.strip(), rule, tuple(group.get("tools", ())), **others
        )


def _mistake(group: dict[str, Any]) -> str:
    role, rule = group["role"], group.get("rule", group["kind"])
    judged = [rule] if role in ERRORS | {"note"} else []
    judged += [group["despite"]] if "despite" in group else []
    lines = [line.strip().partition(" ") for line in group["lines"].splitlines() if line.strip()]
    checks = {
        "unknown keys": set(group) - _KEYS,
        "unknown role": {role} - set(get_args(Role)),
        "unknown rules": set(judged) - set(RULES),
        "unknown severity": {group.get("severity", "error")} - set(SEVERITIES),
        "no words": {words for words, _, source in lines if not (_WORDS.fullmatch(words) and source.strip())},
    }
    return "; ".join(f"{what} {sorted(wrong)}" for what, wrong in checks.items() if wrong)


@cache
def by_word() -> dict[bytes, tuple[int, ...]]:
    """Which patterns a word makes worth trying, by their place in `patterns()`."""
    found: dict[bytes, list[int]] = {}
    for place, pattern in enumerate(patterns()):
        for word in _spellings(pattern):
            found.setdefault(word, []).append(place)
    return {word: tuple(places) for word, places in found.items()}


@cache
def triggers(wanted: Wanted) -> frozenset[bytes]:
    """The words that make a line worth reading. Without `all`, harmless lines are not even read."""
    return frozenset(
        word
        for pattern in patterns()
        for word in _spellings(pattern)
        if (wanted == "all" or pattern.role not in QUIET or pattern.fact)
        and (not pattern.loud or pattern.kind == "unknown-error")
    )


def _spellings(pattern: Pattern) -> set[bytes]:
    """Its words as they are, and in small, large and title letters; a single letter only as it is."""
    return {
        each.encode()
        for word in pattern.words
        for each in ({word} if len(word) == 1 else {word, word.lower(), word.upper(), word.capitalize()})
    }
