"""Both SDK routes from model to gated binary, on the stand-in SDK: its tools are doubles, the binaries are real."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sdk.make import VERSION, make, make_compilers
from support import graphs
from support.command import environment, project, qnnci

from qnnci import manifest
from qnnci.context.read import read_context
from qnnci.toolchain.pool import resident_mb
from qnnci.toolchain.sdk import COMPLETE, venv_folder

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    """An installed SDK, its tools' Python, and compilers: what `qnnci` finds by its environment."""
    root = tmp_path_factory.mktemp("sdk")
    cache = root / "cache"
    python = venv_folder(VERSION, cache) / "bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (venv_folder(VERSION, cache) / COMPLETE).touch()
    return {
        "QNN_SDK_ROOT": str(make(root)),
        "QNNCI_CACHE": str(cache),
        "PATH": f"{make_compilers(root)}:{os.environ['PATH']}",
    }


@pytest.fixture
def folder(tmp_path):
    """A CNN and eight calibration samples, channel last as qnn-onnx-converter wants them."""
    graphs.cnn(tmp_path / "cnn.onnx")
    (tmp_path / "calib").mkdir()
    for index in range(8):
        sample = np.random.default_rng(index).uniform(-1, 1, (1, 8, 8, 3)).astype(np.float32)
        sample.tofile(tmp_path / f"calib/{index}.raw")
    lines = [f"image:=calib/{index}.raw\n" for index in range(8)]
    (tmp_path / "list.txt").write_text("".join(lines))
    return tmp_path


QUANTIZED = {"source": "cnn.onnx", "convert": {"input_list": "list.txt"}}
FLOAT = {"source": "cnn.onnx"}


@pytest.mark.parametrize("route", ["model-lib", "dlc"])
def test_a_quantized_graph_for_two_chips(folder, sdk, route):
    project(folder, {"cnn": QUANTIZED}, ["SM8550", "QCS6490"], route=route, precision="w8a16")
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 0, ended.said
    assert ended.said.count("convert done") == 1  # once for both chips
    assert not list((folder / "build").rglob(".scratch-*"))
    made = manifest.load(folder / "build/manifest.json")
    assert [(entry.soc, entry.dsp_arch, entry.route) for entry in made.entries] == [
        ("SM8550", "v73", route),
        ("QCS6490", "v68", route),
    ]
    for entry in made.entries:
        info = read_context(folder / "build" / entry.binary)
        assert info.graphs[0].inputs[0].dtype == "UFIXED_POINT_16"
        assert info.build_id == entry.qairt == f"v{VERSION}"  # nobody takes it for the vendor's
        assert info.graphs[0].optimization == 3
        assert entry.parity is not None
        assert entry.parity.outputs["features"].snr_db > 30
        assert not (folder / "build" / entry.binary).with_suffix(".bin.bin").exists()


def test_the_calibration_that_route_ort_takes_too(folder, sdk):
    route = "model-lib"  # which turns axes; dlc is the same without that
    images = [np.fromfile(folder / f"calib/{index}.raw", np.float32).reshape(1, 8, 8, 3) for index in range(8)]
    np.savez(folder / "c.npz", image=np.stack(images).transpose(0, 1, 4, 2, 3))  # the graph's own axes
    project(folder, {"cnn": {**FLOAT, "calibration": "c.npz"}}, ["SM8550"], route=route, precision="w8a16")
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 0, ended.said
    entry = manifest.load(folder / "build/manifest.json").entries[0]
    assert entry.inputs[0].dtype == "UFIXED_POINT_16"
    assert entry.parity.outputs["features"].snr_db > 30
    project(folder, {"cnn": QUANTIZED}, ["SM8550"], route=route, precision="w8a16", output="other")
    assert qnnci("build", "--no-verify", cwd=folder, **sdk).code == 0
    other = manifest.load(folder / "other/manifest.json").entries[0]
    assert entry.inputs == other.inputs  # the very ranges of the same samples as .raw files of channel-last axes
    both = {"cnn": {**QUANTIZED, "calibration": "c.npz"}}
    project(folder, both, ["SM8550"], route=route, precision="w8a16")
    ended = qnnci("build", cwd=folder, **sdk)
    assert (ended.code, "give one of them" in ended.said) == (2, True)


