"""A large log in the tools' form: nearly all lines harmless, some that look alarming, few that are errors."""

from __future__ import annotations

import random
import re
from pathlib import Path

from qnnci.logs.patterns import QUIET, patterns

_TIME = "2033-03-04 05:06:07"
_ORT = _TIME + ".{n} [V:onnxruntime:Default, qnn_backend_manager.cc:519 QnnLogging] "
_CALM = (
    _TIME + ".{n} [I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer {w}Fusion modified: 0",
    _TIME + ".{n} [V:onnxruntime:, graph_transformer_mgr.cc:55 ApplyTransformers] Applying {w}Transformer on step 1.",
    _ORT + " <V> Setting device config 0x{h} via router",
    _ORT + " <I> QnnBackend_free started. backend = 0x{h}",
    _ORT + "grdep_checkpoints.cc:777:Assign checkpoints to {n} ops",
    _ORT + "vtcm_wrapper.cc:180:VTCM: total_sz={n}, sz={n}, off=0, req=0x{h}, ctx=0 (0x{h}-0x{h})",
    _ORT + "tcm_migration.cc:2205:WARNING:no properties registered for q::{w}.tcm",
    _ORT + "[##########                                        ]  20%",
    " {n}.3ms [  INFO ] [QNN_CPU] QnnGraph execute start",
    " {n}.3ms [  INFO ] cleaning up resources for output tensors",
    " {n}.1ms [WARNING] Profile Logger with name = defaultKey doesn't exist! Returning nullptr",
    "[INFO] Setting activation for layer: {w}_{n} and buffer: {n}",
    "[INFO] bw: 8, min: -2.{n}, max: 2.{n}, delta: 0.{n}, offset: -139.000000",
    _TIME + ",123 - 278 - INFO - INFO_STATIC_RESHAPE: Applying static reshape to /{w}/{w}_{n}: new shape [1]",
    "{w} -> /data/calibration/sample_{n}/{w}.raw",
)
_ODD = (
    _ORT + "Completed stage: VTCM Allocation ({n} us)",
    _ORT + "fill_bytes={n}",
    _ORT + " <E> unexpected GraphHtpSettings option 66",
    " {n}.0ms [ ERROR ] Device property is not supported",
    _TIME + ",123 - 283 - WARNING - Simplified model validation failed",
)
_WRONG = (
    _ORT + " <E> Failed to validate op {w}_{n} with error 0xc26",
    _ORT + "graph_prepare.cc:211::ERROR:could not create op: q::{w}",
    _TIME + ",123 - 283 - WARNING - Shape not found for tensor: /{w}/{w}_{n}",
)
_WORDS = ("Conv", "Gemm", "Relu", "Softmax", "Reshape", "Transpose", "LayerNorm", "Attention", "Gather", "Concat")
_BLOCK = 20_000  # lines that are drawn at once


def write(path: Path, size: int, seed: int = 0) -> None:
    """Write at least `size` bytes: 3 % of the lines look alarming or hold facts, one in 2000 is an error or warning."""
    draw = random.Random(seed)
    with path.open("wb") as file:
        while file.tell() < size:
            file.write("".join(_line(draw) for _ in range(_BLOCK)).encode())


def _line(draw: random.Random) -> str:
    dice = draw.random()
    template = draw.choice(_WRONG if dice < 0.0005 else _ODD if dice < 0.03 else _CALM)
    number = draw.randrange(10**8, 10**9)
    return template.format(n=number, h=f"{number:x}", w=draw.choice(_WORDS)) + "\n"


def for_grep() -> str:
    """The patterns that the reader looks for, one a line, in the language of `grep -E`."""
    return "".join(
        f"{_extended(each.source)}\n" for each in patterns() if each.role not in QUIET or (each.fact and not each.only)
    )


def _extended(source: str) -> str:
    source = re.sub(r"\(\?[!=<](?:[^()]|\([^()]*\))*\)", "", source)  # it has no looking ahead
    source = re.sub(r"\(\?(?:P<\w+>|:|-i:)", "(", source).replace(r"\d", "[0-9]")
    return source.replace("*?", "*").replace("+?", "+")
