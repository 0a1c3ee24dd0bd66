"""Made the .encodings files here, once, with aimet-onnx 2.42.0 in an environment of its own: it brings gigabytes.

    python make.py CLASSIFIER.onnx FEEDS.npz

CLASSIFIER.onnx is what `qnnci prepare` makes of PP-OCR's text direction classifier with `x: [1, 3, 48, 192]`, FEEDS.npz
`examples/pp-ocr/feeds/classifier.npz`. The small CNN, with a weight that two ops share and names that simplifying takes
away, is written too. Of the classifier one version is kept, and the JSON without spaces.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from aimet_onnx.quantsim import QuantizationSimModel
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
VERSIONS = ("0.6.1", "1.0.0", "2.0.0")


def small() -> onnx.ModelProto:
    dice = np.random.default_rng(5)
    weight = numpy_helper.from_array(dice.normal(0, 0.2, (3, 3, 3, 3)).astype(np.float32), "shared")
    head = numpy_helper.from_array(dice.normal(0, 0.2, (4, 3, 1, 1)).astype(np.float32), "head_weight")
    bias = numpy_helper.from_array(dice.normal(0, 0.2, 4).astype(np.float32), "head_bias")
    nodes = [
        helper.make_node("Conv", ["image", "shared"], ["first"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["first"], ["second"], "relu1"),
        helper.make_node("Conv", ["second", "shared"], ["third"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["third", "second"], ["sum"], "add"),
        helper.make_node("Identity", ["sum"], ["passed"], "identity"),
        helper.make_node("Conv", ["passed", "head_weight", "head_bias"], ["logits"], "conv3"),
    ]
    ports = [
        helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16]),
        helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 4, 16, 16]),
    ]
    graph = helper.make_graph(nodes, "small", ports[:1], ports[1:], [weight, head, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def encodings(model: onnx.ModelProto, feeds: list[dict[str, np.ndarray]], name: str) -> None:
    sim = QuantizationSimModel(model, param_type="int8", activation_type="int16", providers=["CPUExecutionProvider"])
    sim.compute_encodings(feeds)
    for version in VERSIONS:
        sim.export(str(HERE), f"{name}-{version}", export_model=False, encoding_version=version)


def main() -> None:
    classifier, feeds = sys.argv[1:]
    onnx.save(small(), HERE / "small.onnx")
    dice = np.random.default_rng(6)
    images = [{"image": dice.uniform(-1, 1, (1, 3, 16, 16)).astype(np.float32)} for _ in range(16)]
    encodings(small(), images, "small")
    line = np.load(feeds)["x"].reshape(1, 3, 48, 192)
    lines = [{"x": np.clip(line * scale, -1, 1).astype(np.float32)} for scale in (1, 0.9, 0.7, 0.5, -1, -0.6)]
    encodings(onnx.load(classifier), lines, "classifier")


if __name__ == "__main__":
    main()