def test_a_second_build_does_nothing_and_a_changed_sample_converts_anew(folder, sdk):
    project(folder, {"cnn": QUANTIZED}, ["SM8550"], route="dlc", precision="w8a16")
    assert qnnci("build", cwd=folder, **sdk).code == 0
    assert " done in " not in qnnci("build", cwd=folder, **sdk).said
    sample = folder / "calib/3.raw"
    sample.write_bytes(sample.read_bytes()[::-1])
    assert "cnn-w8a16: quantize done" in qnnci("build", cwd=folder, **sdk).said


def test_what_a_list_says_decides_too_and_a_project_may_stand_in_a_path_with_spaces(folder, sdk, tmp_path):
    spaced = tmp_path / "my project"
    shutil.copytree(folder, spaced, ignore=shutil.ignore_patterns(spaced.name))
    project(spaced, {"cnn": QUANTIZED}, ["SM8550"], route="model-lib", precision="w8a16")
    ended = qnnci("build", "--no-verify", cwd=spaced, **sdk)
    assert ended.code == 0, ended.said
    lines = (spaced / "list.txt").read_text().splitlines()
    (spaced / "list.txt").write_text("\n".join(line.replace("image:=", "") for line in lines))
    assert "cnn-w8a16: convert done" in qnnci("build", "--no-verify", cwd=spaced, **sdk).said


def test_the_android_library_has_large_pages(folder, sdk):
    convert = {"libraries": ["aarch64-android"]}
    project(folder, {"cnn": {**FLOAT, "convert": convert}}, ["SM8550"], route="model-lib")
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 0, ended.said
    assert (folder / "build/cnn/fp16/aarch64-android/libcnn.so").exists()


def test_what_would_silently_become_a_float_graph_is_refused(folder, sdk):
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc", precision="w8a16")
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 1
    assert "error quantize-needed" in ended.said
    assert "calibration" in ended.said.split("→")[1]
    assert "convert" not in ended.said.split("✗")[0]  # nothing is made for a target that is refused


def test_float_fallback_is_refused_on_v68_and_listed_elsewhere(folder, sdk):
    overrides = {"activation_encodings": {}, "param_encodings": {}}
    (folder / "few.encodings").write_text(json.dumps(overrides))
    convert = {"quantization_overrides": "few.encodings", "float_fallback": True}
    graph = {"cnn": {**FLOAT, "convert": convert}}
    project(folder, graph, ["SM8550", "QCS6490"], route="dlc", precision="w8a16")
    ended = qnnci("build", "--no-verify", cwd=folder, **sdk)
    assert "float_fallback for QCS6490" in ended.said
    assert not (folder / "build/cnn/QCS6490").exists()


def test_an_sdk_that_does_not_know_the_chip(folder, sdk):
    project(folder, {"cnn": FLOAT}, ["SM8975"], route="dlc")
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 1
    assert "has no lib/hexagon-v85" in ended.said


@pytest.mark.parametrize(
    ("fail", "code", "told"),
    [
        ("qnn-onnx-converter:import-error", 3, "libPyIrGraph38"),
        ("qnn-onnx-converter:empty", 4, "see logs/convert.log"),
        ("qnn-model-lib-generator:relocation", 1, "relocation"),
        ("qnn-context-binary-generator:segfault", 4, "ended with SIGSEGV (139)"),
        ("qnn-context-binary-generator:abort", 4, "ended with SIGABRT (134)"),
        ("qnn-context-binary-generator:empty", 4, "did not write cnn_fp16_SM8550_v73.bin"),
        ("qnn-context-binary-generator:ignore=vtcm_mb", 1, "4 MB of VTCM in the binary, 8 were asked for"),
        ("qnn-context-binary-generator:2gib", 1, "1002|2097152"),
    ],
)
def test_every_known_way_to_fail(folder, sdk, fail, code, told):
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="model-lib")
    ended = qnnci("build", "--no-verify", cwd=folder, STANDIN_FAIL=fail, **sdk)
    assert any(part in ended.said for part in told.split("|")), ended.said
    assert ended.code == code, ended.said
    assert "Traceback" not in ended.said
    if "ignore=" in fail:  # the tool has done its work, and would again
        return
    # The next build does what was not done, and nothing of the failure is left.
    assert qnnci("build", "--no-verify", cwd=folder, **sdk).code == 0


