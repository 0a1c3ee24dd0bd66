"""The pattern data holds together: rules, words and regexes."""

from __future__ import annotations

import re
import string

import pytest

from qnnci.logs.patterns import ERRORS, _patterns, by_word, patterns, triggers
from qnnci.rules import RULES

GROUP = {"kind": "crash", "rule": "stage-crashed", "role": "cause", "lines": "Segmentation   Segmentation fault"}


def test_each_regex_compiles_and_fills_its_message() -> None:
    for pattern in patterns():
        names = set(pattern.regex.groupindex) | (set(pattern.parts.groupindex) if pattern.each else set())
        fields = {name for _, name, _, _ in string.Formatter().parse(pattern.say) if name}
        assert fields <= names, pattern
        assert pattern.rule in RULES or pattern.role not in ERRORS | {"note"}, pattern
        assert not pattern.regex.search(""), pattern


def test_each_regex_names_one_of_its_words() -> None:
    """Else a line that it would find itself in is never looked at."""
    for pattern in patterns():
        said = {each.lower() for each in re.findall(r"[A-Za-z]+", re.sub(r"\\[a-zA-Z]", " ", pattern.source))}
        words = {word.lower() for word in pattern.words}
        assert any(word == each or (len(each) > 3 and each in word) for each in said for word in words), pattern


def test_every_rule_of_logs_is_used() -> None:
    made = {each.rule for each in patterns()} | {each.despite for each in patterns()}
    elsewhere = {"exit-after-success", "silent-failure", "vendor-skel"}
    told = {rule.id for rule in RULES.values() if rule.section == "what a tool's log says"}
    assert told == (made | elsewhere) & told


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "unknown keys ['colour']"),
        ({"role": "culprit"}, "unknown role ['culprit']"),
        ({"rule": "no-such"}, "unknown rules ['no-such']"),
        ({"severity": "fatal"}, "unknown severity ['fatal']"),
        ({"lines": "two-words   x"}, "no words"),
        ({"lines": "alone"}, "no words"),
    ],
)
def test_wrong_data_is_refused(change: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        list(_patterns(GROUP | change))


def test_harmless_lines_are_not_even_read() -> None:
    assert triggers("findings") < triggers("all")
    assert b"HtpProvider" in triggers("all") - triggers("findings")
    assert b"segmentation" in triggers("findings")
    assert all(by_word()[word] for word in triggers("all"))
