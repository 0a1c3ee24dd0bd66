"""Does the prepared graph compute what the source computes? One seeded run of both on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.model.feeds import Spec, seeded
from qnnci.model.graph import is_onnx, numpy_dtype, real_inputs, static_shape, walk
from qnnci.model.infer import RANDOM
from qnnci.rules import finding

Arrays = dict[str, NDArray[Any]]
# Largest difference that is still rounding, over the largest value of the output. Fusing reorders float32 sums;
# float16 and fixed point lose a step or two on the way.
EXACT, COARSE = 1e-3, 5e-2


def differences(
    source: bytes,
    prepared: Any,
    constants: Mapping[str, Any],
    ranges: Mapping[str, tuple[float, float]],
    where: str,
) -> list[Finding]:
    """Run both on one feed; constants go to the source only. Nothing is claimed of graphs that draw random numbers.

    Raises:
        UsageError: ONNX Runtime does not load the source.

    """
    if any(is_onnx(node, *RANDOM) for graph in walk(prepared.graph) for node in graph.node):
        return []
    feed = seeded([_spec(value) for value in real_inputs(prepared.graph)], ranges, count=1, seed=0)[0]
    try:
        session = _session(source)
    except Exception as error:
        hint = "export the model again, or with an older opset if this one is newer than ONNX Runtime"
        raise UsageError(f"ONNX Runtime does not load the model: {_short(error)}", where=where, hint=hint) from error
    try:
        want = _run(session, feed, constants)
    except Exception as error:  # noqa: BLE001 - whatever ONNX Runtime raises
        return [finding("bad-shape", f"the source does not run with the given shapes: {_short(error)}")]
    del session
    try:
        got = _run(_session(prepared.SerializeToString()), feed, {})
    except Exception as error:  # noqa: BLE001 - as above
        return [finding("prepared-differs", f"the prepared graph does not run on the CPU: {_short(error)}")]
    limit = COARSE if _is_coarse(prepared) else EXACT
    told = [f"{name}: {why}" for name in want if (why := unlike(want[name], got.get(name), limit))]
    return [finding("prepared-differs", "; ".join(told))] if told else []


def _spec(value: Any) -> Spec:
    return Spec(value.name, static_shape(value.type) or (), numpy_dtype(value.type.tensor_type.elem_type))


def _session(model: bytes) -> Any:
    options = ort.SessionOptions()
    # Optimizers are what is on trial here: ONNX Runtime's own crash on some nested `If`s.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"], enable_fallback=0)


def _run(session: Any, feed: Arrays, constants: Mapping[str, Any]) -> Arrays:
    given = {**feed, **constants}
    wide = {value.name: given[value.name] for value in session.get_inputs()}
    for value in session.get_inputs():
        if value.type == "tensor(int64)":
            wide[value.name] = wide[value.name].astype(np.int64)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, wide), strict=True))


def _is_coarse(model: Any) -> bool:
    halves = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    return any(node.op_type == "QuantizeLinear" for node in model.graph.node) or any(
        value.type.tensor_type.elem_type in halves for value in model.graph.value_info
    )


def unlike(want: Any, got: Any, limit: float) -> str:
    """Say how an output differs from the wanted one, or nothing."""
    if got is None or np.shape(want) != np.shape(got):
        return f"shape {np.shape(got) if got is not None else None} instead of {np.shape(want)}"
    a, b = np.asarray(want, np.float64), np.asarray(got, np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "not finite in other places"
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    if np.issubdtype(np.asarray(want).dtype, np.floating):
        gap, peak = float(np.abs(a - b).max(initial=0)), float(np.abs(a).max(initial=0))
        return "" if gap <= limit * peak + 1e-6 else f"off by {gap:.3g}, the largest value is {peak:.3g}"
    unequal = int(np.count_nonzero(a != b))
    # An argmax may tip over where two values are nearly equal.
    return "" if unequal <= a.size // 100 else f"{unequal} of {a.size} values differ"


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
