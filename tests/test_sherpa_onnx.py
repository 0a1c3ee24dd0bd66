"""The examples for sherpa-onnx hold every QNN export of that project: graphs, options, flags and chips.

The table is written down here once more, by its own rules: from what sherpa-onnx tells each tool, not from our code.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from support import graphs
from support.command import qnnci

from qnnci import manifest
from qnnci.build.sdk_route import SdkRoute
from qnnci.context.read import read_context
from qnnci.plan import plan
from qnnci.process import run
from qnnci.project_file import ProjectFile, load
from qnnci.ship.names import archive_name, parts_of
from qnnci.ship.sherpa_contract import CONTRACTS
from qnnci.ship.sherpa_onnx import NAME, split
from qnnci.toolchain.sdk import COMPLETE, Sdk, venv_folder

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples/sherpa-onnx"

T11 = (5, 8, 10, 13, 15, 18, 20, 23, 25, 28, 30)  # seconds
N12 = (3, *T11)
CHIPS = {  # soc_id, dsp_arch, vtcm_mb; sherpa-onnx has 35 for SM8350, which is SM7325
    "SA8255": (52, "v73", 8),
    "SA8295": (39, "v68", 8),
    "SM8350": (30, "v68", 4),
    "SM8450": (36, "v69", 8),
    "SM8475": (42, "v69", 8),
    "SM8550": (43, "v73", 8),
    "SM8650": (57, "v75", 8),
    "SM8750": (69, "v79", 8),
    "SM8850": (87, "v81", 8),
    "QCS9100": (77, "v73", 8),
}
FLOAT_CHIPS = CHIPS.keys() - {"SM8350", "SA8295"}  # sherpa-onnx leaves out SM8350 only, but neither has float

HOST, ANDROID = "x86_64-linux-clang", "aarch64-android"
PAGES = "-Wl,-z,max-page-size=16384"
ALWAYS = {"--act_bitwidth 16", "--bias_bitwidth 32"}
F: frozenset[str] = frozenset()
F16 = frozenset({"--float_bitwidth 16"})


@dataclass(frozen=True)
class Expected:
    """One graph of one export; `listed` is its calibration list where it is quantized."""

    file: str
    graph: str
    symbol: str
    source: str
    flags: frozenset[str]
    listed: str = ""

    @property
    def chips(self) -> set[str]:
        return set(CHIPS if self.listed else FLOAT_CHIPS)


def q(file: str, graph: str, symbol: str, source: str, listed: str, *flags: str) -> Expected:
    return Expected(file, graph, symbol, source, frozenset({"--use_native_input_files", *flags}), listed)


def from_lengths() -> Iterator[Expected]:
    """Those that have their length in the graphs' names, and are told what their inputs are."""
    ntf = ("--input_dtype x float32", "--input_layout x NTF")
    features = "--input_dtype encoder_out float32"
    decoder = (features, "--input_dtype acoustic_embedding float32", "--input_dtype mask int32")
    models = [
        *(("sense-voice", of, t) for of in ("FunASR", "WSYue-ASR") for t in T11),
        *(("zipformer-ctc", of, t) for of, lengths in (("20250703", T11), ("20251222", (5,))) for t in lengths),
    ]
    told = {
        "sense-voice": ("--out_node logits", "--input_dtype prompt int32", *ntf),
        "zipformer-ctc": ("--out_node log_probs", *ntf),
    }
    for file, of, t in models:
        at = f"{of}/{t}"
        symbol = f"model_{t}_seconds_quantized"
        yield q(file, f"{of}-{t}s", symbol, f"{at}/model-{t}-seconds.onnx", f"{at}/input_list.txt", *told[file])
    for of in ("FunASR", "WSChuan-ASR"):
        for t in T11:
            for m, flags in (
                ("encoder", ("--out_node encoder_out", *ntf)),
                ("predictor", (features,)),
                ("decoder", decoder),
            ):
                source, listed = f"{of}/{t}/{m}-{t}-seconds.onnx", f"{of}/{t}/{m}-input-list.txt"
                yield q("paraformer", f"{of}-{t}s-{m}", f"{m}_{t}_seconds_quantized", source, listed, *flags)


