"""Task metrics: what a user's command reports of a model, read strictly, and error rates of the texts in it. Pure.

A report is a JSON file with one object, of one of two forms:

    {"value": 0.12}                                             the command computed the metric itself
    {"reference": ["a cat", …], "hypothesis": ["a bat", …]}     what the original gave, and what the other model gives

From the second, `wer`, `cer` and `top1` are computed here, and `map`, whose samples are boxes with labels and scores
(see `qnnci.detection`); a metric of any other name needs `value`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.errors import UsageError

MOST_BYTES = 64 << 20
FORMS = '{"value": 0.12}, or {"reference": [one text or label a sample], "hypothesis": [as many]}'
_KEYS = ("value", "reference", "hypothesis")
MAP = "map"
_LISTS = ("reference", "hypothesis")


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, and of how many samples; 0 samples where the command computed it, which does not say."""

    metric: str
    value: float
    samples: int = 0


def read_report(path: Path, metric: str) -> Score:
    """Read the report at `path` as `metric`: its own `value`, or what its texts or labels give.

    Raises:
        UsageError: it cannot be read, is not of one of the two forms, or `metric` cannot be computed from it.

    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the report: {error.strerror}", where=str(path)) from error
    return parse_report(data, metric, where=str(path))


def parse_report(data: bytes, metric: str, *, where: str = "") -> Score:
    """Do the same with a report's bytes. `where` is what errors name.

    Raises:
        UsageError: as `read_report` does.

    """
    try:
        return _score(_object(data), metric)
    except UsageError as error:
        error.where = where
        error.hint = error.hint or f"a report is {FORMS}"
        raise


def measure(metric: str, reference: Sequence[str | int], hypothesis: Sequence[str | int]) -> float:
    """Compute a metric over all samples at once; upper case, accents and punctuation count.

    `wer`, `cer`: word and character errors over the words and characters of the reference, 0 where all are right, above
    1 where more is put in than there was; white space of any kind and number is one space. `top1`: the share of labels
    that are the same, 0 to 1.

    Raises:
        UsageError: another metric, lists that are empty or of two lengths, or, of wer and cer, what is no text.

    """
    if metric not in METRICS:
        hint = 'give {"value": …}; computed here are ' + ", ".join(METRICS)
        raise UsageError(f"{metric} is not computed from texts or labels", hint=hint)
    if len(reference) != len(hypothesis):
        raise UsageError(f"`reference` has {len(reference)} samples, `hypothesis` {len(hypothesis)}")
    if not reference:
        raise UsageError("`reference` and `hypothesis` are empty: nothing was compared")
    return METRICS[metric](reference, hypothesis)


def _object(data: bytes) -> dict[str, Any]:
    if len(data) > MOST_BYTES:
        raise UsageError(f"the report has more than {MOST_BYTES >> 20} MB")
    try:
        report = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the report is not JSON: {error}") from error
    if not isinstance(report, dict):
        raise UsageError(f"the report is {_kind(report)}, not an object")
    unknown = [key for key in report if key not in _KEYS]
    if unknown:
        raise UsageError(f"the report has an unknown key {unknown[0][:40]!r}")
    return report


def _score(report: dict[str, Any], metric: str) -> Score:
    lists = [key for key in _LISTS if key in report]
    if "value" in report:
        if lists:
            raise UsageError(f"the report has both `value` and `{lists[0]}`: which is it?")
        return Score(metric, _number(report["value"]))
    missing = [key for key in _LISTS if key not in report]
    if missing:
        raise UsageError(f"the report has no `{missing[0] if lists else 'value'}`")
    if metric == MAP:
        return Score(metric, _map(report), len(report["reference"]))
    reference, hypothesis = (_samples(report[key], key) for key in _LISTS)
    return Score(metric, measure(metric, reference, hypothesis), len(reference))


def _map(report: dict[str, Any]) -> float:
    from qnnci.detection import mean_average_precision

    for key in _LISTS:
        if not isinstance(report[key], list):
            raise UsageError(f"`{key}` is {_kind(report[key])}, not a list")
    reference, hypothesis = (report[key] for key in _LISTS)
    if len(reference) != len(hypothesis):
        raise UsageError(f"`reference` has {len(reference)} samples, `hypothesis` {len(hypothesis)}")
    return mean_average_precision(reference, hypothesis)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"`value` is {_kind(value)}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise UsageError("`value` is not finite")
    return number


def _samples(value: Any, key: str) -> list[str | int]:
    if not isinstance(value, list):
        raise UsageError(f"`{key}` is {_kind(value)}, not a list")
    for index, each in enumerate(value):
        if isinstance(each, bool) or not isinstance(each, (str, int)):
            raise UsageError(f"`{key}[{index}]` is {_kind(each)}, neither a text nor a whole number")
    return value


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null")


def _texts(samples: Sequence[str | int], key: str) -> list[str]:
    for index, each in enumerate(samples):
        if not isinstance(each, str):
            raise UsageError(f"`{key}[{index}]` is {each}, which is no text")
    return [" ".join(str(each).split()) for each in samples]


def _wer(reference: Sequence[str | int], hypothesis: Sequence[str | int]) -> float:
    import jiwer

    return float(jiwer.wer(_texts(reference, "reference"), _texts(hypothesis, "hypothesis")))


def _cer(reference: Sequence[str | int], hypothesis: Sequence[str | int]) -> float:
    import jiwer

    return float(jiwer.cer(_texts(reference, "reference"), _texts(hypothesis, "hypothesis")))


def _top1(reference: Sequence[str | int], hypothesis: Sequence[str | int]) -> float:
    same = sum(want == got for want, got in zip(reference, hypothesis, strict=True))
    return same / len(reference)


METRICS: dict[str, Callable[[Sequence[str | int], Sequence[str | int]], float]] = {
    "wer": _wer,
    "cer": _cer,
    "top1": _top1,
}
