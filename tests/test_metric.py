"""Reports of a user's command: the two forms, what is computed, and everything else refused by name."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.metric import METRICS, Score, measure, parse_report, read_report


def texts(reference: list, hypothesis: list) -> bytes:
    return json.dumps({"reference": reference, "hypothesis": hypothesis}).encode()


@pytest.mark.parametrize(
    ("metric", "reference", "hypothesis", "value"),
    [
        ("wer", ["the cat sat", "on a mat"], ["the cat sat", "on the mat"], 1 / 6),
        ("wer", ["one two"], ["one two three four five"], 1.5),
        ("wer", ["a  b\tc\n"], [" a b c"], 0),
        ("wer", ["", "a"], ["", "a"], 0),
        ("wer", [""], ["a"], 1),
        ("wer", ["Über"], ["über"], 1),
        ("cer", ["你好世界"], ["你好四界"], 1 / 4),
        ("cer", ["abc", "de"], ["abd", "d"], 2 / 5),
        ("top1", [1, 2, 3, 4], [1, 2, 3, 5], 3 / 4),
        ("top1", ["cat", "7"], ["cat", 7], 1 / 2),
    ],
)
def test_what_is_computed(metric, reference, hypothesis, value):
    score = parse_report(texts(reference, hypothesis), metric)
    assert score == Score(metric, pytest.approx(value), len(reference))


@pytest.mark.parametrize("metric", ["wer", "bleu", "mAP@0.5"])
def test_a_value_of_the_command_s_own_is_of_any_metric(metric, tmp_path):
    report = tmp_path / "report.json"
    report.write_bytes(b'\xef\xbb\xbf{"value": 0.12}\n')
    assert read_report(report, metric) == Score(metric, 0.12, 0)


@pytest.mark.parametrize(
    ("data", "metric", "said"),
    [
        (b"", "wer", "the report is not JSON: "),
        (b"\xff{}", "wer", "the report is not JSON: "),
        (b"[" * 100_000, "wer", "the report is not JSON: "),
        (b"[0.1]", "wer", "the report is a list, not an object"),
        (b"null", "wer", "the report is null, not an object"),
        (b"{}", "wer", "the report has no `value`"),
        (b'{"valeu": 1}', "wer", "the report has an unknown key 'valeu'"),
        (b'{"value": "0.1"}', "wer", "`value` is a text, not a number"),
        (b'{"value": true}', "wer", "`value` is true or false, not a number"),
        (b'{"value": NaN}', "wer", "`value` is not finite"),
        (b'{"value": -1e999}', "wer", "`value` is not finite"),
        (b'{"value": 1%s}' % (b"0" * 400), "wer", "`value` is not finite"),
        (b'{"value": 1, "reference": []}', "wer", "the report has both `value` and `reference`"),
        (b'{"reference": ["a"]}', "wer", "the report has no `hypothesis`"),
        (b'{"hypothesis": ["a"]}', "wer", "the report has no `reference`"),
        (texts([], []), "wer", "nothing was compared"),
        (texts(["a", "b"], ["a"]), "wer", "`reference` has 2 samples, `hypothesis` 1"),
        (texts(["a"], [None]), "wer", r"`hypothesis[0]` is null, neither a text nor a whole number"),
        (texts([True], [True]), "top1", "`reference[0]` is true or false"),
        (texts([0.5], [0.5]), "top1", "`reference[0]` is a number, neither a text nor a whole number"),
        (texts(["a", 1], ["a", "1"]), "cer", "`reference[1]` is 1, which is no text"),
        (b'{"reference": "a", "hypothesis": "a"}', "top1", "`reference` is a text, not a list"),
        (texts(["a"], ["a"]), "bleu", "bleu is not computed from texts or labels"),
    ],
)
def test_anything_else_is_refused_with_file_and_key(data, metric, said, tmp_path):
    report = tmp_path / "report.json"
    report.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_report(report, metric)
    assert said in caught.value.message
    assert caught.value.where == str(report)
    assert "value" in caught.value.hint


def test_a_report_that_is_not_there_or_too_large(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="cannot read the report: No such file"):
        read_report(tmp_path / "none.json", "wer")
    with pytest.raises(UsageError, match="cannot read the report: Is a directory"):
        read_report(tmp_path, "wer")
    monkeypatch.setattr("qnnci.metric.MOST_BYTES", 1 << 20)
    with pytest.raises(UsageError, match="more than 1 MB"):
        parse_report(b" " * ((1 << 20) + 1), "wer")


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "reference", "x"]), inner),
    max_leaves=5,
)
REPORT = st.fixed_dictionaries({}, optional={"value": ANY_JSON, "reference": ANY_JSON, "hypothesis": ANY_JSON})


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=40) | REPORT.map(lambda data: json.dumps(data).encode()), st.sampled_from([*METRICS, "x"]))
def test_no_report_does_harm(data, metric):
    value = 0.0
    with contextlib.suppress(UsageError):
        value = parse_report(data, metric).value
    assert math.isfinite(value)


TEXTS = st.lists(st.tuples(*[st.text(st.characters(exclude_categories=[]), max_size=12)] * 2), min_size=1, max_size=4)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.sampled_from(["wer", "cer"]))
def test_an_error_rate_is_none_of_a_text_against_itself_and_never_negative(pairs, metric):
    reference, hypothesis = map(list, zip(*pairs, strict=True))
    assert measure(metric, reference, reference) == 0
    assert measure("top1", reference, reference) == 1
    assert measure(metric, reference, hypothesis) >= 0


BOX, OTHER = [0, 0, 10, 10], [50, 50, 20, 20]
TRUTH = {"boxes": [BOX, OTHER], "labels": ["cat", "dog"]}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ({**TRUTH, "scores": [0.9, 0.8]}, 1.0),
        ({"boxes": [BOX], "labels": ["cat"], "scores": [0.9]}, 0.5),
        ({"boxes": [OTHER, BOX], "labels": ["cat", "dog"], "scores": [0.9, 0.8]}, 0.0),
        ({"boxes": [], "labels": [], "scores": []}, 0.0),
        ({"boxes": [[0, 0, 10, 8], OTHER], "labels": ["cat", "dog"], "scores": [0.9, 0.8]}, 0.85),
        ({"boxes": [BOX], "labels": ["bird"], "scores": [1]}, 0.0),
    ],
)
def test_mean_average_precision(found, wanted):
    report = json.dumps({"reference": [TRUTH], "hypothesis": [found]}).encode()
    score = parse_report(report, "map")
    assert score.value == pytest.approx(wanted, abs=0.01)
    assert score.samples == 1


@pytest.mark.parametrize(
    "report",
    [
        {"reference": [TRUTH], "hypothesis": []},
        {"reference": [TRUTH], "hypothesis": [TRUTH]},
        {"reference": ["a"], "hypothesis": ["b"]},
        {"reference": [{"boxes": [], "labels": []}], "hypothesis": [{"boxes": [], "labels": [], "scores": []}]},
        {"reference": [TRUTH], "hypothesis": [{"boxes": [[1, 2]], "labels": [1], "scores": [1]}]},
        {"reference": 1, "hypothesis": 2},
    ],
)
def test_boxes_that_are_none(report):
    with pytest.raises(UsageError):
        parse_report(json.dumps(report).encode(), "map")
