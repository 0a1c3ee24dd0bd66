"""`qnnci build` against the same sessions alone, and against a loop of fresh processes. No verification."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

from tests.bench.graphs import GRAPHS, SOCS, WHEEL, project
from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed


def measure(folder: Path) -> list[Figure]:
    cores = os.cpu_count() or 1
    (folder / "qnn.yaml").write_text(json.dumps(project()))  # YAML is a superset of JSON
    build_all = qnnci("build", "--no-verify")
    timed([*build_all, "--graph", "classifier", "--output", "warm"], folder)  # downloads, page cache
    build, again = timed(build_all, folder), timed(build_all, folder)
    raw, loop = raw_loop(folder, cores), plain_loop(folder)
    ratio, gain, compiles = build.seconds / raw, loop / build.seconds, again.output.count(": compile ")
    what = f"{len(GRAPHS)} graphs × {len(SOCS)} SoCs, {cores} cores"
    return [
        Figure(
            f"build / raw sessions, {what}",
            f"{build.seconds:.1f} s / {raw:.1f} s = {ratio:.2f}",
            "≤ 1.10",
            met=ratio <= 1.1,
        ),
        Figure(
            "plain loop of fresh processes / build",
            f"{loop:.1f} s / {build.seconds:.1f} s = {gain:.1f}",
            "≥ 3",
            met=gain >= 3,
        ),
        Figure(
            "second build, nothing changed",
            f"{again.seconds:.2f} s, {compiles} compiles",
            "< 1 s, 0",
            met=again.seconds < 1 and not compiles,
        ),
        Figure("peak memory of the parent", f"{build.peak_mb} MB", "flat", met=build.peak_mb < 200),
    ]


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
