"""From the ONNX file as it came to one that a compiler takes: static, without control flow, int32 outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx.version_converter

from qnnci.errors import UsageError
from qnnci.files import replacing
from qnnci.findings import Finding, worst
from qnnci.model import static, weights
from qnnci.model.fold import Folded, fold
from qnnci.model.graph import broken_graphs, inlined, load, opset
from qnnci.model.inputs import fix_inputs, int64_ports, narrow_ports
from qnnci.model.ops import OLDEST_OPSET
from qnnci.model.renamed import remember
from qnnci.model.same import differences
from qnnci.model.simplify import simplify as run_onnxsim
from qnnci.project import Input
from qnnci.rules import finding

MODEL, WEIGHTS = "prepared.onnx", "prepared.onnx.data"


def prepare(source: Path, out_dir: Path, *, inputs: Mapping[str, Input], simplify: bool) -> list[Finding]:
    """Write `out_dir/prepared.onnx` (over 2 GiB with `prepared.onnx.data` beside it), or say why it cannot be.

    Nothing is written where a finding is an error. The same source and inputs give the same bytes. Up to 2 GiB the
    result is run on the CPU beside the source; above, that would take the memory of several copies.

    Raises:
        UsageError: not ONNX, broken, weights missing, or inputs that the graph has not.

    """
    with broken_graphs(source):
        found = _prepare(source, out_dir, inputs, simplify=simplify)
    return [finding.at(stage="prepare") for finding in found]


def _prepare(source: Path, out_dir: Path, inputs: Mapping[str, Input], *, simplify: bool) -> list[Finding]:
    where = str(source)
    model = load(source)
    large = _take_weights(model, source)
    original = b"" if large else model.SerializeToString()
    model, found = _modern(model, large=large)
    constants, findings = fix_inputs(model, inputs, where)
    found += findings
    if worst(found) == "error":
        return found
    found += int64_ports(model.graph)
    narrow_ports(model)
    folded = fold(model, where)
    found += [flow for flow, _ in static.control_flow(model.graph)] + static.refusals(folded)
    if worst(found) == "error":
        return found

    def wrong(graph: Any, known: Folded) -> list[Finding]:
        loose = static.openings(graph.graph, known)
        ranges = {name: given.range for name, given in inputs.items() if given.range}
        loose += static.idle_outputs(graph.graph)
        return loose or ([] if large else differences(original, graph, constants, ranges, where))

    result, known, findings = run_onnxsim(model, folded, where) if simplify else (model, folded, [])
    problems = wrong(result, known)
    if problems and result is not model and not (again := wrong(model, folded)):
        findings = [finding("simplify-failed", f"onnxsim's graph is left out: {problems[0].message}")]
        result, problems = model, again
    if not problems:
        if result is not model:
            remember(model, result)
        _save(result, source.parent, out_dir, large=large)
    return found + findings + problems


def _take_weights(model: Any, source: Path) -> bool:
    """Read external weights in, unless the model would be too large for that: then says True."""
    for problem in weights.missing(model, source):
        hint = "put the file beside the .onnx, complete (Git LFS pointers are 130 bytes long)"
        raise UsageError(problem, where=str(source), hint=hint)
    large = weights.total_bytes(model) > weights.INLINE_LIMIT
    weights.take_in(model, source.parent, at_most=weights.SMALL if large else weights.INLINE_LIMIT)
    return large


def _modern(model: Any, *, large: bool) -> tuple[Any, list[Finding]]:
    """Inline local functions, and lift an opset that is too old."""
    model = inlined(model)
    if (version := opset(model)) >= OLDEST_OPSET:
        return model, []
    try:
        if large:
            raise ValueError("it is too large to be converted")  # noqa: TRY301 - told as any other reason
        lifted = onnx.version_converter.convert_version(model, OLDEST_OPSET)
    except Exception as error:  # noqa: BLE001 - C++ errors of several classes
        return model, [finding("old-opset", f"opset {version} could not be lifted to {OLDEST_OPSET}: {error}")]
    return lifted, [finding("old-opset", f"opset {version} was lifted to {OLDEST_OPSET}")]


def _save(model: Any, folder: Path, out_dir: Path, *, large: bool) -> None:
    target = out_dir / MODEL
    if large:
        with replacing(out_dir / WEIGHTS) as part:
            weights.copy_out(model, folder, part, WEIGHTS)
    with replacing(target) as part:
        part.write_bytes(model.SerializeToString(deterministic=True))
    if not large:
        (out_dir / WEIGHTS).unlink(missing_ok=True)
