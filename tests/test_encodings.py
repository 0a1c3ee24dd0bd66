"""Real encodings of AIMET, from the project file to the binary: the emulator and libQnnSystem say what came of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command import project, qnnci

from qnnci import manifest

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

HERE = Path(__file__).parent / "encodings"


def built(folder: Path, graph: dict[str, object], *socs: str, **more: object):
    project(folder, {"g": graph}, list(socs), precision="w8a16", **more)
    ended = qnnci("build", cwd=folder)
    return ended, manifest.load(folder / "build/manifest.json").entries


@pytest.mark.parametrize(
    "version", ["0.6.1", "2.0.0"]
)  # that all three say the same, tests/model/test_encoded.py holds
def test_the_binary_has_exactly_the_files_scales(tmp_path, version):
    for name in ("small.onnx", f"small-{version}.encodings"):
        shutil.copy(HERE / name, tmp_path)
    quantize = {"encodings": f"small-{version}.encodings", "io": "ufixed16"}
    ended, entries = built(tmp_path, {"source": "small.onnx", "quantize": quantize}, "SM8750", "QCS6490")
    assert ended.code == 0, ended.said
    rows = {row["name"]: row for row in json.loads((HERE / "small-2.0.0.encodings").read_text())["encodings"]}
    for entry in entries:
        for tensor in (*entry.inputs, *entry.outputs):
            row = rows[tensor.name]
            assert tensor.dtype == "UFIXED_POINT_16"
            assert tensor.scale == pytest.approx(row["y_scale"], rel=1e-6)  # float32 of the file's float64
            assert tensor.offset == -row.get("y_zero_point", 0)
        assert entry.parity is not None
        assert (entry.parity.outputs["logits"].snr_db or 0) > 35
        assert entry.quantization is not None
        assert (entry.quantization.unmatched, entry.quantization.float_nodes) == (0, 0)
        assert entry.quantization.encodings == (9 if version == "2.0.0" else 7)
        assert len(entry.encodings_sha256 or "") == 64


def test_a_real_model_with_all_of_its_encodings(tmp_path, models):
    shutil.copy(HERE / "classifier-2.0.0.encodings", tmp_path)
    shutil.copy(HERE.parents[1] / "examples/pp-ocr/feeds/classifier.npz", tmp_path)
    graph = {
        "verify": {"inputs": "classifier.npz"},
        "source": str(models("ch_ppocr_mobile_v2.0_cls_infer.onnx")),
        "inputs": {"x": [1, 3, 48, 192]},
        "quantize": {"encodings": "classifier-2.0.0.encodings"},
    }
    ended, (entry,) = built(tmp_path, graph, "QCS6490")
    assert ended.code == 0, ended.said
    assert entry.quantization is not None
    assert (entry.quantization.encodings, entry.quantization.unmatched, entry.quantization.float_nodes) == (279, 0, 0)


def test_encodings_of_another_model_are_an_error(tmp_path):
    for name in ("small.onnx", "classifier-2.0.0.encodings"):
        shutil.copy(HERE / name, tmp_path)
    graph = {"source": "small.onnx", "quantize": {"encodings": "classifier-2.0.0.encodings"}}
    ended, entries = built(tmp_path, graph, "SM8750")
    assert (ended.code, entries) == (1, ())
    assert "encodings-none" in ended.said
    assert "none of 279 encodings is of a tensor of the graph" in ended.said


@pytest.mark.parametrize("content", [None, b"{}"])
def test_a_file_that_is_none(tmp_path, content):
    shutil.copy(HERE / "small.onnx", tmp_path)
    if content is not None:
        (tmp_path / "bad.encodings").write_bytes(content)
    ended, entries = built(tmp_path, {"source": "small.onnx", "quantize": {"encodings": "bad.encodings"}}, "SM8750")
    assert (ended.code, entries) == (2, ()), ended.said
    assert "bad.encodings" in ended.said
    assert "Traceback" not in ended.said


def test_on_the_sdks_routes_the_file_goes_to_its_tools():
    from qnnci.project_file import validate

    graphs = {"a": {"source": "a.onnx", "quantize": {"encodings": "a.encodings"}}, "b": {"source": "b.onnx"}}
    made = validate({"name": "x", "socs": ["SM8750"], "route": "dlc", "graphs": graphs}, "qnn.yaml")
    assert made.convert_for("a").quantization_overrides == "a.encodings"
    assert made.convert_for("b").quantization_overrides is None
