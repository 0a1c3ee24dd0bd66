from __future__ import annotations

import re

import pytest

from qnnci.findings import SEVERITIES, Finding, ranked, worst
from qnnci.rules import RULES, finding

EVERY = [pytest.param(rule, id=rule.id) for rule in RULES.values()]


@pytest.mark.parametrize("rule", EVERY)
def test_every_rule_says_what_it_means_and_what_to_do(rule):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.id)
    assert rule.severity in SEVERITIES
    assert rule.title[0].isupper() or rule.title.startswith("onnxsim")
    assert not rule.title.endswith(".")
    assert rule.meaning.endswith(".")
    assert rule.todo
    assert not rule.todo.endswith(".")


def test_a_finding_can_only_be_made_of_a_rule():
    with pytest.raises(KeyError, match="no-such-rule"):
        finding("no-such-rule", "…")


def test_a_finding_has_its_rules_severity_and_hint_unless_given():
    plain = finding("spill-fill", "much")
    assert (plain.severity, plain.hint) == ("warning", RULES["spill-fill"].todo)
    given = finding("spill-fill", "much", severity="error", hint="less", soc="SM8750")
    assert (given.severity, given.hint, given.soc) == ("error", "less", "SM8750")


def test_places_are_filled_in_but_never_changed():
    found = finding("parity", "off", graph="own").at(graph="other", soc="SM8750", line=3)
    assert (found.graph, found.soc, found.line) == ("own", "SM8750", 3)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({}, ""),
        ({"graph": "g"}, "g"),
        ({"soc": "SM8750"}, "SM8750"),
        ({"graph": "g", "soc": "SM8750"}, "g-SM8750"),
        ({"graph": "g", "node": "conv", "file": "a.log"}, "g, node conv, a.log"),
        ({"file": "qnn.yaml", "line": 7}, "qnn.yaml:7"),
    ],
)
def test_where(where, told):
    assert finding("parity", "off", **where).where == told


def test_findings_survive_json():
    found = finding("parity", "off", graph="g", line=3)
    assert Finding.from_json(found.to_json()) == found
    assert "soc" not in found.to_json()


def test_the_worst_come_first_and_the_order_within_is_kept():
    found = [Finding("parity", severity, name) for name, severity in zip("abcd", ("notice", "error") * 2, strict=True)]
    assert [each.message for each in ranked(found)] == ["b", "d", "a", "c"]
    assert worst(found) == "error"
    assert worst([]) is None
