"""What all tests share: real models, fetched as the product fetches them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qnnci.files import default_cache
from qnnci.model.source import fetch

SILERO = "pypi://silero-vad==6.2.3/silero_vad/data"
RAPIDOCR = "pypi://rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models"
NUDENET = "pypi://nudenet==3.4.2/nudenet"

MODELS = {
    "silero_vad.onnx": (SILERO, "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"),
    "silero_vad_16k_op15.onnx": (SILERO, "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49"),
    "silero_vad_16k_sequence.onnx": (SILERO, "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85"),
    "silero_vad_half.onnx": (SILERO, "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769"),
    "silero_vad_op18_ifless.onnx": (SILERO, "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28"),
    "silero_vad_openvino_16k.onnx": (SILERO, "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87"),
    "ch_PP-OCRv4_det_infer.onnx": (RAPIDOCR, "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    "ch_PP-OCRv4_rec_infer.onnx": (RAPIDOCR, "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": (
        RAPIDOCR,
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
    ),
    "320n.onnx": (NUDENET, "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f"),
}


@pytest.fixture(scope="session")
def models() -> Callable[[str], Path]:
    """A function from a model's file name (see MODELS) to its path in the cache that all runs share."""

    def model(name: str) -> Path:
        folder, sha256 = MODELS[name]
        return fetch(f"{folder}/{name}", sha256=sha256, base=Path(), cache=default_cache()).path

    return model
