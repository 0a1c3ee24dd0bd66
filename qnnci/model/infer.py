"""What one node makes: types by ONNX's own inference, by ONNX Runtime where that has none, values where known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from qnnci.model.graph import is_onnx, numpy_dtype, static_shape, subgraphs, tensor_type

# Shape arithmetic is far smaller; weights are far larger and stay as they are.
SMALL = 1 << 14
# Inputs that decide a shape (axes, sizes, pads) have an element or two for each dimension.
_TELLING = 256
RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
}
# Folding these would turn fixed-point weights back into floats.
_KEPT = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Dropout"}


class Inference:
    """Inference of single nodes of one model, by its opsets."""

    def __init__(self, model: Any) -> None:
        self._imports = list(model.opset_import) or [onnx.helper.make_opsetid("", 1)]
        self._versions = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in self._imports}
        self._ir = model.ir_version

    def types(
        self, node: Any, known: Mapping[str, Any], values: Mapping[str, NDArray[Any]]
    ) -> tuple[dict[str, Any], str]:
        """TypeProto of each output that can be known, and why the node is refused (empty if it is not)."""
        inputs = {name: known[name] for name in node.input if name in known}
        if any(name and name not in inputs for name in node.input):
            return {}, ""
        constants = {
            name: onnx.numpy_helper.from_array(values[name], name)
            for name in inputs
            if name in values and values[name].size <= _TELLING
        }
        outer = dict(known) if any(subgraphs(node)) else inputs
        types, why = self._by_onnx(node, outer, constants)
        wanted = [name for name in node.output if name]
        if all(static_shape(types.get(name)) is not None for name in wanted) or any(subgraphs(node)):
            return types, ""
        if any(static_shape(kind) is None for kind in inputs.values()):
            return types, why
        more, why = self._by_ort(node, inputs, constants)
        return {**types, **more}, why

    def _by_onnx(
        self, node: Any, inputs: Mapping[str, Any], constants: Mapping[str, Any]
    ) -> tuple[dict[str, Any], str]:
        domain = "" if is_onnx(node) else node.domain
        try:
            schema = onnx.defs.get_schema(node.op_type, self._versions.get(domain, 1), domain)
            types = onnx.shape_inference.infer_node_outputs(
                schema, node, inputs, constants, opset_imports=self._imports, ir_version=self._ir
            )
        except Exception as error:  # noqa: BLE001 - several classes of C++ errors, none of them fatal here
            return {}, str(error)
        return {name: kind for name, kind in types.items() if kind.WhichOneof("value")}, ""

    def _by_ort(self, node: Any, inputs: Mapping[str, Any], constants: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Ask ONNX Runtime, which knows its own operators, by a model of this one node."""
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        try:
            alone = self._alone(node, inputs, constants)
            session = ort.InferenceSession(alone, options, providers=["CPUExecutionProvider"], enable_fallback=0)
            found = {value.name: _from_ort(value) for value in session.get_outputs()}
        except Exception as error:  # noqa: BLE001 - as above
            return {}, str(error)
        return {name: kind for name, kind in found.items() if kind is not None}, ""

    def _alone(self, node: Any, inputs: Mapping[str, Any], constants: Mapping[str, Any]) -> bytes:
        given = [onnx.helper.make_value_info(n, kind) for n, kind in inputs.items() if n not in constants]
        made = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "one", given, made, list(constants.values()))
        model = onnx.helper.make_model(graph, opset_imports=self._imports, ir_version=self._ir)
        return bytes(model.SerializeToString())

    def value(
        self,
        node: Any,
        known: Mapping[str, Any],
        types: Mapping[str, Any],
        values: Mapping[str, NDArray[Any]],
    ) -> dict[str, NDArray[Any]]:
        """Return what a node makes where that is sure and small: it reads only constants, or only asks for shapes."""
        if not is_onnx(node) or node.op_type in RANDOM | _KEPT or any(subgraphs(node)):
            return {}
        shapes = {name: static_shape(types.get(name)) for name in node.output if name}
        if any(shape is not None and _size(shape) > SMALL for shape in shapes.values()):
            return {}
        if all(shape is not None and _size(shape) == 0 for shape in shapes.values()):
            return {name: np.empty(shape or (0,), _dtype(types[name])) for name, shape in shapes.items()}
        feed = self._feed(node, known, values)
        if feed is None:
            return {}
        graph = onnx.helper.make_graph(
            [node],
            "one",
            [onnx.helper.make_value_info(name, known[name]) for name in feed],
            [onnx.ValueInfoProto(name=name, type=types.get(name)) for name in shapes],
        )
        model = onnx.helper.make_model(graph, opset_imports=self._imports, ir_version=self._ir)
        try:
            with np.errstate(all="ignore"):
                results = [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feed)]
        except Exception:  # noqa: BLE001 - what the reference cannot compute is not a constant
            return {}
        made = dict(zip(shapes, results, strict=True))
        return made if all(_fits(types.get(name), shapes[name], array) for name, array in made.items()) else {}

    @staticmethod
    def _feed(
        node: Any, known: Mapping[str, Any], values: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]] | None:
        names = [name for name in node.input if name]
        if node.op_type in {"Shape", "Size"}:
            shape = static_shape(known.get(names[0]))
            # Only the shape counts: a view of one byte stands for the tensor.
            return None if shape is None else {names[0]: np.broadcast_to(np.zeros((), np.uint8), shape)}
        return {name: values[name] for name in names} if all(name in values for name in names) else None


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=object))


def _dtype(kind: Any) -> np.dtype[Any]:
    return numpy_dtype(kind.tensor_type.elem_type)


def _fits(kind: Any, shape: tuple[int, ...] | None, array: NDArray[Any]) -> bool:
    """Whether a computed value is what inference promised; the reference evaluator is trusted no further."""
    if kind is None or array.dtype.kind not in "iufb":
        return False
    return array.size <= SMALL and array.dtype == _dtype(kind) and (shape is None or array.shape == shape)


def _from_ort(value: Any) -> Any:
    """Return the TypeProto of an output of a session, where its shape is wholly known."""
    if not value.type.startswith("tensor(") or not all(isinstance(dim, int) for dim in value.shape):
        return None
    name = value.type.removeprefix("tensor(").removesuffix(")").upper()
    return tensor_type(onnx.TensorProto.DataType.Value(name), value.shape)
