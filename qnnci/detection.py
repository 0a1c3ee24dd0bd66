"""Mean average precision of boxes, as COCO counts it: over overlaps of 0.50 to 0.95. By pycocotools, an extra."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
from collections.abc import Sequence
from typing import Any

from qnnci.errors import ToolMissing, UsageError

FORM = '{"boxes": [[x, y, width, height], …], "labels": […]}, and with "scores" in the hypothesis'


def mean_average_precision(reference: Sequence[Any], hypothesis: Sequence[Any]) -> float:
    """From 0 to 1, over all classes of the reference; one dict a sample, as `FORM`.

    Raises:
        UsageError: a sample of another form, or a reference without boxes.
        ToolMissing: pycocotools is not installed.

    """
    truth = [_boxes(each, f"reference[{at}]", scored=False) for at, each in enumerate(reference)]
    found = [_boxes(each, f"hypothesis[{at}]", scored=True) for at, each in enumerate(hypothesis)]
    classes = {label: number for number, label in enumerate(dict.fromkeys(row[1] for rows in truth for row in rows), 1)}
    if not classes:
        raise UsageError("`reference` has no box", hint=f"a sample is {FORM}")
    try:
        coco, cocoeval = (importlib.import_module(f"pycocotools.{name}") for name in ("coco", "cocoeval"))
    except ImportError as error:
        hint = "pip install 'qnnci[detection]'"
        raise ToolMissing(f"mAP is computed by pycocotools, which is not installed ({error})", hint=hint) from error
    wanted = [row for at, rows in enumerate(truth, 1) for row in _rows(rows, at, classes)]
    given = [row for at, rows in enumerate(found, 1) for row in _rows(rows, at, classes)]
    if not given:
        return 0.0
    for number, row in enumerate(wanted, 1):
        row |= {"id": number, "iscrowd": 0, "area": row["bbox"][2] * row["bbox"][3]}
        del row["score"]
    with contextlib.redirect_stdout(io.StringIO()):  # it reports as it goes
        data = coco.COCO()
        data.dataset = {
            "images": [{"id": at} for at in range(1, len(truth) + 1)],
            "categories": [{"id": number} for number in classes.values()],
            "annotations": wanted,
            "info": {},
        }
        data.createIndex()
        judged = cocoeval.COCOeval(data, data.loadRes(given), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return max(float(judged.stats[0]), 0.0)


def _rows(
    rows: Sequence[tuple[list[float], str | int, float]], image: int, classes: dict[Any, int]
) -> list[dict[str, Any]]:
    """Boxes as pycocotools takes them; what is of no class of the reference is of none."""
    return [
        {"image_id": image, "category_id": classes[label], "bbox": box, "score": score}
        for box, label, score in rows
        if label in classes
    ]


def _boxes(sample: Any, where: str, *, scored: bool) -> list[tuple[list[float], str | int, float]]:
    keys = ("boxes", "labels", "scores") if scored else ("boxes", "labels")
    if (
        not isinstance(sample, dict)
        or set(sample) != set(keys)
        or not all(isinstance(sample[key], list) for key in keys)
    ):
        raise UsageError(f"`{where}` is not an object of {', '.join(keys)}", hint=f"a sample is {FORM}")
    if len({len(sample[key]) for key in keys}) > 1:
        raise UsageError(f"`{where}` has lists of different lengths", hint=f"a sample is {FORM}")
    scores = sample["scores"] if scored else [0.0] * len(sample["boxes"])
    rows = list(zip(sample["boxes"], sample["labels"], scores, strict=True))
    for box, label, score in rows:
        fits = isinstance(box, list) and len(box) == 4 and all(map(_number, box))  # noqa: PLR2004 - corners and sizes
        if not fits or isinstance(label, bool) or not isinstance(label, (str, int)) or not _number(score):
            raise UsageError(f"`{where}` has a box, label or score that is none", hint=f"a sample is {FORM}")
    return rows


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
