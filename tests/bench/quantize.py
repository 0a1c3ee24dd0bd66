"""Each precision of real graphs: error, size and seconds side by side; and what verifying costs beside the emulator."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from qnnci import manifest
from tests.bench.graphs import WHEEL
from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed

LINES = Path(__file__).parents[2] / "examples/pp-ocr/lines.npz"
YOLO = "pypi://nudenet==3.4.2/nudenet/320n.onnx"
PRECISIONS = ("fp16", "w8a8", "w8a16", "w4a16")
SOC = "SM8550"
_LAST = 3  # samples that are verified, and not calibrated on
Figures = dict[str, dict[str, Any]]


def measure(folder: Path) -> list[Figure]:
    write(folder)
    figures = [Figure(f"graph, precision on {SOC}", "cosine    SNR    size  quantize compile verify")]
    ratios = []
    for precision in PRECISIONS:
        # One after the other: side by side, verifications would slow each other, and not the emulator that runs alone.
        timed(qnnci("build", "--precision", precision, "--output", precision, "--jobs", "1"), folder, ends=(0, 1))
        made = manifest.load(folder / precision / "manifest.json")
        seconds = {(each.graph, each.stage): each.seconds for each in made.stages}
        for entry in made.entries:
            verify = seconds[entry.graph, "verify"]
            alone = emulator_alone(folder / precision, entry)
            ratios.append((verify, alone))
            worst = min(entry.parity.outputs.values(), key=lambda each: each.snr_db or -999) if entry.parity else None
            told = f"{worst.cosine:.5f} {worst.snr_db:5.1f} dB" if worst and worst.cosine is not None else "–"
            quantizing = seconds.get((entry.graph, "quantize"))
            quantized = f"{quantizing:5.1f} s" if quantizing else "      –"
            got = f"{told} {entry.bytes / 1e6:5.1f} MB {quantized} {entry.compile_seconds:5.1f} s {verify:5.1f} s"
            figures.append(Figure(f"{entry.graph}, {precision}", got))
    verifying, running = (sum(side) for side in zip(*ratios, strict=True))
    ratio = verifying / running
    what = f"verify / the emulator alone, {len(ratios)} binaries × {_LAST} samples"
    got = f"{verifying:.1f} s / {running:.1f} s = {ratio:.2f}"
    return [*figures, Figure(what, got, "≤ 1.1", met=ratio <= 1.1)]


def write(folder: Path) -> Figures:
    """A project of the graphs, with rendered lines of text as their inputs."""
    names = {"ch_ppocr_mobile_v2.0_cls_infer": "classifier", "ch_PP-OCRv4_rec_infer": "recogniser"}
    names |= {"ch_PP-OCRv4_det_infer": "detector"}
    sources = {name: f"{WHEEL}/{file}.onnx" for file, name in names.items()}
    graphs = {}
    for name, (port, feeds) in inputs().items():
        np.savez(folder / f"{name}.npz", **{port: feeds[:-_LAST]})
        np.savez(folder / f"{name}-verify.npz", **{port: feeds[-_LAST:]})
        graphs[name] = {
            "source": sources.get(name, YOLO),
            "inputs": {port: list(feeds.shape[1:])},
            "calibration": f"{name}.npz",
            "verify": {"inputs": f"{name}-verify.npz", "seconds": 600},
        }
    project = {"name": "bench", "socs": [SOC], "graphs": graphs, "fail_on": "never"}
    (folder / "qnn.yaml").write_text(json.dumps(project))
    return graphs


def inputs() -> dict[str, tuple[str, Any]]:
    """By graph the name of its input and samples: lines, and pages of them, as each graph's own code prepares them."""
    grey = np.load(LINES)["images"].astype(np.float32) / 255
    upright = np.repeat(grey[:, np.newaxis, np.newaxis], 3, axis=2)  # 12 × 1 × 3 × 48 × 320
    pages = np.ones((len(grey), 1, 3, 320, 320), np.float32)
    for page, first in zip(pages, range(len(grey)), strict=True):
        for row in range(4):
            page[..., row * 80 : row * 80 + 48, :] = upright[(first + row) % len(grey)]
    mean, deviation = (
        np.array(each, np.float32).reshape(3, 1, 1) for each in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    )
    centred = (upright - 0.5) / 0.5
    return {
        "classifier": ("x", np.concatenate([centred, centred[..., ::-1, ::-1]])[..., :192]),
        "recogniser": ("x", centred),
        "detector": ("x", (pages - mean) / deviation),
        "yolo": ("images", pages),
    }


def emulator_alone(output: Path, entry: manifest.Entry) -> float:
    """Wall seconds of loading a binary and running it, in a warm process and with nothing else."""
    job = (str(output / entry.context_model), str(output / entry.graph / "reference.npz"), entry.soc_id)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.map(warm, [None])
        return pool.map(run_alone, [job])[0]


def warm(_: None) -> None:
    """Load the provider; all that it says goes nowhere."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    from qnnci.toolchain import ort

    ort.versions()


def run_alone(job: tuple[str, str, int]) -> float:
    from qnnci.arrays import load_samples
    from qnnci.toolchain.ort import Emulator

    context_model, reference, soc_id = job
    feeds = [feed for feed, _ in load_samples(Path(reference))]
    started = time.monotonic()
    emulator = Emulator(Path(context_model), soc_id=soc_id)
    for feed in feeds:
        emulator.run(feed)
    return time.monotonic() - started
