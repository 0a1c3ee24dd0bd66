"""A machine without the embedded compiler (Python 3.10, an old glibc, ARM): what works there, works."""

from __future__ import annotations

import pytest
from support import graphs
from support.command import qnnci


@pytest.fixture
def without(tmp_path):
    """An environment in which the package cannot be imported, and a model."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "onnxruntime_qnn.py").write_text("raise ImportError('no wheel for this machine')\n")
    graphs.cnn(tmp_path / "cnn.onnx")
    return {"cwd": tmp_path, "PYTHONPATH": str(hidden)}


def test_a_build_prepares_and_names_the_way_out(without):
    ended = qnnci("build", "--model", "cnn.onnx", "--soc", "SM8550,SM8650", **without)
    assert ended.code == 3
    assert "cnn: prepare done" in ended.said
    assert ended.said.count("the embedded compiler is not installed (no wheel for this machine)") == 1
    assert "Python 3.11 or newer and glibc 2.35 or newer" in ended.said


def test_doctor_says_so_too(without):
    ended = qnnci("doctor", **without)
    assert ended.code == 3
    assert "handshake" in ended.said
    assert "the embedded compiler is not installed" in ended.said


def test_check_and_the_chips_do_not_need_it(without):
    assert qnnci("check", "cnn.onnx", **without).code == 0
    assert qnnci("socs", "SM8750", **without).code == 0


def test_doctor_proves_the_handshake(tmp_path):
    pytest.importorskip("onnxruntime_qnn")
    ended = qnnci("doctor", cwd=tmp_path)
    assert ended.code == 0
    assert "compiled, read back and ran a graph for SM8550 (v73)" in ended.said
    assert "v2.51.0" in ended.said
