"""Whether a folded graph is wholly static, and where it is not."""

from __future__ import annotations

import re
from typing import Any

from qnnci.findings import Finding
from qnnci.model.fold import Folded
from qnnci.model.graph import dims_of, is_onnx, label, real_inputs, shape_text, static_shape
from qnnci.model.infer import RANDOM
from qnnci.model.names import reads
from qnnci.rules import finding

# How many of the first inputs decide: the condition of If, count and condition of Loop; Scan goes by shapes.
_DECIDING = {"If": 1, "Loop": 2, "Scan": 0}
SHAPES = ("Shape", "Size")
_UNKNOWN_OP = "is not a registered function/op"  # ONNX Runtime's words


def control_flow(graph: Any) -> list[tuple[Finding, bool]]:
    """One finding for each `If`, `Loop` or `Scan` of a folded graph; with it, whether values of inputs decide it."""
    found = []
    for node in graph.node:
        if is_onnx(node, *_DECIDING):
            inputs = _deciding(graph, node)
            told = f"; what it does depends on {', '.join(inputs)}" if inputs else ""
            hint = (
                f"give {inputs[0]} as a constant: `{inputs[0]}: {{value: …}}` or `--input {inputs[0]}:=…`"
                if len(inputs) == 1
                else ""
            )
            message = f"{node.op_type} is left in the graph{told}"
            found.append((finding("control-flow", message, hint=hint, node=label(node)), bool(inputs)))
    return found


def _deciding(graph: Any, node: Any) -> list[str]:
    """Names of the graph inputs whose values, not only shapes, decide what the node does."""
    makers = {name: maker for maker in graph.node for name in maker.output}
    wanted = [name for name in node.input[: _DECIDING[node.op_type]] if name]
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            wanted += reads(makers[name]) if name in makers and not is_onnx(makers[name], *SHAPES) else ()
    return [value.name for value in real_inputs(graph) if value.name in seen]


def computing(graph: Any) -> list[Any]:
    """Nodes that data flows through; the others follow from shapes and constants, and fold away."""
    data = {value.name for value in real_inputs(graph)}
    nodes = []
    for node in graph.node:
        if is_onnx(node, *SHAPES):
            continue
        if data & reads(node) or is_onnx(node, *RANDOM):
            data.update(node.output)
            nodes.append(node)
    return nodes


def refusals(folded: Folded) -> list[Finding]:
    """Nodes whose inputs do not fit together, or that no one knows."""
    found = []
    for node, why in folded.refused:
        if _UNKNOWN_OP in why:
            name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            found.append(finding("unsupported-op", f"no one knows the op {name}", node=label(node)))
        else:
            told = f"{node.op_type} cannot take its inputs {_inputs(node, folded)}: {_first_line(why)}"
            found.append(finding("bad-shape", told, node=label(node)))
    return found


def idle_outputs(graph: Any) -> list[Finding]:
    """Outputs that nothing computes: the compiler leaves them out of the binary without a word."""
    given = {value.name for value in graph.input}
    constant = {tensor.name for tensor in graph.initializer}
    constant |= {name for node in graph.node if is_onnx(node, "Constant") for name in node.output}
    found = []
    for value in graph.output:
        if value.name in given:
            found.append(finding("idle-output", f"output {value.name} is an input of the graph"))
        elif value.name in constant:
            found.append(finding("idle-output", f"output {value.name} is constant"))
    return found


def _inputs(node: Any, folded: Folded) -> str:
    return ", ".join(shape_text(dims_of(folded.types[name])) for name in node.input if name in folded.types)


def _first_line(text: str) -> str:
    """Return the reason out of what ONNX or ONNX Runtime says, without their prefixes."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return re.sub(r"^.*\[(Shape|Type)InferenceError\]:?\s*|^\[ONNXRuntimeError\][ :]*\d*[ :]*", "", line)


def openings(graph: Any, folded: Folded) -> list[Finding]:
    """Tensors that have no static shape although all that they are made of has; empty outputs."""
    found = []
    for node, name in folded.unsure:
        dims = dims_of(folded.types[name]) if name in folded.types else None
        hint = "the size depends on the data: replace the op in the model, or cut the graph before it"
        message = f"{node.op_type} makes {name} {shape_text(dims)}, whose size is known only at run time"
        found.append(finding("dynamic-dim", message, hint=hint, node=label(node)))
    for value in graph.output:
        shape = static_shape(value.type)
        if shape is not None and 0 in shape:
            found.append(finding("bad-shape", f"output {value.name} comes out empty: {list(shape)}"))
        elif shape is None and not found:
            told = shape_text(dims_of(value.type))
            found.append(finding("dynamic-dim", f"output {value.name} {told} has no static shape"))
    return found
