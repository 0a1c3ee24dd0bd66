"""Small ONNX graphs, each with one property that a test is about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path: Path, nodes, inputs, outputs, weights=()) -> Path:
    """Write a graph; inputs and outputs are name → shape, all float32."""
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in side.items()]
        for side in (inputs, outputs)
    ]
    initializers = [numpy_helper.from_array(array, name) for name, array in dict(weights).items()]
    graph = helper.make_graph(list(nodes), path.stem, *ports, initializers)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def weight(*shape) -> np.ndarray:
    array = np.random.default_rng(1).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return array.astype(np.float32)


def cnn(path: Path, batch: int | str = 1) -> Path:
    """Conv and Relu: compiles in a tenth of a second for every chip that has fp16."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["features"], name="relu"),
    ]
    return save(path, nodes, {"image": [batch, 3, 8, 8]}, {"features": [batch, 4, 8, 8]}, {"w": weight(4, 3, 3, 3)})


def with_det(path: Path) -> Path:
    """A Det, which HTP has not, in the middle of a CNN."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Det", ["c"], ["d"], name="determinant"),
        helper.make_node("Relu", ["d"], ["y"], name="relu"),
    ]
    return save(path, nodes, {"image": [1, 3, 8, 8]}, {"y": [1, 4]}, {"w": weight(4, 3, 3, 3)})


def too_wide(path: Path) -> Path:
    """One norm over two million values: no chip has the VTCM for it."""
    shape = [1, 8, 1, 2_000_000]
    nodes = [helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"], name="wide")]
    return save(path, nodes, {"x": shape}, {"y": shape}, {"s": np.ones(8, np.float32), "b": np.zeros(8, np.float32)})


def overflowing(path: Path) -> Path:
    """Squares past 65504: right in float32, infinite in fp16."""
    nodes = [
        helper.make_node("Mul", ["x", "big"], ["m"], name="scale"),
        helper.make_node("Mul", ["m", "m"], ["y"], name="square"),
    ]
    return save(path, nodes, {"x": [1, 64]}, {"y": [1, 64]}, {"big": np.full(1, 3000, np.float32)})


def dense(path: Path, rows: int) -> Path:
    """Two MatMuls with the same weights whatever the number of rows is."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "w2"], ["y"], name="second"),
    ]
    shape = [1, rows, 256]
    return save(path, nodes, {"x": shape}, {"y": shape}, {"w1": weight(256, 256), "w2": weight(256, 256) * 2})


def residual(path: Path) -> Path:
    """MatMuls in a row, the second with what went in added to it; `mask` is read in the middle and at the end."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "w2"], ["c"], name="second"),
        helper.make_node("Add", ["c", "b"], ["d"], name="residual"),
        helper.make_node("Mul", ["d", "mask"], ["e"], name="masked"),
        helper.make_node("MatMul", ["e", "w3"], ["f"], name="third"),
        helper.make_node("Mul", ["f", "mask"], ["y"], name="masked_again"),
    ]
    shape = [1, 8, 16]
    weights = {f"w{number}": weight(16, 16) * number for number in (1, 2, 3)}
    return save(path, nodes, {"x": shape, "mask": shape}, {"y": shape}, weights)


def with_external_weights(path: Path) -> Path:
    """Its weights stand in `<name>.data` beside it."""
    model = onnx.load(str(cnn(path)))
    onnx.save(model, str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)
    return path


def quantized(path: Path) -> Path:
    """A MatMul in QDQ form, 8 bits throughout: compiles for every chip."""

    def qdq(name: str, out: str) -> list:
        return [
            helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name}_q"], name=f"quantize_{name}"),
            helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [out], name=f"dequantize_{name}"),
        ]

    nodes = [
        *qdq("x", "x_f"),
        helper.make_node("DequantizeLinear", ["w", "scale", "zero"], ["w_f"], name="dequantize_w"),
        helper.make_node("MatMul", ["x_f", "w_f"], ["m"], name="matmul"),
        *qdq("m", "y"),
    ]
    rng = np.random.default_rng(2)
    weights = {
        "scale": np.array(0.05, np.float32),
        "zero": np.array(128, np.uint8),
        "w": rng.integers(100, 156, (16, 16)).astype(np.uint8),
    }
    return save(path, nodes, {"x": [1, 16]}, {"y": [1, 16]}, weights)


def spreading(path: Path) -> Path:
    """Channels of very different sizes in the middle: 8 bits with one scale for all of them lose the small ones."""
    sizes = np.geomspace(1, 1000, 4).reshape(1, 4, 1, 1).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["c", "sizes"], ["wide"], name="spread"),
        helper.make_node("Mul", ["wide", "back"], ["narrow"], name="gather"),
        helper.make_node("Sigmoid", ["narrow"], ["y"], name="end"),
    ]
    held = {"w": weight(4, 3, 3, 3), "sizes": sizes, "back": 1 / sizes}
    return save(path, nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 8, 8]}, held)