def all_float() -> Iterator[Expected]:
    sizes = ("tiny", "base", "small", "medium")
    whispers = (*sizes, *(f"{size}.en" for size in sizes), "distil-small.en", "distil-medium.en", "medium-aishell")
    for m in ("encoder", "decoder", "joiner"):
        source = f"model-files/32/{m}-epoch-99-avg-1.onnx"
        yield Expected("streaming-zipformer", f"chunk-32-{m}", m, source, F)
        for punct in ("punct", "no-punct"):
            for ms in (160, 480, 960, 1920):
                yield Expected("x-asr", f"{punct}-{ms}ms-{m}", m, f"{ms}/{punct}/{m}.onnx", F)
        for t in T11:
            yield Expected("reazonspeech", f"{t}s-{m}", m, f"{t}/{m}.onnx", F)
        for model in whispers if m != "joiner" else ():
            yield Expected("whisper", f"{model}-{m}", m, f"{model}/{m}.onnx", F)


def mixed() -> Iterator[Expected]:
    tongues = ("ar", "ko", "zh", "vi", "uk")
    for model in ("moonshine-tiny", "moonshine-base", *(f"moonshine-tiny-{tongue}" for tongue in tongues)):
        for t in (5, 8, 10):
            at = f"{model}-{t}s"
            yield q("moonshine", f"{at}-encoder", "encoder", f"{at}/encoder.onnx", f"{at}/encoder.txt")
            yield Expected("moonshine", f"{at}-decoder", "decoder", f"{at}/decoder.onnx", F)
    for t in N12:
        at = f"parakeet-ctc-0.6b-{t}"
        yield q("parakeet-ctc", f"{at}s", "model", f"{at}/model.onnx", f"{at}/model.txt")
        for model in ("parakeet-tdt_ctc-110m", "parakeet-tdt_ctc-0.6b-ja"):
            name, at = f"{model}-{t}s", f"{model}-{t}-ctc"
            yield q("parakeet-tdt-ctc", f"{name}-ctc", "model", f"{at}/model.onnx", f"{at}/model.txt")
            name, at = f"{name}-transducer", f"{model}-{t}-transducer"
            yield q("parakeet-tdt-ctc", f"{name}-encoder", "encoder", f"{at}/encoder.onnx", f"{at}/encoder.txt")
            for m in ("decoder", "joiner"):
                yield Expected("parakeet-tdt-ctc", f"{name}-{m}", m, f"{at}/{m}.onnx", F)
    models = [
        *(("parakeet-tdt", f"parakeet-tdt-0.6b-{version}", t, "s") for version in ("v2", "v3") for t in N12),
        *(("nemotron-en", "nemotron-speech-streaming-en-0.6b", ms, "ms") for ms in (80, 160, 560, 1120)),
        *(("nemotron-3.5", "nemotron-3.5-asr-streaming-0.6b", ms, "ms") for ms in (80, 160, 320, 560, 1120)),
    ]
    for file, model, t, unit in models:
        at, name = f"{model}-{t}", f"{model}-{t}{unit}"
        for m in ("encoder", "joiner"):
            yield q(file, f"{name}-{m}", m, f"{at}/{m}.onnx", f"{at}/{m}.txt")
        yield Expected(file, f"{name}-decoder", "decoder", f"{at}/decoder.onnx", F16)


TABLE = [*from_lengths(), *all_float(), *mixed()]
EXPORTS = {  # how many exports, and graphs of each
    "sense-voice": (2 * 11, 1),
    "zipformer-ctc": (11 + 1, 1),
    "paraformer": (2 * 11, 3),
    "streaming-zipformer": (1, 3),
    "x-asr": (4 * 2, 3),
    "reazonspeech": (11, 3),
    "whisper": (11, 2),
    "moonshine": (7 * 3, 2),
    "parakeet-ctc": (12, 1),
    "parakeet-tdt-ctc": (2 * 12 * 2, 2),  # one for the CTC branch, three for the transducer
    "parakeet-tdt": (2 * 12, 3),
    "nemotron-en": (4, 3),
    "nemotron-3.5": (5, 3),
}
each_file = pytest.mark.parametrize("file", EXPORTS)
each_graph = pytest.mark.parametrize("want", TABLE, ids=lambda want: f"{want.file}:{want.graph}")


