"""Compile the small graphs that the tests of qnnci.context read: python make_binaries.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from qnnci.toolchain.ort import compile_context


def _save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: dict[str, Any]) -> Path:
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def conv(path: Path, channels: int, size: int) -> Path:
    """Two convolutions and an Add over 3 x `size` x `size`: at 64 x 128 the sum spills out of 2 MB of VTCM."""
    random = np.random.default_rng(0)
    weights = {
        "w1": random.standard_normal((channels, 3, 3, 3)).astype(np.float32) / 8,
        "w2": random.standard_normal((channels, channels, 3, 3)).astype(np.float32) / 8,
    }
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1] * 4),
        helper.make_node("Add", ["b", "c"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["pooled"]),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, size, size])
    pooled = helper.make_tensor_value_info("pooled", TensorProto.FLOAT, [1, channels, 1, 1])
    return _save(path, nodes, [image], [pooled], weights)


def quantized(path: Path, dtype: type[np.unsignedinteger[Any]], kind: int) -> Path:
    """Sum and product of two quantized inputs; inputs have scale 0.5, outputs 0.25 with zero points 3 and 7."""
    weights: dict[str, Any] = {
        "s_in": np.float32(0.5),
        "z_in": dtype(128),
        "s_out": np.float32(0.25),
        "z_sum": dtype(3),
        "z_product": dtype(7),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["left", "s_in", "z_in"], ["l"]),
        helper.make_node("DequantizeLinear", ["right", "s_in", "z_in"], ["r"]),
        helper.make_node("Add", ["l", "r"], ["s"]),
        helper.make_node("Mul", ["l", "r"], ["p"]),
        helper.make_node("QuantizeLinear", ["s", "s_out", "z_sum"], ["sum"]),
        helper.make_node("QuantizeLinear", ["p", "s_out", "z_product"], ["product"]),
    ]
    inputs = [helper.make_tensor_value_info(name, kind, [1, 4, 8, 6]) for name in ("left", "right")]
    outputs = [helper.make_tensor_value_info(name, kind, [1, 4, 8, 6]) for name in ("sum", "product")]
    return _save(path, nodes, inputs, outputs, weights)


def main(folder: Path) -> None:
    spilling = conv(folder / "spilling.onnx", 64, 128)
    small = conv(folder / "small.onnx", 8, 16)
    w8 = quantized(folder / "w8.onnx", np.uint8, TensorProto.UINT8)
    w16 = quantized(folder / "w16.onnx", np.uint16, TensorProto.UINT16)
    for model, soc_id, vtcm_mb, optimization, fp16 in (
        (small, 43, 8, 3, True),
        (spilling, 43, 2, 2, True),
        (w16, 43, 8, 3, False),
        (w8, 93, 2, 3, False),
    ):
        compile_context(
            model,
            model.with_name(f"{model.stem}_ctx.onnx"),
            model.with_suffix(".bin"),
            soc_id=soc_id,
            vtcm_mb=vtcm_mb,
            optimization=optimization,
            fp16=fp16,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