def test_an_ignored_soc_is_seen_in_the_binary(folder, sdk):
    project(folder, {"cnn": FLOAT}, ["QCS8550"], route="dlc")  # of its arch, SM8550 is what a tool falls back to
    ended = qnnci("build", "--no-verify", cwd=folder, STANDIN_FAIL="qnn-context-binary-generator:ignore=soc_id", **sdk)
    assert ended.code == 1, ended.said
    assert "the binary is for SoC id 43, asked for was QCS8550 (66)" in ended.said


def test_a_hang_is_ended_with_its_tool(folder, sdk):
    limits = {"seconds": 8}
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc", limits=limits)
    ended = qnnci("build", "--no-verify", cwd=folder, STANDIN_FAIL="qnn-context-binary-generator:hang", **sdk)
    assert ended.code == 4
    assert "compile was stopped after 8 s" in ended.said


def test_a_bad_exit_after_all_is_done_is_a_warning(folder, sdk):
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", cwd=folder, STANDIN_FAIL="qnn-context-binary-generator:late-exit", **sdk)
    assert ended.code == 0, ended.said
    assert "! warning" in ended.said


def test_an_sdk_without_tools_is_told_as_one(folder, sdk, tmp_path):
    bare = shutil.copytree(sdk["QNN_SDK_ROOT"], tmp_path / VERSION, symlinks=True)
    shutil.rmtree(bare / "bin")
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", cwd=folder, **{**sdk, "QNN_SDK_ROOT": str(bare)})
    assert "error sdk-tool" in ended.said, ended.said
    assert "has no tool qairt-converter" in ended.said


def with_converter(sdk, folder: Path, script: str) -> dict[str, str]:
    """An SDK whose qairt-converter is a shell script that knows all flags; returns the environment to find it."""
    root = shutil.copytree(sdk["QNN_SDK_ROOT"], folder / VERSION, symlinks=True)
    tool = root / "bin/x86_64-linux-clang/qairt-converter"
    tool.rename(tool.with_suffix(".real"))
    real = shlex.join([sys.executable, str(tool.with_suffix(".real"))])
    tool.write_text(f'#!/bin/sh\ncase "$*" in *--help*) exec {real} "$@";; esac\n{script}\n')
    tool.chmod(0o755)
    return {**sdk, "QNN_SDK_ROOT": str(root)}


def test_what_a_tool_started_ends_with_a_killed_build(folder, sdk, tmp_path):
    """As make and clang++ under the library generator."""
    deep = f"setsid sleep 1000 & echo $! > {folder}/pid.part; mv {folder}/pid.part {folder}/pid; wait; true"
    env = environment(**with_converter(sdk, tmp_path, f"sh -c {shlex.quote(deep)}\ntrue"))
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    argv = [sys.executable, "-m", "qnnci", "build", "--no-verify"]
    with subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as build:
        wait((folder / "pid").exists)
        build.kill()
    pid = int((folder / "pid").read_text())
    wait(lambda: not resident_mb(pid))


def test_a_disk_that_is_full_for_a_tool_is_the_machine_s_refusal(folder, sdk, tmp_path):
    said = "echo 'Encountered Error: [Errno 28] No space left on device' >&2; exit 1"
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", cwd=folder, **with_converter(sdk, tmp_path, said))
    assert "error disk-full" in ended.said, ended.said
    assert ended.code == 5


def wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_flag_that_the_sdk_does_not_know_is_named_before_any_work(folder, sdk, tmp_path):
    cache = tmp_path / "cache"  # in the other one, this SDK is known to be good
    shutil.copytree(venv_folder(VERSION, Path(sdk["QNNCI_CACHE"])), venv_folder(VERSION, cache), symlinks=True)
    sdk = {**sdk, "QNNCI_CACHE": str(cache)}
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", cwd=folder, STANDIN_FAIL="qairt-converter:forget=--output_path", **sdk)
    assert ended.code == 1, ended.said
    assert "sdk-unknown-flag" in ended.said
    assert "--output_path" in ended.said
    assert "convert" not in ended.said.replace("qairt-converter", "")


def test_without_an_sdk(folder, tmp_path):
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", cwd=folder, QNNCI_CACHE=str(tmp_path / "empty"))
    assert ended.code == 3
    assert "qnnci sdk install" in ended.said


def test_a_missing_sample_is_named_with_its_line(folder, sdk):
    (folder / "calib/5.raw").unlink()
    project(folder, {"cnn": QUANTIZED}, ["SM8550"], route="dlc", precision="w8a16")
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 2
    assert "list.txt:6: there is no file calib/5.raw" in ended.said


def test_a_sample_that_cannot_be_read_costs_its_graph_only(folder, sdk):
    (folder / "list.txt").write_text("image:=/proc/self/mem\n")  # it is there, and no byte of it can be read
    project(folder, {"cnn": {**QUANTIZED, "precision": "w8a16"}, "fine": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", "--no-verify", cwd=folder, **sdk)
    assert ended.code == 5, ended.said
    assert "Input/output error" in ended.said
    assert "1 of 2 binaries are good" in ended.said


def test_an_old_sdk_is_spoken_to_in_its_words(folder, sdk, tmp_path):
    old = make(tmp_path / "old", "2.25.0.240728-standin")
    cache = tmp_path / "cache"
    shutil.copytree(venv_folder(VERSION, Path(sdk["QNNCI_CACHE"])), venv_folder(old.name, cache), symlinks=True)
    project(folder, {"cnn": QUANTIZED}, ["SM8550"], route="dlc", precision="w8a16")
    ended = qnnci("build", "--no-verify", cwd=folder, **{**sdk, "QNN_SDK_ROOT": str(old), "QNNCI_CACHE": str(cache)})
    assert "quantize done" in ended.said


def travelled(folder: Path, to: Path) -> Path:
    """A project as a checkout and the artifact of compile.yml bring it: names and contents, and not all of them."""
    leave = shutil.ignore_patterns("*.cpp", "cnn.bin", ".lock")
    shutil.copytree(folder, to, copy_function=shutil.copyfile, ignore=leave)
    shutil.rmtree(folder)
    for path in to.rglob("*"):
        os.utime(path, (1, 1))
    return to


@pytest.mark.parametrize("route", ["model-lib", "dlc"])
def test_what_was_converted_once_travels_to_every_chip(folder, sdk, tmp_path_factory, route):
    few = {"features": [{"bitwidth": 16, "scale": 2**-12, "offset": -32768, "min": -8, "max": 8}]}
    (folder / "few.encodings").write_text(json.dumps({"activation_encodings": few, "param_encodings": {}}))
    quantized = {**QUANTIZED["convert"], "quantization_overrides": "few.encodings"}
    precision = {"default": "w8a16", "SM8550": "w8a8"}
    socs = ["SM8550", "SM8650", "SM8750"]
    project(folder, {"cnn": {**QUANTIZED, "convert": quantized}}, socs, route=route, precision=precision)
    ended = qnnci("build", "--until", "convert", cwd=folder, **sdk)
    assert ended.code == 0, ended.said
    assert "passed: converted cnn" in ended.said
    assert (ended.said.count("convert done"), ended.said.count("reference done")) == (2, 1)  # for each precision; once
    assert not (folder / "build/manifest.json").exists()
    there = travelled(folder, tmp_path_factory.mktemp("other") / "place")
    for soc in socs:
        ended = qnnci("build", "--no-verify", "--soc", soc, cwd=there, **sdk)
        assert ended.code == 0, ended.said
        assert [line for line in ended.said.splitlines() if " done in " in line and f"cnn-{soc}" not in line] == []
    ended = qnnci("build", "--until", "convert", cwd=there, **sdk)
    assert "nothing to do: all " in ended.said


def test_sources_that_did_not_travel_are_made_anew_where_a_library_is_wanted(folder, sdk, tmp_path_factory):
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="model-lib")
    assert qnnci("build", "--until", "convert", cwd=folder, **sdk).code == 0
    there = travelled(folder, tmp_path_factory.mktemp("other") / "place")
    (there / "build/cnn/fp16/x86_64-linux-clang/libcnn.so").unlink()
    ended = qnnci("build", "--no-verify", cwd=there, **sdk)
    assert ended.code == 0, ended.said
    assert "cnn-fp16: convert done" in ended.said


def test_a_dlc_of_which_the_end_is_missing_is_not_kept(folder, sdk, tmp_path):
    real = shlex.join([sys.executable, str(tmp_path / VERSION / "bin/x86_64-linux-clang/qairt-converter.real")])
    cut = f'{real} "$@"; for o in "$@"; do case $o in *.dlc) truncate -s -40 "$o";; esac; done'
    project(folder, {"cnn": FLOAT}, ["SM8550"], route="dlc")
    ended = qnnci("build", cwd=folder, **with_converter(sdk, tmp_path, cut))
    assert ended.code == 4, ended.said
    assert "qairt-converter wrote only a part of cnn.dlc (exit code 0)" in ended.said
    assert not list((folder / "build").rglob("*.dlc"))


def test_what_no_compile_took_is_converted_anew(folder, sdk):
    """A tool may write less than it should in ways that only the next one sees."""
    project(folder, {"cnn": FLOAT}, ["SM8550", "SM8750"], route="dlc")
    broken = {"STANDIN_FAIL": "qnn-context-binary-generator:empty"}
    assert qnnci("build", "--no-verify", cwd=folder, **broken, **sdk).code == 4
    ended = qnnci("build", "--no-verify", cwd=folder, **sdk)
    assert ended.code == 0
    assert "cnn-fp16: convert done" in ended.said


def test_a_file_among_further_arguments_decides_too(folder, sdk):
    (folder / "io.yaml").write_text("a: 1\n")
    project(folder, {"cnn": {**FLOAT, "convert": {"extra": ["--config", "io.yaml"]}}}, ["SM8550"], route="dlc")
    ended = qnnci("build", "--no-verify", cwd=folder, **sdk)
    assert ended.code == 0, ended.said
    assert f"--config {folder}/io.yaml" in (folder / "build/cnn/fp16/logs/convert.command").read_text()
    assert "nothing to do" in qnnci("build", "--no-verify", cwd=folder, **sdk).said
    (folder / "io.yaml").write_text("a: 2\n")
    assert "cnn-fp16: convert done" in qnnci("build", "--no-verify", cwd=folder, **sdk).said


@pytest.mark.parametrize(
    ("route", "word"),
    [("model-lib", "--output_path=x"), ("model-lib", "--act_bw"), ("dlc", "--out_tensor"), ("dlc", "-i")],
)
def test_a_further_argument_that_we_set_ourselves_is_refused_at_its_line(folder, sdk, route, word):
    project(folder, {"cnn": {**FLOAT, "convert": {"extra": ["--debug", word]}}}, ["SM8550"], route=route)
    ended = qnnci("build", cwd=folder, **sdk)
    assert ended.code == 2
    lines = (folder / "qnn.yaml").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if '"extra"' in line)
    assert f"qnn.yaml:{number}: {word} under `convert: {{extra: …}}` is a flag of q" in ended.said
