"""The graphs and chips that are measured: PP-OCRv4 for eight of them."""

from __future__ import annotations

from typing import Any

SOCS = ("SM8450", "SM8475", "SM8550", "SM8650", "SM8750", "SM8850", "QCS8550", "QCS9100")
GRAPHS = {  # in falling order of their compile time
    "detector": ("ch_PP-OCRv4_det_infer.onnx", "1,3,640,640"),
    "recogniser": ("ch_PP-OCRv4_rec_infer.onnx", "1,3,48,320"),
    "classifier": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", "1,3,48,192"),
}
WHEEL = "pypi://rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models"


def project() -> dict[str, Any]:
    graphs = {
        name: {"source": f"{WHEEL}/{file}", "inputs": {"x": list(map(int, shape.split(",")))}}
        for name, (file, shape) in GRAPHS.items()
    }
    return {"name": "bench", "socs": SOCS, "graphs": graphs}
