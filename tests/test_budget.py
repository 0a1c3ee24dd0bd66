"""What graphs that are in memory at once need together."""

from __future__ import annotations

import json
import sys

import pytest
from support import graphs
from support.command import project, qnnci

from qnnci.budget import MB, budget, judge
from qnnci.context.info import ContextInfo, GraphInfo, TensorInfo
from qnnci.soc import find_soc

SM8750 = find_soc("SM8750")  # 8 MB of VTCM


def context(*facts: dict[str, int | None], blob: int = 100) -> ContextInfo:
    tensors = {"inputs": (TensorInfo("x", "FLOAT_32", (2, 3)),), "outputs": (TensorInfo("y", "UFIXED_POINT_16", (5,)),)}
    made = tuple(GraphInfo("g", **tensors, **each) for each in facts)
    return ContextInfo(3, "v2", 6, "2", "5", "4", blob, 69, 79, made)


FACTS = {"vtcm_bytes": 5 * MB, "spill_fill_bytes": 30, "const_bytes": 1000, "op_data_bytes": 200, "io_bytes": 4}


def test_everything_is_summed_over_contexts_and_their_graphs():
    of = budget(SM8750, {"encoder": context(FACTS, FACTS), "decoder": context({**FACTS, "vtcm_bytes": 2 * MB})})
    assert of.graphs == ("encoder", "decoder")
    assert (of.vtcm_most, of.vtcm_sum) == (5 * MB, 12 * MB)
    assert (of.constants, of.op_data, of.spill_fill, of.io) == (3000, 600, 90, 12)
    assert of.mapped == 3000 + 600 + 90 + 12


def test_what_a_binary_does_not_say_is_taken_from_what_it_does():
    of = budget(SM8750, {"old": context({"vtcm_bytes": None, "const_bytes": 7}, blob=500)})
    assert of.io == 2 * 3 * 4 + 5 * 2
    assert of.mapped == 500 + of.io


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ([FACTS], []),
        ([{**FACTS, "vtcm_bytes": 8 * MB}], []),
        ([{**FACTS, "vtcm_bytes": 8 * MB + 1}], [("vtcm-over-chip", "error")]),
        ([FACTS, FACTS], [("vtcm-in-turns", "notice")]),
        ([{**FACTS, "const_bytes": 75 * MB}], []),
        ([{**FACTS, "const_bytes": 81 * MB}], [("process-memory", "warning")]),
        ([{**FACTS, "spill_fill_bytes": 101 * MB}], [("process-memory", "error")]),
    ],
)
def test_what_does_not_fit_is_told(facts, found):
    of = budget(SM8750, {str(number): context(each) for number, each in enumerate(facts)})
    assert [(each.rule, each.severity) for each in judge(of, 100)] == found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")
def test_of_a_build(tmp_path):
    names = ("encoder", "decoder", "rest")
    for name in names:
        graphs.cnn(tmp_path / f"{name}.onnx")
    project(
        tmp_path, {name: {"source": f"{name}.onnx"} for name in names}, ["SM8550", "SM8750"], verify={"enabled": False}
    )
    assert qnnci("build", cwd=tmp_path).code == 0
    ended = qnnci("budget", "build", "--resident", "encoder,decoder", "--json", cwd=tmp_path)
    assert ended.code == 0, ended.said
    said = json.loads(ended.said[: ended.said.rindex("}") + 1])
    made = json.loads((tmp_path / "build/manifest.json").read_text())["entries"]
    for row in said["budgets"]:
        two = [each for each in made if each["soc"] == row["soc"] and each["graph"] != "rest"]
        assert row["graphs"] == ["encoder", "decoder"]
        assert row["vtcm_sum"] == sum(each["vtcm_bytes"] for each in two) == 16 * MB
        assert row["constants"] == sum(each["const_bytes"] for each in two) > 0
        assert row["io"] == sum(each["io_bytes"] for each in two) > 0
    assert [each["rule"] for each in said["findings"]] == ["vtcm-in-turns"] * 2
    ended = qnnci("budget", "build/manifest.json", "--soc", "SM8550", "--process-mb", "1", cwd=tmp_path)
    assert (ended.code, "SM8750" in ended.said) == (0, False)
    (tmp_path / "build/rest/SM8550").rename(tmp_path / "gone")
    ended = qnnci("budget", "build", cwd=tmp_path)
    assert ended.code == 2
    assert "rest_fp16_SM8550_v73.bin" in ended.said


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")
def test_a_graph_that_a_chip_lacks_is_named(tmp_path):
    for name in ("a", "b"):
        graphs.cnn(tmp_path / f"{name}.onnx")
    made = {"a": {"source": "a.onnx"}, "b": {"source": "b.onnx", "socs": ["SM8550"]}}
    project(tmp_path, made, ["SM8550", "SM8750"], verify={"enabled": False})
    assert qnnci("build", cwd=tmp_path).code == 0
    ended = qnnci("budget", "build", cwd=tmp_path)
    assert ended.code == 0
    assert "not-in-budget b on SM8750" in ended.said
    for wrong, told in (("--resident c", "it has a, b"), ("--soc SM8650", "it has SM8550, SM8750")):
        ended = qnnci("budget", "build", *wrong.split(), cwd=tmp_path)
        assert (ended.code, told in ended.said) == (2, True)
