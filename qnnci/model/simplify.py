"""onnxsim, and what is done about its faults: nodes out of order, stale shapes, exceptions."""

from __future__ import annotations

from typing import Any

import onnx
import onnxsim

from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.model.fold import Folded, fold
from qnnci.model.graph import port, static_shape, tensor_type
from qnnci.model.names import sort_nodes
from qnnci.model.weights import outside
from qnnci.rules import finding


def simplify(model: Any, folded: Folded, where: str) -> tuple[Any, Folded, list[Finding]]:
    """Give the simplified model and what is known of it; the given ones, with a finding, where onnxsim fails.

    Weights that are outside of the model stay there: onnxsim sees them as inputs, so it cannot fuse them.
    """
    try:
        simple, _ = onnxsim.simplify(_weightless(model))
        _give_back(simple, model)
        shapes = {value.name: static_shape(value.type) for value in simple.graph.output}
        moved = sort_nodes(simple.graph, where)
        known = fold(simple, where)
    except UsageError as error:  # fold's word on onnxsim's graph, not on the user's
        return model, folded, [finding("simplify-failed", f"onnxsim left a broken graph: {error.message}")]
    except Exception as error:  # noqa: BLE001 - C++ errors of several classes, some of them plain RuntimeErrors
        return model, folded, [finding("simplify-failed", f"onnxsim failed: {str(error).splitlines()[0]}")]
    if _ports(simple.graph) != _ports(model.graph) or known.refused:
        why = known.refused[0][1] if known.refused else "it changed the graph's inputs or outputs"
        return model, folded, [finding("simplify-failed", f"onnxsim's graph does not hold: {why}")]
    wrong = [name for name, shape in shapes.items() if shape != static_shape(known.types.get(name))]
    if moved or wrong:
        told = ["nodes out of order"] * moved + [f"a wrong shape of output {name}" for name in wrong]
        return simple, known, [finding("simplify-repaired", f"onnxsim left {' and '.join(told)}; put right")]
    return simple, known, []


def _weightless(model: Any) -> Any:
    """Return the model itself, or a copy in which weights kept outside are inputs."""
    if not (weights := outside(model)):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = {tensor.name for tensor in weights}
    for index in reversed(range(len(copy.graph.initializer))):
        tensor = copy.graph.initializer[index]
        if tensor.name in names:
            kind = tensor_type(tensor.data_type, tensor.dims)
            copy.graph.input.append(onnx.helper.make_value_info(tensor.name, kind))
            del copy.graph.initializer[index]
    return copy


def _give_back(simple: Any, model: Any) -> None:
    """Undo `_weightless`: weights that stand among the inputs become initializers again."""
    weights = {tensor.name: tensor for tensor in outside(model)}
    for value in list(simple.graph.input):
        if value.name in weights:
            simple.graph.input.remove(value)
            simple.graph.initializer.append(weights[value.name])


def _ports(graph: Any) -> list[list[Any]]:
    return [
        [(value.name, port(value.name, value.type).dtype) for value in side] for side in (graph.input, graph.output)
    ]
