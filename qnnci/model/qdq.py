"""Graphs in QDQ form: a new enough opset, written whole, and what of them stayed float."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.version_converter

from qnnci.files import SCRATCH, commit
from qnnci.model import weights
from qnnci.model.graph import opset

OPSET = 21  # the first whose own Q and DQ take 16 and 4 bits
_Q = frozenset({"QuantizeLinear", "DequantizeLinear"})


def lifted(model: Any, version: int = OPSET) -> Any:
    """The model in this opset, or as it is where it is too large for that or has a newer one."""
    if opset(model) >= version or model.ByteSize() >= weights.INLINE_LIMIT:
        return model
    others = {node.name: (node.op_type, node.domain) for node in model.graph.node if node.domain}
    for node in model.graph.node:
        if node.name in others:  # the converter knows no other domains; a fused Gelu has the type of its input
            node.op_type, node.domain = "Identity", ""
    model = onnx.version_converter.convert_version(model, version)
    for node in model.graph.node:
        if node.name in others:
            node.op_type, node.domain = others[node.name]
    known = {each.domain for each in model.opset_import}
    model.opset_import.extend(
        onnx.helper.make_opsetid(domain, 1) for domain in {domain for _, domain in others.values()} - known
    )
    return model


def save(model: Any, out: Path) -> None:
    """Write a model, over 2 GiB with its weights in `<name>.data` beside it."""
    data = f"{out.name}.data"
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=out.parent) as name:
        part = Path(name) / out.name
        if model.ByteSize() < weights.INLINE_LIMIT:
            part.write_bytes(model.SerializeToString(deterministic=True))
            (out.parent / data).unlink(missing_ok=True)
        else:
            onnx.save(model, str(part), save_as_external_data=True, location=data)
            commit(part.with_name(data), out.parent / data)
        commit(part, out)


def float_nodes(graph: Any, outputs: Mapping[str, Collection[str]], floats: Collection[str]) -> list[str]:
    """Names of nodes whose float results are not quantized, in the graph's order.

    `outputs` are those of the float graph's nodes by their names, `floats` its float tensors.
    """
    read = {name for node in graph.node if node.op_type == "QuantizeLinear" for name in node.input[:1]}
    return [
        f"{node.name} ({node.op_type})"
        for node in graph.node
        if node.op_type not in _Q
        and any(name in floats for name in outputs.get(node.name, ()))
        and not read.intersection(node.output)
    ]