@dataclass(frozen=True)
class Desk:
    """The examples beside calibration lists of one sample each, and the names that an SDK's files have."""

    folder: Path
    sdk: Sdk
    cache: Path

    def project(self, file: str) -> ProjectFile:
        return _loaded(self.folder / f"{file}.yaml")

    def route(self, file: str) -> SdkRoute:
        return SdkRoute(self.project(file), self.sdk, self.cache)

    def folder_of(self, want: Expected) -> Path:
        project = self.project(want.file)
        return project.base / project.project.output / want.graph

    def command(self, tool: str) -> list[str]:
        path = str(self.sdk.root / "bin" / HOST / tool)
        return [path] if tool == GENERATOR else [str(venv_folder(self.sdk.version, self.cache) / "bin/python"), path]


CONVERTER, LIBRARIAN, GENERATOR = "qnn-onnx-converter", "qnn-model-lib-generator", "qnn-context-binary-generator"
_loaded = cache(load)


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    root = tmp_path_factory.mktemp("sherpa-onnx")
    sdk = Sdk(root / "2.40.0.251030", "2.40.0.251030")
    python = "#!/usr/bin/env python3\n"
    files = {f"bin/{HOST}/{CONVERTER}": python, f"bin/{HOST}/{LIBRARIAN}": python, f"bin/{HOST}/{GENERATOR}": "ELF"}
    files |= {f"lib/{HOST}/{name}": "" for name in ("libQnnHtp.so", "libQnnHtpNetRunExtensions.so")}
    files |= {f"lib/hexagon-{arch}/unsigned/libQnnHtp.so": "" for _, arch, _ in CHIPS.values()}
    for name, text in files.items():
        _write(sdk.root / name, text)
    _write(venv_folder(sdk.version, root) / COMPLETE, "")
    folder = shutil.copytree(EXAMPLES, root / "project", ignore=shutil.ignore_patterns("build"))
    for want in TABLE:
        if want.listed:
            _write(folder / want.listed, "a.raw b.raw\n")
            for sample in ("a.raw", "b.raw"):
                _write((folder / want.listed).with_name(sample), "")
    return Desk(folder, sdk, root)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def said(argv: list[str], command: list[str]) -> list[str]:
    """Arguments as one text for each flag with its values: the tools do not mind the order of flags."""
    assert argv[: len(command)] == command
    groups: list[str] = []
    for argument in argv[len(command) :]:
        if argument.startswith("-"):
            groups.append(argument)
        else:
            groups[-1] += f" {argument}"
    return sorted(groups)


# what there is


def test_there_is_a_file_for_each_family() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == EXPORTS.keys() == {want.file for want in TABLE}


@each_file
def test_every_export_is_there(file: str, desk: Desk) -> None:
    project = desk.project(file).project
    exports, graphs_of_one = EXPORTS[file]
    assert len({Path(graph.source).parent for graph in project.graphs.values()}) == exports
    assert len(project.graphs) == exports * graphs_of_one
    assert {name: graph.source for name, graph in project.graphs.items()} == {
        want.graph: want.source for want in TABLE if want.file == file
    }


@each_file
def test_each_is_made_for_its_chips_and_nothing_is_refused(file: str, desk: Desk) -> None:
    route = desk.route(file)
    chips: dict[str, set[str]] = {}
    for target in plan(route.project):
        assert target.refusal is None
        assert route.refusals(target, quantized=False) == []
        chips.setdefault(target.graph, set()).add(target.soc.name)
    assert chips == {want.graph: want.chips for want in TABLE if want.file == file}


@each_file
def test_the_route_and_the_sdk(file: str, desk: Desk) -> None:
    project = desk.project(file).project
    assert (project.route, project.sdk.version) == ("model-lib", "2.40.0.251030")


def test_files_do_not_write_into_each_others_folder(desk: Desk) -> None:
    assert len({desk.project(file).project.output for file in EXPORTS}) == len(EXPORTS)


