"""How large the weights of a graph will be in each precision, by dims alone: a forecast, compilers pad and pack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

from qnnci.model.graph import elements, load, parameters, tensor_bytes, tensors

BITS = {"float32": 32, "fp16": 16, "w8": 8, "w4": 4}
_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.BFLOAT16}


def forecast(path: Path) -> dict[str, Any]:
    """Parameters, and bytes by precision; weights are not read. Tensors of integers keep their size.

    Raises:
        UsageError: not ONNX.

    """
    model = load(path)
    floats = sum(elements(each) for each in tensors(model) if each.data_type in _FLOATS)
    others = sum(tensor_bytes(each) for each in tensors(model) if each.data_type not in _FLOATS)
    return {
        "parameters": parameters(model),
        "bytes": {name: floats * bits // 8 + others for name, bits in BITS.items()},
    }


def in_words(made: dict[str, Any]) -> str:
    """The same in one line."""
    sizes = ", ".join(f"{_size(count)} in {name}" for name, count in made["bytes"].items())
    return f"{made['parameters']:,} parameters: {sizes}"


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if count >= size / 10:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.1f} kB"
