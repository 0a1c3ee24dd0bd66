"""The table of chips against the compiler: what a binary says of itself is what the table says."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from onnx import helper
from support.graphs import save

from qnnci.soc import htp_socs
from qnnci.toolchain.pool import Limit, Worker

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("onnxruntime_qnn"), reason="no embedded compiler")
AMPLE = Limit(120, 4096)


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Relu on 8 bits, which every HTP has."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "scale", "zero"], ["xd"]),
        helper.make_node("Relu", ["xd"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "scale", "zero"], ["y"]),
    ]
    weights = {"scale": np.float32(0.01), "zero": np.uint8(128)}
    return save(tmp_path_factory.mktemp("qdq") / "qdq.onnx", nodes, {"x": [1, 4, 8, 8]}, {"y": [1, 4, 8, 8]}, weights)


@pytest.mark.parametrize("soc", htp_socs(), ids=lambda soc: soc.name)
def test_the_binary_is_for_the_chip_of_the_table(soc, worker, model, tmp_path):
    binary = tmp_path / "qdq.bin"
    arguments = {
        "model": str(model),
        "binary": str(binary),
        "context_model": str(tmp_path / "qdq_ctx.onnx"),
        "soc_id": soc.id,
        "vtcm_mb": soc.vtcm_mb,
        "optimization": 3,
        "fp16": False,
    }
    compiled = worker.ask("qnnci.build.work:compile_stage", arguments, log=tmp_path / "log", limit=AMPLE)
    assert (compiled.refused, compiled.death) == ("", "")
    read = worker.ask(
        "qnnci.build.work:inspect_stage",
        {"binary": str(binary), "context_model": ""},
        log=tmp_path / "log",
        limit=AMPLE,
    )
    info = read.result["info"]
    assert (info["soc_id"], info["dsp_arch"]) == (soc.id, soc.arch)
    assert [graph["vtcm_bytes"] for graph in info["graphs"]] == [soc.vtcm_mb << 20]
