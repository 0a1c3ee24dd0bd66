"""What people write into qnn.yaml: each mistake is told with its line and in words of YAML."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.project_file import ProjectFile, _valid_keys, load, validate

GOOD = """\
name: demo
socs: [SM8750]
graphs:
  encoder:
    source: encoder.onnx
"""
GRAPH_END = len(GOOD.splitlines())


@pytest.fixture
def told(tmp_path):
    def told(text: str) -> str:
        path = tmp_path / "qnn.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError) as caught:
            load(path)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return told


def read(tmp_path, text: str) -> ProjectFile:
    path = tmp_path / "qnn.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def in_graph(*lines: str) -> str:
    return GOOD + "".join(f"    {line}\n" for line in lines)


def exported(settings: str) -> str:
    return GOOD.replace("source: encoder.onnx", f"export: {settings}")


def test_the_line_of_each_key_is_known(tmp_path):
    file = read(tmp_path, in_graph("inputs:", "  x:", "    - 1", "    - 3"))
    assert file.line("graphs", "encoder") == 4
    assert file.line("graphs", "encoder", "inputs", "x", "1") == 9
    assert file.line("graphs", "encoder", "verify", "samples") == 4  # the nearest above
    assert file.line("gates") == 0
    assert file.base == tmp_path


@pytest.mark.parametrize(
    ("text", "line", "key", "near"),
    [
        (GOOD + "socz: [SM8550]\n", 6, "socz", "socs"),
        (in_graph("sorce: x"), 6, "graphs.encoder.sorce", "source"),
        (in_graph("inputs:", "  x:", "    shap: [1]"), 8, "graphs.encoder.inputs.x.shap", "shape"),
        (in_graph("verify:", "  smaples: 2"), 7, "graphs.encoder.verify.smaples", "samples"),
        (in_graph("gates:", "  vtcm: {max: 8}"), 7, "graphs.encoder.gates.vtcm", "vtcm_mb"),
        (GOOD + "compile:\n  optimisation: 3\n", 7, "compile.optimisation", "optimization"),
        (GOOD + "limits:\n  memory: 900\n", 7, "limits.memory", "memory_mb"),
        (GOOD + "gates:\n  binary_mb:\n    maxx: 1\n", 8, "gates.binary_mb.maxx", "max"),
        (GOOD + "gates:\n  parity:\n    metric: cosine\n    mni: 1\n", 9, "gates.parity.0.mni", "min"),
        (GOOD + "gates:\n  parity:\n    - mni: 1\n", 8, "gates.parity.0.mni", "min"),
    ],
)
def test_an_unknown_key_is_told_the_nearest(told, text, line, key, near):
    assert f"qnn.yaml:{line}: unknown key '{key}'; did you mean '{near}'?" in told(text)


def test_where_nothing_is_near_all_keys_are_told(told):
    assert "unknown key 'limits.zebra'; valid keys: memory_mb, seconds" in told(GOOD + "limits: {zebra: 1}\n")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (GOOD.replace("[SM8750]", "SM8750"), 2, "socs: must be a list (given: 'SM8750')"),
        (GOOD.replace("[SM8750]", "[]"), 2, "socs: must not be empty"),
        (GOOD.replace("[SM8750]", "\n  - SM8550\n  - SM8751"), 4, "socs.1: unknown SoC 'SM8751'; did you mean SM8750"),
        (GOOD.replace("[SM8750]", "[SM8250]"), 2, "socs.0: SM8250 has no HTP"),
        (GOOD.replace("[SM8750]", "[{a: 1}]"), 2, "socs.0: a SoC is a name such as SM8750"),
        (GOOD.replace("SM8750", "yes"), 2, "socs.0: a SoC is a name such as SM8750"),
        (GOOD.replace("demo", "7"), 1, "name: must be text; put it in quotes (given: 7)"),
        (GOOD.replace("demo", "../x"), 1, "name: must be letters, digits,"),
        (GOOD.replace("encoder:", "a/b:"), 4, "graphs.a/b: must be letters, digits,"),
        (GOOD.replace("encoder:", "1:"), 4, "graphs.1: must be text; put it in quotes"),
        (GOOD.replace("encoder.onnx", "''"), 5, "graphs.encoder.source: must not be empty"),
        (GOOD.replace("    source: encoder.onnx\n", ""), 4, "graphs.encoder: must be a mapping"),
        (GOOD.replace("source: encoder.onnx", "simplify: true"), 4, "graphs.encoder: give either `source`"),
        (in_graph("export: {run: 'a {output}'}"), 4, "graphs.encoder: give either `source` (a file) or `export`"),
        (exported("{run: a 'b}"), 5, "graphs.encoder.export.run: not a command: No closing quotation"),
        (exported("{run: python export.py}"), 5, "graphs.encoder.export.run: say with `{output}` where"),
        (exported("{run: '{output}'}"), 5, "graphs.encoder.export.run: say with `{output}` where"),
        (
            exported("{run: 'a {output}', python: 3.10}"),
            5,
            "graphs.encoder.export.python: must be text; put it in quotes",
        ),
        (exported("{run: 'a {output}', python: '2.7'}"), 5, "graphs.encoder.export.python: must be a version such as"),
        (exported("{run: 'a {output}', env: {A-B: x}}"), 5, "graphs.encoder.export.env.A-B: must be"),
        (exported("{run: 'a {output}', inputs: [/etc/*]}"), 5, "graphs.encoder.export.inputs.0: a file or a pattern"),
        (exported("{run: 'a {output} {reference}', reference: r.npz}"), 5, "graphs.encoder.export: give either `ref"),
        (exported("{run: 'a {output}', require: x}"), 5, "did you mean 'requirements'?"),
        (GOOD.replace("name: demo\n", ""), 1, "name: is missing"),
        (GOOD + "verify:\n", 6, "verify: must be a mapping"),
        (GOOD + "verify: {enabled: maybe}\n", 6, "verify.enabled: must be true or false (given: 'maybe')"),
        (GOOD + "verify: {seed: -1}\n", 6, "verify.seed: must be greater than or equal to 0 (given: -1)"),
        (GOOD + "limits: {seconds: soon}\n", 6, "limits.seconds: must be a whole number (given: 'soon')"),
        (GOOD + f"limits: {{seconds: 0x{'f' * 6000}}}\n", 6, "(given: a huge number)"),
        (GOOD + f"fail_on: {'x' * 5000}\n", 6, "'warning' or 'never' (given: 'xxx"),
        (GOOD + "fail_on: maybe\n", 6, "fail_on: must be 'error', 'warning' or 'never' (given: 'maybe')"),
        (GOOD + "1: 2\n", 6, "1: a key must be text; put it in quotes"),
        (GOOD + "gates: {parity: {min: .nan}}\n", 6, "gates.parity.0.min: must be a finite number"),
        (GOOD + "gates: {parity: {metric: cosine}}\n", 6, "gates.parity.0: give `min` or `max`"),
        (GOOD + "gates: {parity: {min: 0.9, max: 1}}\n", 6, "gates.parity.0: give `min` or `max`"),
        (in_graph("sha256: beef"), 6, "graphs.encoder.sha256: must be 64 digits"),
        (in_graph("inputs:", "  x:", "    - 1", "    - N"), 9, "inputs.x.shape.1: must be a whole number (given: 'N')"),
        (in_graph("inputs: {x: [1, 0]}"), 6, "inputs.x.shape.1: must be greater than or equal to 1"),
        (in_graph("inputs: {x: {shape: [1], value: 3}}"), 6, "inputs.x: give either `value`"),
        (in_graph("inputs: {x: {range: [5, 1]}}"), 6, "inputs.x: `range` is the lowest and the highest value"),
        (in_graph("inputs: {x: {value: abc}}"), 6, "inputs.x.value: a constant is a number"),
        (in_graph("inputs: {x: {value: 1e-5}}"), 6, "inputs.x.value: YAML takes 1e-5 for text: write it with a dot"),
        (in_graph("inputs: {x: {value: [[1], [{}]]}}"), 6, "inputs.x.value: a constant is a number"),
        (in_graph("inputs: {x: {value: 0x1ffffffffffffffff}}"), 6, "inputs.x.value: a constant has at most 64 bits"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(told, text, line, said):
    message = told(text)
    assert f"qnn.yaml:{line}: " in message
    assert said in message
    assert len(message) < 500


def test_all_mistakes_are_told_at_once_but_not_thousands(told):
    assert told(GOOD + "a: 1\nb: 2\nroute: x\n").count("qnn.yaml:") == 3
    message = told(GOOD + "".join(f"key{number}: 1\n" for number in range(500)))
    assert "… and 480 more" in message


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "hello", "- name: demo\n", "7", "2026-12-01"])
def test_what_is_no_mapping_is_no_project(told, text):
    assert "qnn.yaml:1: a project file is a mapping with name, socs and graphs" in told(text)


def test_there_is_no_file(tmp_path):
    with pytest.raises(UsageError, match=r"there is no project file .*qnn.yaml") as caught:
        load(tmp_path / "qnn.yaml")
    assert "qnnci init" in caught.value.hint


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UsageError, match="cannot read it: Is a directory"):
        load(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | st.integers(), inner, max_size=3),
    max_leaves=9,
)
KEYS = st.sampled_from(sorted({key for loc in [(), ("graphs", "g"), ("verify",)] for key in _valid_keys(loc)}))
LIKELY = st.recursive(
    JSON | st.sampled_from(["SM8750", "fp16", "w8a8", "cosine", "ort", "m.onnx", 1, 0.5, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, LIKELY, max_size=8), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_data_does_more_than_complain(data, complete):
    base = {"name": "a", "socs": ["SM8750"], "graphs": {"g": {"source": "m"}}} if complete else {}
    try:
        validate({**base, **data}, "test")
    except UsageError as error:
        assert "test: " in str(error)  # noqa: PT017 - whether it is raised depends on the data
