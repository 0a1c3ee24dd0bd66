from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.project_file import load
from qnnci.variants import expand

HEAD = "name: asr\nsocs: [SM8750]\ngraphs:\n"


def project(tmp_path, graphs):
    file = tmp_path / "qnn.yaml"
    file.write_text(HEAD + graphs)
    return load(file)


def test_one_graph_for_each_combination(tmp_path):
    graphs = "  '{model}-{t}s':\n    each: {model: [small, large], t: [5, 10]}\n    source: '{model}/{t}.onnx'\n"
    graphs += "    inputs: {x: [1, 80]}\n  other: {source: o.onnx}\n"
    made = project(tmp_path, graphs).project.graphs
    assert {name: graph.source for name, graph in made.items()} == {
        "small-5s": "small/5.onnx",
        "small-10s": "small/10.onnx",
        "large-5s": "large/5.onnx",
        "large-10s": "large/10.onnx",
        "other": "o.onnx",
    }
    assert made["large-5s"].inputs["x"].shape == (1, 80)


def test_lines_are_those_of_the_entry(tmp_path):
    file = project(tmp_path, "  'g{t}':\n    each: {t: [1, 2]}\n    source: '{t}.onnx'\n")
    assert file.line("graphs", "g2") == 4
    assert file.line("graphs", "g2", "source") == 6


def test_braces_that_are_no_placeholder_stay(tmp_path):
    made = project(tmp_path, "  'g{t}':\n    each: {t: [1]}\n    source: 'a{b}{t}.onnx'\n").project.graphs
    assert made["g1"].source == "a{b}1.onnx"


@pytest.mark.parametrize(
    ("graphs", "told"),
    [
        ("  g:\n    each: {t: [1, 2]}\n    source: g.onnx\n", "does not tell its variants apart"),
        ("  'g{u}':\n    each: {t: [1, 2]}\n    source: g.onnx\n", "does not tell its variants apart"),
        ("  'g{t}':\n    each: [1, 2]\n    source: g.onnx\n", "`each` is a mapping"),
        ("  'g{t}':\n    each: {t: []}\n    source: g.onnx\n", "`each` is a mapping"),
        ("  'g{t}':\n    each: {t: 5}\n    source: g.onnx\n", "`each` is a mapping"),
        ("  'g{t}':\n    each: {t: [{}]}\n    source: g.onnx\n", "`each` is a mapping"),
    ],
)
def test_what_cannot_be_expanded_is_told_with_its_line(tmp_path, graphs, told):
    with pytest.raises(UsageError, match=told) as caught:
        project(tmp_path, graphs)
    assert caught.value.where == f"{tmp_path}/qnn.yaml:5"


def test_no_flood_of_graphs():
    many = {str(key): list(range(20)) for key in range(20)}
    with pytest.raises(UsageError, match="are the most"):
        expand({"graphs": {"g": {"each": many}}}, {}, "qnn.yaml")


def test_a_wrong_key_of_a_variant_is_told_once_for_each(tmp_path):
    with pytest.raises(UsageError, match=r"qnn.yaml:6: unknown key 'graphs.g1.souce'"):
        project(tmp_path, "  'g{t}':\n    each: {t: [1, 2]}\n    souce: '{t}.onnx'\n")


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ANY = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(ANY, ANY)
def test_whatever_stands_there(each, graph):
    rest = graph if isinstance(graph, dict) else {"source": graph}
    with contextlib.suppress(UsageError):
        made, _ = expand({"graphs": {"g{a}": {**rest, "each": each}}}, {}, "qnn.yaml")
        assert not any("{" in name for name in made["graphs"])
