"""What a worker does for each stage: plain values in, plain values out, files written whole. Child processes only."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.arrays import Arrays, Feeds, load_samples, save_samples
from qnnci.build.adapt import Order, from_binary, to_binary
from qnnci.build.cache import seen_beside
from qnnci.build.calibrate import unpack
from qnnci.build.scratch import filled, fresh
from qnnci.context.info import ContextInfo
from qnnci.files import commit, disk_errors
from qnnci.findings import Finding, plain
from qnnci.model.parity import compare, finite, off_grid
from qnnci.project import Input
from qnnci.rules import finding
from qnnci.toolchain.elf import page_size_findings
from qnnci.toolchain.tools import ANDROID
from qnnci.toolchain.worker import die_with_parent, tool_family

Json = dict[str, Any]


def export_stage(*, command: Json, scratch: str, folder: str, reference: bool) -> Json:
    """The model repository's export command in a venv of its own."""
    from qnnci.build.export_work import run_export

    return run_export(command, Path(scratch), Path(folder), reference=reference)


def compare_stage(*, model: str, reference: str, constants: Json) -> Json:
    """An exported graph on the CPU against what the original model gave."""
    from qnnci.model.exported import compare

    samples, outputs, found = compare(Path(model), Path(reference), constants)
    return {"samples": samples, "outputs": outputs, "findings": plain(found)}


def measure_stage(*, command: Json, scratch: str, folder: str, metric: str) -> Json:
    """A task metric of an exported graph by a command of the repository."""
    from qnnci.build.export_work import run_measure

    return run_measure(command, Path(scratch), Path(folder), metric)


def prepare_stage(*, source: str, folder: str, inputs: Json, simplify: bool) -> Json:
    """Source to static graph: `prepared.onnx` in `folder` unless a finding is an error."""
    from qnnci.model.prepare import prepare
    from qnnci.model.weights import files_beside

    reads = seen_beside(
        files_beside(Path(source)), Path(source).parent
    )  # before they are read: a change meanwhile counts
    found = prepare(Path(source), Path(folder), inputs=_inputs(inputs), simplify=simplify)
    return {"findings": plain(found), "reads": reads}


def check_stage(*, model: str, inputs: Json) -> Json:
    """What is known to be bad or costly on HTP in a graph; also its nodes' names, to lead log lines back to."""
    from qnnci.model.check import check
    from qnnci.model.forecast import forecast
    from qnnci.model.graph import load, walk

    path = Path(model)
    nodes = [node for graph in walk(load(path).graph) for node in graph.node]
    quantized = any(node.op_type in {"QuantizeLinear", "DequantizeLinear"} for node in nodes)
    return {
        "findings": plain(check(path, inputs=_inputs(inputs))),
        "nodes": [node.name for node in nodes],
        "quantized": quantized,
        "forecast": forecast(path),
    }


def reference_stage(
    *,
    source: str,
    model: str,
    out: str,
    inputs: Json,
    given: str,
    original: str,
    calibration: str,
    samples: int,
    seed: int,
) -> Json:
    """Feeds, and what the original computes from them on the CPU, to `out`."""
    from qnnci.model import feeds
    from qnnci.model.exported import feeds_of
    from qnnci.model.reference import Original, specs

    fixed = _inputs(inputs)
    wanted = specs(Path(model))
    found: list[Finding] = []
    made: list[Arrays] = []
    if given:
        made = feeds.load(Path(given), wanted, count=samples)
    elif original:
        made, unfit = feeds_of(Path(original), wanted, count=samples)
        found += [finding("reference-unfit", unfit)] if unfit else []
    told = given or ("the export's reference" if made else f"seeded ({seed})")
    if calibration and not made:
        kept = Feeds(Path(calibration))
        made, told = [kept[index] for index in range(min(samples, len(kept)))], "calibration inputs"
    if not made:
        ranges = {name: each.range for name, each in fixed.items() if each.range}
        made = feeds.seeded(wanted, ranges, count=samples, seed=seed)
    constants = {name: each.value for name, each in fixed.items() if each.value is not None}
    graph = Original(Path(source), constants)
    pairs = [(feed, graph.run(feed)) for feed in made]
    save_samples(Path(out), pairs)
    bad = sorted({name for _, want in pairs for name, array in want.items() if not finite(array)})
    message = "the original itself gives NaN or infinity on the CPU in "
    found += [finding("not-finite", message + ", ".join(bad))] if bad else []
    return {"samples": len(pairs), "inputs": told, "findings": plain(found)}


def compile_stage(
    *, model: str, context_model: str, binary: str, soc_id: int, vtcm_mb: int, optimization: int, fp16: bool
) -> Json:
    """Static graph to context binary on route `ort`."""
    from qnnci.toolchain import ort

    ort.compile_context(
        Path(model),
        Path(context_model),
        Path(binary),
        soc_id=soc_id,
        vtcm_mb=vtcm_mb,
        optimization=optimization,
        fp16=fp16,
    )
    return {}


def examine_stage(*, root: str, version: str, route: str, cache: str) -> Json:
    """Whether the tools of a route start, and know the flags that they will be given; `qnnci sdk doctor` asks more."""
    from qnnci.toolchain.sdk import Sdk
    from qnnci.toolchain.sdk_doctor import ROUTE_TOOLS, check_tool

    sdk = Sdk(Path(root), version)
    python = sdk.tools_python(Path(cache))
    return {"findings": plain([each for tool in ROUTE_TOOLS[route] for each in check_tool(sdk, tool, python)])}


