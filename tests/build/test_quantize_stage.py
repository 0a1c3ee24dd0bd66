"""Quantizing as part of a build, on a real graph; what cannot be is refused before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command import project, qnnci

from qnnci import manifest
from qnnci.build.quantize import refusals
from qnnci.context.info import ContextInfo, GraphInfo, TensorInfo
from qnnci.gates import judge_ports
from qnnci.plan import Target
from qnnci.quantization import Quantize
from qnnci.soc import find_soc

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

LINES = Path(__file__).parents[2] / "examples/pp-ocr/lines.npz"


def crops() -> np.ndarray:
    """Rendered text as PP-OCR's classifier takes it, upright and upside down."""
    grey = np.load(LINES)["images"][:, :, :192].astype(np.float32)
    crops = np.repeat((grey / 255 - 0.5)[:, np.newaxis, np.newaxis] / 0.5, 3, axis=2)
    return np.concatenate([crops, crops[..., ::-1, ::-1]])


def test_a_real_graph_for_a_chip_with_fp16_and_one_without(tmp_path, models):
    np.savez(tmp_path / "feeds.npz", x=crops())
    np.savez(tmp_path / "verify.npz", x=crops()[::6])
    graph = {
        "source": str(models("ch_ppocr_mobile_v2.0_cls_infer.onnx")),
        "inputs": {"x": [1, 3, 48, 192]},
        "calibration": "feeds.npz",
        "verify": {"inputs": "verify.npz"},
        "quantize": {"io": "ufixed16"},
    }
    project(tmp_path, {"cls": graph}, ["SM8550", "SM8750", "QCS6490"], precision={"default": "w8a8", "v68": "w8a16"})
    ended = qnnci("build", "--until", "convert", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert ended.said.count("quantize done") == 2  # once for both chips of a precision
    (tmp_path / "build/cls/calibration.npz").unlink()  # it need not travel to the jobs that compile
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "cls-w8a8: quantize done" not in ended.said
    assert "compile done" in ended.said
    made = {each.soc: each for each in manifest.load(tmp_path / "build/manifest.json").entries}
    assert {name: each.precision for name, each in made.items()} == {
        "SM8550": "w8a8",
        "SM8750": "w8a8",
        "QCS6490": "w8a16",
    }
    for each in made.values():
        assert {port.dtype for port in (*each.inputs, *each.outputs)} == {"UFIXED_POINT_16"}
        assert each.inputs[0].scale == pytest.approx(2 / 65535, rel=0.01)
        assert each.quantization is not None
        assert (each.quantization.weights, each.quantization.samples, each.quantization.float_nodes) == (8, 24, 0)
        assert len(each.calibration_sha256) == 64
        assert each.parity.outputs["save_infer_model/scale_0.tmp_1"].cosine > 0.999
    assert made["QCS6490"].quantization.activations == 16


def test_keeping_a_node_in_float_is_seen_in_the_manifest(tmp_path, models):
    np.savez(tmp_path / "feeds.npz", x=crops()[::3])
    graph = {
        "source": str(models("ch_ppocr_mobile_v2.0_cls_infer.onnx")),
        "inputs": {"x": [1, 3, 48, 192]},
        "calibration": "feeds.npz",
        "quantize": {"keep": {"fp16": ["Softmax*", "Conv@0"]}},
    }
    project(tmp_path, {"cls": graph}, ["SM8550", "QCS6490"], precision="w8a8")
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 1
    assert "fp16-unsupported cls on QCS6490: nodes that `keep` leaves in fp16" in ended.said
    told = manifest.load(tmp_path / "build/manifest.json")
    assert [each.graph for each in told.stages if each.stage == "quantize"] == ["cls"]
    (entry,) = told.entries
    assert entry.float_fallback_ops == ("Conv@0 (Conv)", "Softmax@0 (Softmax)")
    assert entry.quantization.float_nodes == 2
    assert entry.passed


@pytest.mark.parametrize(
    ("soc", "precision", "settings", "state", "rules"),
    [
        ("SM8550", "w8a8", {}, "calibrated", []),
        ("SM8550", "w8a8", {}, "", ["quantize-needed"]),
        ("SM8550", "w8a8", {}, "quantized", []),
        ("SM8550", "w8a8", {}, "quantized calibrated", ["quantized-source"]),
        ("SM8550", "w8a8", {"io": "ufixed16"}, "quantized", ["quantized-source"]),
        ("SM8550", "fp16", {}, "quantized", ["quantized-source"]),
        ("SM8550", "fp16", {}, "calibrated", []),
        ("SM8550", "w4a16", {"per_channel": False}, "calibrated", ["int4-weights"]),
        ("SM8550", "fp16", {"io": "ufixed16"}, "", ["port-type"]),
        ("SM8550", "fp16", {"io": "float16"}, "", []),
        ("QCS6490", "w8a16", {"io": "float16"}, "calibrated", ["fp16-unsupported"]),
        ("QCS6490", "w8a16", {"keep": {"fp16": ["a"]}}, "calibrated", ["fp16-unsupported"]),
        ("QCS6490", "w8a16", {"io": "ufixed16"}, "calibrated", []),
    ],
)
def test_what_cannot_be_is_refused(soc, precision, settings, state, rules):
    target = Target("g", find_soc(soc), precision)
    said = {name: name in state.split() for name in ("quantized", "calibrated")}
    assert [each.rule for each in refusals(target, Quantize.model_validate(settings), **said)] == rules


@pytest.mark.parametrize(
    ("io", "dtypes", "wrong"),
    [
        ("float32", ("FLOAT_32", "UFIXED_POINT_8"), False),
        ("float16", ("FLOAT_16", "INT_32"), False),
        ("float16", ("FLOAT_32", "FLOAT_16"), True),
        ("ufixed16", ("UFIXED_POINT_16", "INT_32"), False),
        ("ufixed16", ("UFIXED_POINT_16", "FLOAT_16"), True),
    ],
)
def test_the_binary_is_asked_for_its_types(io, dtypes, wrong):
    ports = [TensorInfo(f"t{place}", dtype, (1,)) for place, dtype in enumerate(dtypes)]
    graph = GraphInfo("g", tuple(ports[:1]), tuple(ports[1:]))
    info = ContextInfo(3, "", 6, "", "", "", 0, 43, 73, (graph,))
    assert bool(judge_ports(info, io, quantized=False)) == wrong
    assert judge_ports(info, io, quantized=True) == []
