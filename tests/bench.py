"""`make bench`: what the project promises about speed and memory, measured on real graphs. Never a test.

Every figure is printed with the goal it stands against, met or not. The compile figures are of the host's compiler.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support import log_mix

SOCS = ("SM8450", "SM8475", "SM8550", "SM8650", "SM8750", "SM8850", "QCS8550", "QCS9100")
GRAPHS = {
    "detector": ("ch_PP-OCRv4_det_infer.onnx", "1,3,640,640"),
    "recogniser": ("ch_PP-OCRv4_rec_infer.onnx", "1,3,48,320"),
    "classifier": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", "1,3,48,192"),
}
WHEEL = "pypi://rapidocr-onnxruntime==1.4.4/rapidocr_onnxruntime/models"


@dataclass(frozen=True)
class Run:
    """A finished program: wall seconds, and peak resident MB of itself and of it with all its children."""

    seconds: float
    peak_mb: int
    tree_mb: int
    output: str


def timed(argv: Sequence[str], cwd: Path, ends: Sequence[int] = (0,)) -> Run:
    """Run a program and watch its memory; an exit code that is not in `ends` ends the bench with its output."""
    started, peak, tree = time.monotonic(), 0, 0
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(argv, cwd=cwd, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "CI": "1"})
        watched = psutil.Process(child.pid)
        while child.poll() is None:
            with contextlib.suppress(psutil.Error):  # it may end while it is looked at
                own = watched.memory_info().rss >> 20
                peak = max(peak, own)
                tree = max(tree, own + sum(each.memory_info().rss >> 20 for each in watched.children(recursive=True)))
            time.sleep(0.01)
        seconds = time.monotonic() - started
        output.seek(0)
        said = output.read()
    if child.returncode not in ends:
        sys.exit(f"{' '.join(argv)} ended with {child.returncode}:\n{said}")
    return Run(seconds, peak, tree, said)


def qnnci(*args: str) -> list[str]:
    return [sys.executable, "-m", "qnnci", *args]


def project(folder: Path) -> None:
    graphs = {
        name: {"source": f"{WHEEL}/{file}", "inputs": {"x": list(map(int, shape.split(",")))}}
        for name, (file, shape) in GRAPHS.items()
    }
    # YAML is a superset of JSON.
    (folder / "qnn.yaml").write_text(json.dumps({"name": "bench", "socs": SOCS, "graphs": graphs}))


def raw_compile(job: tuple[str, int, int, str]) -> float:
    """One session as anybody would write it: seconds of its creation, which writes the context binary."""
    import onnxruntime as ort
    import onnxruntime_qnn as qnn

    model, soc_id, vtcm_mb, out = job
    if "QNNExecutionProvider" not in {device.ep_name for device in ort.get_ep_devices()}:
        ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    for key, value in {"ep.context_enable": "1", "ep.context_embed_mode": "0", "ep.context_file_path": out}.items():
        options.add_session_config_entry(key, value)
    devices = [device for device in ort.get_ep_devices() if device.ep_name == "QNNExecutionProvider"][:1]
    settings = {"htp_graph_finalization_optimization_mode": "3", "enable_htp_fp16_precision": "1"}
    settings |= {"backend_path": qnn.get_qnn_htp_path(), "soc_model": str(soc_id), "vtcm_mb": str(vtcm_mb)}
    options.add_provider_for_devices(devices, settings)
    started = time.monotonic()
    ort.InferenceSession(model, options)
    return time.monotonic() - started


def raw_loop(folder: Path, cores: int) -> float:
    """Wall seconds of the same sessions on the same cores, longest first, with warm processes and nothing else."""
    from qnnci.soc import find_soc

    jobs = []
    for graph in GRAPHS:  # in falling order of their compile time
        for name in SOCS:
            soc = find_soc(name)
            model = str(folder / "build" / graph / "prepared.onnx")
            jobs.append((model, soc.id, soc.vtcm_mb, str(folder / f"raw_{graph}_{name}.onnx")))
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.map(abs, range(cores))  # the processes are up before the clock starts
        started = time.monotonic()
        list(pool.imap_unordered(raw_compile, jobs, chunksize=1))
        return time.monotonic() - started


def plain_loop(folder: Path) -> float:
    """Wall seconds of a shell loop's way: a fresh process for each graph and SoC that prepares and compiles."""
    started = time.monotonic()
    for graph, (file, shape) in GRAPHS.items():
        for soc in SOCS:
            model = ["--model", f"{WHEEL}/{file}", "--input", f"x={shape}", "--soc", soc]
            timed(qnnci("build", *model, "--no-verify", "--jobs", "1", "--output", f"loop/{graph}-{soc}"), folder)
    return time.monotonic() - started