def test_editors_take_them() -> None:
    """With placeholders, as they stand: what a schema says of a text has to hold before these are filled in."""
    tool = Path(sys.executable).with_name("check-jsonschema")
    files = sorted(map(str, EXAMPLES.glob("*.yaml")))
    done = run([str(tool), "--schemafile", str(ROOT / "qnn.schema.json"), *files], timeout=60)
    assert done.code == 0, done.output


# what the tools are told


def calls(desk: Desk, want: Expected) -> dict[str, dict[str, Any]]:
    """Arguments of each stage that is done once for all chips."""
    route = desk.route(want.file)
    precisions = {target.precision for target in plan(route.project, [want.graph])}
    assert precisions == {"w8a16" if want.listed else "fp16"}
    made = route.conversions(want.graph, precisions.pop(), desk.folder_of(want), {}, {})
    return {call.stage: call.arguments for call in made}


@each_graph
def test_the_converter(want: Expected, desk: Desk) -> None:
    call = calls(desk, want)["convert"]
    room = Path(call["scratch"])
    told = {f"--input_network {desk.folder_of(want)}/prepared.onnx", f"--output_path {room}/{want.symbol}.cpp"}
    if want.listed:
        (path, text), *others = call["files"].items()
        told.add(f"--input_list {path}")
        samples = (desk.folder / want.listed).parent
        assert (text, others) == (f"{samples}/a.raw {samples}/b.raw\n", [])
    assert said(call["argv"], desk.command(CONVERTER)) == sorted({*ALWAYS, *want.flags, *told})
    assert call["makes"] == {f"{room}/{want.symbol}.cpp": f"{want.symbol}.cpp"}


@each_graph
def test_the_model_libraries(want: Expected, desk: Desk) -> None:
    stages = calls(desk, want)
    assert list(stages) == ["convert", f"library-{HOST}", f"library-{ANDROID}"]
    made = Path(stages["convert"]["folder"]) / want.symbol
    for target in (HOST, ANDROID):
        call = stages[f"library-{target}"]
        told = {f"-c {made}.cpp", f"-b {made}.bin", f"-o {call['scratch']}", f"-t {target}", f"-l {want.symbol}"}
        assert said(call["argv"], desk.command(LIBRARIAN)) == sorted(told)
        assert list(call["makes"].values()) == [f"{target}/lib{want.symbol}.so"]
        assert [PAGES in value for value in call["environment"].values()].count(True) == (target == ANDROID)
    assert stages[f"library-{ANDROID}"]["environment"]["MAKEFLAGS"] == f"APP_LDFLAGS={PAGES}"


@each_graph
def test_the_context_generator_and_its_config_files_for_each_chip(want: Expected, desk: Desk) -> None:
    route, library = desk.route(want.file), calls(desk, want)[f"library-{HOST}"]
    model = f"{library['folder']}/{next(iter(library['makes'].values()))}"
    libraries = desk.sdk.root / "lib" / HOST
    for target in plan(route.project, [want.graph]):
        call = route.compile(target, desk.folder_of(want) / target.soc.name, {}, {}, ()).arguments
        room = call["scratch"]
        soc_id, dsp_arch, vtcm_mb = CHIPS[target.soc.name]
        flags = dict(group.split(" ", 1) for group in said(call["argv"], desk.command(GENERATOR)))
        outer = json.loads(call["files"].pop(flags.pop("--config_file")))["backend_extensions"]
        assert flags == {
            "--model": model,
            "--backend": f"{libraries}/libQnnHtp.so",
            "--output_dir": room,
            "--binary_file": f"{want.graph}_{'w8a16' if want.listed else 'fp16'}_{target.soc.name}_{dsp_arch}",
            "--log_level": "info",
        }
        assert call["makes"] == {f"{room}/{flags['--binary_file']}.bin": f"{flags['--binary_file']}.bin"}
        inner = json.loads(call["files"].pop(outer.pop("config_file_path")))
        assert outer == {"shared_library_path": f"{libraries}/libQnnHtpNetRunExtensions.so"}
        assert inner == {
            "graphs": [{"graph_names": [want.symbol], "vtcm_mb": vtcm_mb, "O": 3}],
            "devices": [
                {
                    "soc_id": soc_id,
                    "dsp_arch": dsp_arch,
                    "cores": [{"core_id": 0, "perf_profile": "burst", "rpc_control_latency": 200}],
                }
            ],
        }
        assert call["files"] == {}


