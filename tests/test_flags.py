"""Flags beat file, file beats defaults."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.flags import Flags, graph_name, parse_input, parse_variable, project_file
from qnnci.project import NAME, VARIABLE, Input
from qnnci.soc import find_soc

FILE = """\
name: demo
socs: [SM8750]
precision: w8a8
output: out
graphs:
  a: {source: a.onnx, socs: [SM8650], precision: {default: w8a16}, verify: {samples: 2}}
  b: {source: b.onnx, inputs: {x: [1, 3], y: [2]}}
"""


@pytest.fixture
def overlaid(tmp_path):
    def overlaid(text: str = FILE, **flags):
        path = tmp_path / "qnn.yaml"
        path.write_text(text)
        return project_file(Flags(config=str(path), **flags)).project

    return overlaid


def names(project, graph):
    return [soc.name for soc in project.graph_socs(graph)]


def test_without_flags_the_file_is_as_it_is(overlaid):
    project = overlaid()
    assert (names(project, "a"), names(project, "b")) == (["SM8650"], ["SM8750"])
    assert (project.output, project.fail_on) == ("out", "error")


def test_chips_and_precision_of_flags_hold_for_every_graph(overlaid):
    project = overlaid(socs=("SM8550", "QCS6490"), precision="w4a16")
    assert names(project, "a") == names(project, "b") == ["SM8550", "QCS6490"]
    assert {project.precision_for(graph, find_soc("SM8550")) for graph in "ab"} == {"w4a16"}


def test_other_flags_change_only_what_they_name(overlaid):
    project = overlaid(output="elsewhere", fail_on="never", verify=False)
    assert (project.output, project.fail_on, project.name) == ("elsewhere", "never", "demo")
    assert [project.verify_for(graph).enabled for graph in "ab"] == [False, False]
    assert project.verify_for("a").samples == 2


def test_inputs_of_flags_lie_over_those_of_the_only_graph(overlaid):
    text = FILE.replace("  a: {", "  #")
    inputs = overlaid(text, inputs=("x=1,5", "sr:=16000")).graphs["b"].inputs
    assert inputs == {"x": Input(shape=(1, 5)), "y": Input(shape=(2,)), "sr": Input(value=16000)}


def test_inputs_of_flags_need_one_graph(overlaid):
    with pytest.raises(UsageError, match="--input fits a project of one graph"):
        overlaid(inputs=("x=1",))


def test_a_wrong_chip_of_a_flag_is_not_told_as_the_files(overlaid):
    with pytest.raises(UsageError, match="unknown SoC 'SM8751'") as caught:
        overlaid(socs=("SM8751",))
    assert "qnn.yaml" not in str(caught.value)


@pytest.mark.parametrize("text", ["graphs: [a]\n", "graphs: {a: 1}\n", "verify: 1\ngraphs: {a: {verify: 1}}\n", "{}"])
def test_flags_over_a_broken_file_still_tell_what_is_broken(overlaid, text):
    with pytest.raises(UsageError, match="name: is missing"):
        overlaid(text, socs=("SM8750",), precision="fp16", verify=True)


def test_a_model_alone_is_a_project():
    file = project_file(Flags(model="models/My Net.onnx", socs=("SM8750",), inputs=("x=1,3",)))
    assert file.project.graphs["My_Net"].source == "models/My Net.onnx"
    assert file.project.graphs["My_Net"].inputs["x"].shape == (1, 3)
    assert file.path is None
    assert file.line("graphs", "My_Net") == 0


def test_a_model_needs_chips_and_no_file():
    with pytest.raises(UsageError, match="--model needs the chips") as caught:
        project_file(Flags(model="m.onnx"))
    assert "--soc" in caught.value.hint
    with pytest.raises(UsageError, match="not both"):
        project_file(Flags(model="m.onnx", config="qnn.yaml", socs=("SM8750",)))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a/b/My Model.onnx", "My_Model"),
        ("/home/me@work/net.onnx", "net"),
        ("hf://org/repo/dir/net.onnx@refs/pr/1", "net"),
        ("https://host/net.onnx?download=true", "net"),
        ("https://host/net.onnx#part", "net"),
        ("pypi://pkg==1.0/pkg/data/net.v2.onnx", "net.v2"),
        ("NET.ONNX", "NET"),
        ("dir/", "dir"),
        (".onnx", "model"),
        ("日本.onnx", "model"),
        ("x" * 300, "x" * 100),
    ],
)
def test_graph_names_from_sources(source, name):
    assert graph_name(source) == name


@given(st.text())
def test_every_source_has_a_name_that_a_project_takes(source):
    assert re.fullmatch(NAME, graph_name(source))


@pytest.mark.parametrize(
    ("text", "name", "given"),
    [
        ("x=1,3,224,224", "x", {"shape": [1, 3, 224, 224]}),
        ("x=1x3", "x", {"shape": [1, 3]}),
        (" x=[1, 3] ", "x", {"shape": [1, 3]}),
        ("n=", "n", {"shape": []}),
        ("input:0=1,2", "input:0", {"shape": [1, 2]}),
        ("a=b=1", "a=b", {"shape": [1]}),
        ("sr:=16000", "sr", {"value": 16000}),
        ("input:0:=0.5", "input:0", {"value": 0.5}),
        ("m:=[[1, 2], [3, 4]]", "m", {"value": [[1, 2], [3, 4]]}),
        ("on:=true", "on", {"value": True}),
    ],
)
def test_inputs(text, name, given):
    assert parse_input(text) == (name, given)


@pytest.mark.parametrize("text", ["x", "=1", "x=1.5", "x=-1", "x=a", "x:=", "x:=a", ":=1", "", "x=" + "9" * 5000])
def test_inputs_that_are_none(text):
    with pytest.raises(UsageError) as caught:
        parse_input(text)
    assert "name=1,3,224,224" in caught.value.hint
    assert len(str(caught.value)) < 300


@given(st.text(st.characters(codec="utf-8")) | st.from_regex(r"[a-z:]*:?=[\d,x\[\] .:\"{}-]*", fullmatch=True))
@settings(deadline=None)
def test_no_input_does_more_than_complain(text):
    try:
        name, given = parse_input(text)
    except UsageError:
        return
    assert name
    assert given.keys() <= {"shape", "value"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("A=1", ("A", "1")), ("A", ("A", None)), ("A=", ("A", "")), ("_b2= x=y ", ("_b2", " x=y "))],
)
def test_a_variable_is_given_or_passed_on(text, wanted):
    assert parse_variable(text) == wanted


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=12))
def test_a_variable_is_read_or_refused(text):
    try:
        name, _ = parse_variable(text)
    except UsageError as error:
        assert "NAME=value" in error.hint  # noqa: PT017 - most texts are refused, some are not
    else:
        assert re.fullmatch(VARIABLE, name)