def four_gigabytes(folder: Path) -> Path:
    """A model of 256 MatMuls whose 4 GB of weights are a hole in a sparse file."""
    import onnx

    side, count = 2048, 256
    size = side * side * 4
    graph = onnx.GraphProto(name="large")
    for index in range(count):
        weight = graph.initializer.add(name=f"w{index}", dims=[side, side], data_type=onnx.TensorProto.FLOAT)
        weight.data_location = onnx.TensorProto.EXTERNAL
        for key, value in {"location": "large.data", "offset": index * size, "length": size}.items():
            weight.external_data.add(key=key, value=str(value))
        graph.node.add(op_type="MatMul", name=f"m{index}", input=[f"x{index}", f"w{index}"], output=[f"x{index + 1}"])
    for ports, name in ((graph.input, "x0"), (graph.output, f"x{count}")):
        ports.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, side]))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "large.onnx"))
    with (folder / "large.data").open("wb") as data:
        data.truncate(size * count)
    return folder / "large.onnx"


def read_logs(folder: Path) -> None:
    """The log reader on half a gigabyte, beside grep with the patterns that it looks for."""
    log, patterns = folder / "large.log", folder / "patterns"
    log_mix.write(log, 500_000_000)
    patterns.write_text(log_mix.for_grep())
    size = log.stat().st_size / 1e6
    read = timed([*qnnci("logs", str(log), "--format", "json", "--tool", "qairt-converter")], folder, ends=(0, 1))
    grep = timed(["env", "LC_ALL=C", "grep", "-c", "-i", "-E", "-f", str(patterns), str(log)], folder)
    ours, theirs = size / read.seconds, size / grep.seconds
    told("log of 500 MB", f"{ours:.0f} MB/s", "≥ 30 MB/s", met=ours >= 30)
    told("grep -c -E with the same patterns / log reader", f"{theirs:.0f} MB/s = {theirs / ours:.1f}", "–", met=True)
    told("log of 500 MB, memory", f"{read.peak_mb} MB", "flat", met=read.peak_mb < 100)


def told(what: str, figure: str, goal: str, *, met: bool) -> None:
    print(f"{what:58} {figure:>26}   goal {goal:10} {'met' if met else 'MISSED'}", flush=True)


def main() -> None:
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="qnnci-bench-") as name:
        folder = Path(name)
        project(folder)
        timed(
            qnnci("build", "--no-verify", "--graph", "classifier", "--output", "warm"), folder
        )  # downloads, page cache
        build = timed(qnnci("build", "--no-verify"), folder)
        again = timed(qnnci("build", "--no-verify"), folder)
        raw = raw_loop(folder, cores)
        loop = plain_loop(folder)
        large = four_gigabytes(folder)
        check = timed(qnnci("check", str(large), "--fail-on", "never"), folder)
        start = min(timed(qnnci("--help"), folder).seconds for _ in range(5))
        chips = min(timed(qnnci("socs"), folder).seconds for _ in range(5))
        compiles = again.output.count(": compile ")
        read_logs(folder)
    print(f"{len(GRAPHS)} graphs × {len(SOCS)} SoCs on {cores} cores, no verification")
    ratio, gain = build.seconds / raw, loop / build.seconds
    told(
        "build / raw sessions on the same cores",
        f"{build.seconds:.1f} s / {raw:.1f} s = {ratio:.2f}",
        "≤ 1.10",
        met=ratio <= 1.1,
    )
    told(
        "plain loop of fresh processes / build",
        f"{loop:.1f} s / {build.seconds:.1f} s = {gain:.1f}",
        "≥ 3",
        met=gain >= 3,
    )
    told(
        "second build, nothing changed",
        f"{again.seconds:.2f} s, {compiles} compiles",
        "< 1 s, 0",
        met=again.seconds < 1 and not compiles,
    )
    told("peak memory of the parent", f"{build.peak_mb} MB", "flat", met=build.peak_mb < 200)
    told("check of a 4 GB model, time", f"{check.seconds:.2f} s", "< 2 s", met=check.seconds < 2)
    told("check of a 4 GB model, memory with its child", f"{check.tree_mb} MB", "< 300 MB", met=check.tree_mb < 300)
    told("qnnci --help", f"{start:.2f} s", "< 0.3 s", met=start < 0.3)
    told("qnnci socs", f"{chips:.2f} s", "< 0.3 s", met=chips < 0.3)


if __name__ == "__main__":
    main()