# one of them built


def test_one_graph_from_its_file_to_its_binary(tmp_path: Path) -> None:
    """On the stand-in SDK, with a graph that has the inputs and outputs of the real one and little between them."""
    pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")
    from sdk.make import VERSION, make, make_compilers

    folder, venv = tmp_path / "project", venv_folder(VERSION, tmp_path)
    _write(folder / "zipformer-ctc.yaml", (EXAMPLES / "zipformer-ctc.yaml").read_text(encoding="utf-8"))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="matmul"),
        helper.make_node("LogSoftmax", ["m"], ["log_probs"], name="log_softmax", axis=-1),
    ]
    source = folder / "20251222/5/model-5-seconds.onnx"
    graphs.save(source, nodes, {"x": [1, 24, 80]}, {"log_probs": [1, 24, 16]}, {"w": graphs.weight(80, 16)})
    for index in range(4):
        sample = np.random.default_rng(index).uniform(-1, 1, (1, 24, 80)).astype(np.float32)
        sample.tofile(source.with_name(f"{index}.raw"))
    _write(source.with_name("input_list.txt"), "".join(f"{index}.raw\n" for index in range(4)))
    _write(venv / COMPLETE, "")
    (venv / "bin").mkdir()
    (venv / "bin/python").symlink_to(sys.executable)
    path = f"{make_compilers(tmp_path)}:{os.environ['PATH']}"
    ended = qnnci(
        *("build", "-c", "zipformer-ctc.yaml", "--graph", "20251222-5s", "--soc", "SM8850"),
        cwd=folder,
        QNN_SDK_ROOT=str(make(tmp_path)),
        QNNCI_CACHE=str(tmp_path),
        PATH=path,
    )
    assert ended.code == 0, ended.said
    output = folder / "build/zipformer-ctc"
    (entry,) = manifest.load(output / "manifest.json").entries
    assert entry.graph_name == "model_5_seconds_quantized"
    info = read_context(output / entry.binary)
    assert (info.soc_id, info.dsp_arch) == (87, 81)
    assert [(tensor.name, tensor.shape, tensor.dtype) for tensor in info.graphs[0].inputs] == [
        ("x", (1, 24, 80), "UFIXED_POINT_16")
    ]
    assert [(tensor.name, tensor.shape) for tensor in info.graphs[0].outputs] == [("log_probs", (1, 24, 16))]
    for target in (HOST, ANDROID):
        assert (output / f"20251222-5s/w8a16/{target}/libmodel_5_seconds_quantized.so").is_file()


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ("moonshine", "moonshine-tiny-5s"),
        ("whisper", "whisper-tiny.en"),
        ("parakeet-tdt", "parakeet-tdt-0.6b-v2-3s-transducer"),
        ("parakeet-ctc", "parakeet-ctc-0.6b-3s"),
        ("sense-voice", "5-seconds-sense-voice-zh-en-ja-ko-yue-FunASR-int8"),
        ("zipformer-ctc", "5-seconds-zipformer-ctc-zh-20251222-int8"),
        ("streaming-zipformer", "streaming-zipformer-transducer-zh-en-2023-02-20-chunk-size-32"),
        ("nemotron-en", "nemotron-speech-streaming-en-0.6b-80ms"),
    ],
)
def test_archives_are_called_as_sherpa_onnx_has_them(example: str, name: str) -> None:
    project = load(EXAMPLES / f"{example}.yaml").project
    made = set()
    for graph in project.graphs:
        group, role = split(graph)
        assert project.bundle.family is not None
        assert role in CONTRACTS[project.bundle.family]
        parts = parts_of(project.bundle.groups, group) if project.bundle.groups else {}
        made.add(archive_name(project.bundle.name or NAME, {"soc": "SM8850", "group": group, **(parts or {})}))
    assert f"sherpa-onnx-qnn-SM8850-binary-{name}" in made