def tool_stage(
    *,
    argv: list[str],
    command_file: str,
    environment: dict[str, str],
    scratch: str,
    folder: str,
    makes: dict[str, str],
    may_make: dict[str, str],
    files: dict[str, str],
    calibration: Json | None = None,
) -> Json:
    """One program of the SDK, run in a scratch folder; what it made is moved to `folder` once it has ended.

    Its output goes to the stage's log. How it ended is told, not judged: exit codes of these tools mislead.
    """
    with fresh(Path(scratch)):
        with disk_errors(Path(scratch)):
            for path, text in files.items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(text, encoding="utf-8")
            if calibration:
                unpack(Path(scratch), **calibration)
        # Beside the log, which holds the tool's own words only: a path in the command could read as one of them.
        with disk_errors(Path(command_file)):
            Path(command_file).write_text(f"{shlex.join(argv)}\n", encoding="utf-8")
        # The parent ends our whole process group; PDEATHSIG is for the case that only this worker is killed.
        with tool_family():
            tool = subprocess.Popen(
                argv,
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **environment},
                preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - a worker has one thread
            )
            code = tool.wait()
        made = {path: name for path, name in {**makes, **may_make}.items() if filled(Path(path))}
        cut = [name for path, name in made.items() if _cut_short(Path(path))]
        made = {path: name for path, name in made.items() if name not in cut}
        with disk_errors(Path(folder)):
            for path, name in made.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                commit(Path(path), Path(folder) / name)
    android = [Path(folder) / name for name in made.values() if name.startswith(f"{ANDROID}/")]
    found = [each for library in android for each in page_size_findings(library)]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    missing = sorted(set(makes.values()) - set(made.values()))
    return {"exit_code": code, "missing": missing, "cut": cut, "peak_mb": peak, "findings": plain(found)}


def _cut_short(path: Path) -> bool:
    """Whether a DLC, which is a zip, lacks the list of contents at its end."""
    if path.suffix != ".dlc":
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" and not zipfile.is_zipfile(file)


def inspect_stage(*, binary: str, context_model: str) -> Json:
    """What the written binary says of itself; an EPContext model around it where `context_model` names one."""
    from qnnci.context.read import read_context

    info = read_context(Path(binary))
    if context_model:
        from qnnci.context.ep_context import write_ep_context

        write_ep_context(info, Path(binary).name, Path(context_model))
    return {"info": info.to_json()}


def verify_stage(
    *,
    context_model: str,
    reference: str,
    info: Json,
    soc_id: int,
    seconds: float,
    order: Order,
    grids: Json,
    axes: Json,
) -> Json:
    """The written binary in the emulator against the original's outputs; no feed is begun after `seconds`."""
    from qnnci.context.ep_context import refuse_other_binary
    from qnnci.toolchain.ort import Emulator

    refuse_other_binary(Path(context_model), Path(context_model).name.replace("_ctx.onnx", ".bin"))
    runner, graph = Emulator(Path(context_model), soc_id=soc_id), ContextInfo.from_json(info).graphs[0]
    started = time.monotonic()
    wants: list[Arrays] = []
    gots: list[Arrays] = []
    for feed, want in load_samples(Path(reference)):
        if gots and time.monotonic() - started > seconds:
            break
        # An input that nothing reads is in the EPContext model, but not in the binary.
        got = runner.run({**feed, **to_binary(feed, graph.inputs, order, axes)})
        gots.append(from_binary(got, want, graph.outputs, order, axes))
        wants.append(want)
    outputs, found = compare(wants, gots)
    found += off_grid(gots, grids)
    return {"samples": len(gots), "outputs": outputs, "findings": plain(found)}


def metric_stage(*, argv: list[str], base: str, report: str, metric: str, turned: Json) -> Json:
    """The user's own command with a graph or a binary, and the figure that it reports."""
    from qnnci.build.task import measure

    return measure(argv, Path(base), Path(report), metric, turned)


def layers_stage(*, prepared: str, compiled: str, reference: str, samples: int, chip: Json | None, fine: float) -> Json:
    """Every layer of a graph against the CPU; without a chip, as fp16 would have it."""
    from qnnci.build.layers import Chip, measure

    feeds = [feed for feed, _ in load_samples(Path(reference))[:samples]]
    layers = measure(Path(prepared), Path(compiled), feeds, Chip(**chip) if chip else None, fine)
    return {"layers": [each.to_json() for each in layers], "samples": len(feeds)}


def doctor_stage(*, folder: str, soc_id: int, vtcm_mb: int) -> Json:
    """Compile a graph of one op, read the binary back and run it; what the binary says of itself."""
    import onnx

    from qnnci.context.read import read_context
    from qnnci.toolchain.ort import Emulator, compile_context

    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    ports = [make.make_tensor_value_info(name, kind, [1, 8]) for name in ("x", "y")]
    graph = make.make_graph([make.make_node("Relu", ["x"], ["y"])], "tiny", ports[:1], ports[1:])
    model, context_model, binary = (Path(folder) / name for name in ("tiny.onnx", "tiny_ctx.onnx", "tiny.bin"))
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8), str(model))
    compile_context(model, context_model, binary, soc_id=soc_id, vtcm_mb=vtcm_mb, optimization=3, fp16=True)
    got = Emulator(context_model, soc_id=soc_id).run({"x": np.full((1, 8), -1, np.float32)})["y"]
    if got.any():
        raise RuntimeError(f"Relu of -1 came out as {got.ravel()[0]} in the emulator")
    return read_context(binary).to_json()


def _inputs(data: Json) -> dict[str, Input]:
    return {name: Input.model_validate(each) for name, each in data.items()}
