"""Real builds to bundle: graphs that the loader of sherpa-onnx could use, and graphs that it could not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import graphs
from support.command import project, qnnci


def _sense_voice(path: Path, x: str = "x", shape: tuple[int, ...] = (1, 6, 560)) -> Path:
    """logits = x · w + prompt, with the inputs of SenseVoice; where x comes with its axes turned, it is turned back."""
    turned = shape[2] != 560
    nodes = [helper.make_node("Transpose", [x], ["rows"], name="turn", perm=[0, 2, 1])] if turned else []
    nodes += [
        helper.make_node("MatMul", ["rows" if turned else x, "w"], ["m"], name="project"),
        helper.make_node("Cast", ["prompt"], ["p"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["m", "p"], ["logits"], name="add"),
    ]
    inputs = [
        helper.make_tensor_value_info(x, TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("prompt", TensorProto.INT32, [4]),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 6, 4])
    weights = [numpy_helper.from_array(graphs.weight(560, 4), "w")]
    graph = helper.make_graph(nodes, path.stem, inputs, [output], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def _bytes(path: Path) -> Path:
    """An Add whose inputs and output are 8 bits wide; x and logits are called as SenseVoice's."""
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"], name="real"),
        helper.make_node("Add", ["f", "f"], ["g"], name="twice"),
        helper.make_node("QuantizeLinear", ["g", "s", "z"], ["logits"], name="fixed"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.UINT8, [1, 6, 560]) for name in ("x", "logits")]
    weights = [
        numpy_helper.from_array(np.array(0.5, np.float32), "s"),
        numpy_helper.from_array(np.array(128, np.uint8), "z"),
    ]
    graph = helper.make_graph(nodes, path.stem, ports[:1], ports[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


@pytest.fixture(scope="session")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")
    folder = tmp_path_factory.mktemp("bundles")
    _sense_voice(folder / "good.onnx")
    _sense_voice(folder / "renamed.onnx", x="audio")
    _sense_voice(folder / "turned.onnx", shape=(1, 560, 6))
    _bytes(folder / "bytes.onnx")
    made = {name: {"source": f"{name}.onnx"} for name in ("good", "renamed", "turned")}
    unrun = {"verify": {"enabled": False}}  # an integer feed is none for fixed point
    small = {"bytes": {"source": "bytes.onnx", "precision": "w8a8", "socs": ["SM8550"], **unrun}}
    project(folder, {**made, **small}, ["SM8550", "SM8750"], license="MIT", gates={"binary_mb": {"max": 100}})
    ended = qnnci("build", cwd=folder)
    assert ended.code == 0, ended.said
    (folder / "LICENSE").write_text("licence\n")
    (folder / "tokens.txt").write_text("a 0\n")
    return folder


@pytest.fixture
def built(_built: Path, tmp_path: Path) -> Path:
    """A project of these graphs with its build, to do anything to."""
    folder = tmp_path / "project"
    shutil.copytree(_built, folder)
    return folder
