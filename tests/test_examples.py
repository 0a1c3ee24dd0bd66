"""The examples, built as a user builds them: real models, the real compiler, the real emulator."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.command import qnnci

from qnnci import manifest
from qnnci.context.read import read_context
from qnnci.files import sha256
from qnnci.soc import find_soc

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

EXAMPLES = Path(__file__).parents[1] / "examples"


def copied(name: str, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / name
    return shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("build"))


@pytest.fixture(scope="module")
def silero(tmp_path_factory):
    folder = copied("silero-vad", tmp_path_factory)
    return folder, qnnci("build", cwd=folder)


def test_silero_vad_comes_out_for_every_chip(silero):
    folder, ended = silero
    assert ended.code == 0, ended.said
    made = manifest.load(folder / "build/manifest.json")
    assert [entry.soc for entry in made.entries] == ["SM8550", "SM8650", "SM8750", "SM8850"]
    assert made.passed
    assert all(entry.passed for entry in made.entries)


def test_the_manifest_says_what_the_binaries_say(silero):
    folder, _ = silero
    for entry in manifest.load(folder / "build/manifest.json").entries:
        binary = folder / "build" / entry.binary
        info, soc = read_context(binary), find_soc(entry.soc)
        graph = info.graphs[0]
        assert (info.soc_id, info.dsp_arch) == (soc.id, soc.arch) == (entry.soc_id, int(entry.dsp_arch[1:]))
        assert (graph.vtcm_bytes, graph.optimization) == (soc.vtcm_mb << 20, 3)
        assert (entry.vtcm_bytes, entry.spill_fill_bytes) == (graph.vtcm_bytes, graph.spill_fill_bytes)
        assert entry.bytes == binary.stat().st_size
        assert entry.sha256 == sha256(binary)
        assert entry.qairt == info.build_id
        assert [tensor.name for tensor in entry.inputs] == ["input", "state"]  # `sr` was folded away
        assert json.loads(binary.with_suffix(".json").read_text()) == entry.model_dump(mode="json")


def test_parity_is_measured_on_the_written_binary(silero):
    folder, _ = silero
    for entry in manifest.load(folder / "build/manifest.json").entries:
        assert entry.parity is not None
        assert entry.parity.runner == "emulator"
        assert entry.parity.samples == 16
        assert set(entry.parity.outputs) == {"output", "stateN"}
        # fp16 is near, and it is not float32: equal numbers would mean that the original was run twice.
        for figures in entry.parity.outputs.values():
            assert figures.snr_db is not None
            assert 10 < figures.snr_db < 100


def test_the_drift_of_silero_in_fp16_is_told_before_any_phone(silero):
    _, ended = silero
    assert ended.said.count("warning parity") == 1  # once for all chips
    assert "vad on SM8550, SM8650, SM8750, SM8850: snr_db must be at least 30: output has" in ended.said


def test_a_phone_finds_its_binary(silero):
    folder, _ = silero
    made = manifest.load(folder / "build/manifest.json")
    device = manifest.device_for(made, "SM8550P")
    assert device is not None
    assert device.binaries == {"vad": "vad/SM8550/vad_fp16_SM8550_v73.bin"}
    assert manifest.device_for(made, "SM7325") is None


def test_a_second_build_does_nothing(silero):
    folder, _ = silero
    before = manifest.load(folder / "build/manifest.json")
    ended = qnnci("build", cwd=folder)
    assert ended.code == 0
    assert " done in " not in ended.said
    after = manifest.load(folder / "build/manifest.json")
    assert {each.state for each in after.stages if each.stage != "source"} == {"cached"}
    assert after.model_copy(update={"stages": before.stages}) == before


def test_another_chip_costs_one_compile_and_no_preparation(silero):
    folder, _ = silero
    ended = qnnci("build", "--soc", "SM8450", "--no-verify", cwd=folder)
    assert ended.code == 0, ended.said
    done = [line.split(" done in")[0] for line in ended.said.splitlines() if " done in " in line]
    assert done == ["vad-SM8450: compile", "vad-SM8450: inspect"]


def test_verify_by_hand_gives_the_figures_of_the_build(silero):
    folder, _ = silero
    entry = manifest.load(folder / "build/manifest.json").entries[0]
    source = entry.source
    shapes = ["--input", "input=1,576", "--input", "state=2,1,128", "--input", "sr:=16000"]
    binary = "build/vad/SM8550/vad_fp16_SM8550_v73.bin"
    ended = qnnci("verify", binary, "--against", source, *shapes, "--samples", "16", "--json", cwd=folder)
    assert ended.code == 0, ended.said
    assert '"samples": 16' in ended.said
    ended = qnnci("verify", binary, "--against", source, *shapes, "--min-snr", "90", cwd=folder)
    assert ended.code == 1
    assert "snr_db must be at least 90" in ended.said


def test_inspect_by_hand(silero):
    folder, _ = silero
    binary = "build/vad/SM8750/vad_fp16_SM8750_v79.bin"
    ended = qnnci("inspect", binary, cwd=folder)
    assert ended.code == 0
    for fact in ("SoC id 69, v79", "VTCM 8.0 MB", "optimisation 3", "state: FLOAT_32 2×1×128"):
        assert fact in ended.said
    told = json.loads(qnnci("inspect", "--json", binary, cwd=folder).said)
    assert told["soc_id"] == 69
    assert told["graphs"][0]["inputs"][0]["shape"] == [1, 576]


def test_pp_ocr_three_graphs_of_one_project(tmp_path_factory):
    folder = copied("pp-ocr", tmp_path_factory)
    ended = qnnci("build", "--soc", "SM8750", cwd=folder)
    assert ended.code == 0, ended.said
    made = manifest.load(folder / "build/manifest.json")
    assert [entry.graph for entry in made.entries] == ["detector", "recogniser", "classifier"]
    assert all(entry.parity and entry.spill_fill_bytes == 0 for entry in made.entries)
    assert set(made.devices[0].binaries) == {"detector", "recogniser", "classifier"}


def test_pp_ocr_by_the_text_that_it_reads(tmp_path_factory):
    folder = copied("pp-ocr", tmp_path_factory)
    lines = np.load(folder / "lines.npz")
    np.savez(folder / "lines.npz", images=lines["images"][:1], texts=lines["texts"][:1])  # ten seconds each
    ended = qnnci("build", "-c", "text.yaml", cwd=folder)
    assert ended.code == 0, ended.said
    (entry,) = manifest.load(folder / "build/manifest.json").entries
    assert entry.task is not None
    assert (entry.task.metric, entry.task.samples, entry.task.cpu, entry.task.value) == ("cer", 1, 0, 0)


def test_the_classifier_for_a_chip_without_fp16(tmp_path_factory):
    folder = copied("pp-ocr", tmp_path_factory)
    ended = qnnci("build", "-c", "quantized.yaml", cwd=folder)
    assert ended.code == 0, ended.said
    assert "warning" not in ended.said
    made = {each.soc: each for each in manifest.load(folder / "build/manifest.json").entries}
    assert made["SM8550"].quantization is None
    assert made["QCS6490"].precision == "w8a16"
    assert made["QCS6490"].quantization.samples == 24
