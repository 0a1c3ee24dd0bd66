"""Each gate passes at its limit and fails just beyond it."""

from __future__ import annotations

import pytest

from qnnci.context.info import ContextInfo, GraphInfo
from qnnci.findings import Finding
from qnnci.gates import failed, judge_binary, judge_parity
from qnnci.manifest import Figures, Parity
from qnnci.plan import Target
from qnnci.project import Compile, Gates, MaxGate, ParityGate
from qnnci.soc import find_soc

MB = 1 << 20
ASKED = Compile()
SM8750 = Target("g", find_soc("SM8750"), "fp16")  # id 69, v79, 8 MB


def judged(gates=None, *, size=1, soc_id=69, arch=79, graphs=1, **graph):
    facts = {"spill_fill_bytes": 0, "vtcm_bytes": 8 * MB, "optimization": 3, **graph}
    info = ContextInfo(3, "v2", 6, "2", "5", "4", 1, soc_id, arch, (GraphInfo("g", (), (), **facts),) * graphs)
    return [(each.rule, each.severity) for each in judge_binary(info, size, SM8750, gates or Gates(), ASKED)]


@pytest.mark.parametrize(
    ("found", "facts"),
    [
        ([], {}),
        ([("wrong-soc", "error")], {"soc_id": 57}),
        ([("wrong-arch", "error")], {"arch": 75}),
        ([], {"soc_id": None, "arch": None}),  # a binary too old to say
        ([], {"spill_fill_bytes": None, "vtcm_bytes": None, "optimization": None}),
        ([("spill-fill", "warning")], {"spill_fill_bytes": 1}),
        ([("wrong-vtcm", "error")], {"vtcm_bytes": 4 * MB}),
        ([("wrong-vtcm", "error")], {"vtcm_bytes": 16 * MB}),
        ([("wrong-optimization", "warning")], {"optimization": 2}),
    ],
)
def test_what_every_binary_must_be(found, facts):
    assert judged(**facts) == found


@pytest.mark.parametrize(
    ("gates", "inside", "beyond", "rule"),
    [
        (Gates(spill_fill_bytes=MaxGate(max=9)), {"spill_fill_bytes": 9}, {"spill_fill_bytes": 10}, "spill-fill"),
        (Gates(vtcm_mb=MaxGate(max=8)), {}, {"gates": Gates(vtcm_mb=MaxGate(max=7))}, "vtcm"),
        (Gates(binary_mb=MaxGate(max=2)), {"size": 2 * MB}, {"size": 2 * MB + 1}, "binary-size"),
        (Gates(binary_mb=MaxGate(max=0)), {"size": 0}, {"size": 1}, "binary-size"),
    ],
)
def test_limits(gates, inside, beyond, rule):
    assert judged(**{"gates": gates, **inside}) == []
    assert judged(**{"gates": gates, **beyond}) == [(rule, "error")]


def test_spill_is_summed_over_graphs():
    gates = Gates(spill_fill_bytes=MaxGate(max=10, severity="notice"))
    assert judged(gates, graphs=2, spill_fill_bytes=5) == []
    assert judged(gates, graphs=2, spill_fill_bytes=6) == [("spill-fill", "notice")]


def parity(**figures):
    given = {"cosine": 0.99, "snr_db": 20.0, "max_abs": 0.5, "max_rel": 0.1, **figures}
    return Parity(inputs="seeded (0)", samples=1, outputs={"y": Figures(**given)})


@pytest.mark.parametrize(
    ("gate", "inside", "beyond"),
    [
        (ParityGate(metric="cosine", min=0.99), 0.99, 0.98999),
        (ParityGate(metric="snr_db", min=20), 20.0, 19.999),
        (ParityGate(metric="max_abs", max=0.5), 0.5, 0.50001),
        (ParityGate(metric="max_rel", max=0), 0.0, 1e-9),
        (ParityGate(metric="cosine", min=-1), -1.0, None),
        (ParityGate(metric="max_abs", max=1e9), 1e9, None),
    ],
)
def test_parity(gate, inside, beyond):
    assert judge_parity(parity(**{gate.metric: inside}), [gate]) == []
    [found] = judge_parity(parity(**{gate.metric: beyond}), [gate])
    assert (found.rule, found.severity) == ("parity", "error")
    assert gate.metric in found.message


def test_parity_names_every_output_that_is_off():
    figures = {
        name: Figures(cosine=value, snr_db=1, max_abs=1, max_rel=1)
        for name, value in {"fine": 1.0, "low": 0.5, "nan": None}.items()
    }
    both = [ParityGate(metric="cosine", min=0.9, severity="warning"), ParityGate(metric="max_abs", max=2)]
    [found] = judge_parity(Parity(inputs="", samples=1, outputs=figures), both)
    assert found.message == "cosine must be at least 0.9: low has 0.5, nan is not finite"
    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("severities", "fails"),
    [
        ("", {}),
        ("notice", {}),
        ("warning", {"warning"}),
        ("error", {"warning", "error"}),
        ("notice warning", {"warning"}),
        ("notice error warning", {"warning", "error"}),
    ],
)
def test_what_fails_a_build(severities, fails):
    findings = [Finding("parity", severity, "") for severity in severities.split()]
    assert {level for level in ("error", "warning", "never") if failed(findings, level)} == set(fails)
