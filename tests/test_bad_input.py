"""Everything that users get wrong, and machines too: what is said, with which exit code, and that other work stands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import psutil
import pytest
from support import graphs
from support.command import environment, project, qnnci

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

OTHER = "fine/SM8550/fine_fp16_SM8550_v73.bin"


def built(folder: Path, graph: object, *args: str, socs=("SM8550",), **more):
    """Build a graph beside one that is fine; the fine one's binary must come out whatever happens to the other."""
    graphs.cnn(folder / "fine.onnx")
    project(folder, {"fine": {"source": "fine.onnx", "socs": ["SM8550"]}, "bad": graph}, list(socs), **more)
    ended = qnnci("build", *args, cwd=folder)
    assert (folder / "build" / OTHER).stat().st_size > 0
    assert "Traceback" not in ended.said
    return ended


def test_missing_file(tmp_path):
    ended = built(tmp_path, {"source": "finn.onnx"})
    assert ended.code == 2
    assert "finn.onnx" in ended.said
    assert "fine.onnx" in ended.said  # the nearest name


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"this is no model at all", "not"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "LFS"),
    ],
)
def test_not_onnx(tmp_path, content, told):
    (tmp_path / "bad.onnx").write_bytes(content)
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 2
    assert "bad.onnx" in ended.said
    assert told in ended.said


def test_truncated_onnx(tmp_path):
    whole = graphs.cnn(tmp_path / "bad.onnx").read_bytes()
    (tmp_path / "bad.onnx").write_bytes(whole[: len(whole) // 2])
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 2
    assert "truncated" in ended.said


def test_weights_missing(tmp_path):
    graphs.with_external_weights(tmp_path / "bad.onnx")
    (tmp_path / "bad.onnx.data").unlink()
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 2
    assert "bad.onnx.data" in ended.said


def test_weights_that_change_beside_the_same_graph_are_a_new_model(tmp_path):
    graphs.with_external_weights(tmp_path / "bad.onnx")
    assert built(tmp_path, {"source": "bad.onnx"}, "--no-verify").code == 0
    weights = tmp_path / "bad.onnx.data"
    weights.write_bytes(weights.read_bytes()[::-1])
    ended = qnnci("build", "--no-verify", cwd=tmp_path)
    assert "bad-SM8550: compile done" in ended.said
    assert "fine-SM8550: compile" not in ended.said
    ended = qnnci("build", "--no-verify", cwd=tmp_path)
    assert "done in" not in ended.said


def test_an_input_that_nothing_reads(tmp_path):
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graphs.save(tmp_path / "bad.onnx", [node], {"x": [1, 8], "unused": [1, 4]}, {"y": [1, 8]})
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 0, ended.said


def test_a_binary_that_could_not_be_verified_is_not_good(tmp_path):
    graphs.cnn(tmp_path / "bad.onnx")
    ended = built(tmp_path, {"source": "bad.onnx", "verify": {"inputs": "nowhere.npz"}})
    assert ended.code == 2
    assert "there are no inputs at" in ended.said
    assert "1 of 2 binaries are good" in ended.said
    manifest = json.loads((tmp_path / "build/manifest.json").read_text())
    assert {entry["graph"]: entry["passed"] for entry in manifest["entries"]} == {"fine": True, "bad": False}
    assert [list(device["binaries"]) for device in manifest["devices"]] == [["fine"]] * len(manifest["devices"])


def test_unknown_soc(tmp_path):
    file = project(tmp_path, {"g": {"source": "g.onnx"}}, ["SM8751"])
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 2
    line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "SM8751" in text)
    assert f"qnn.yaml:{line}" in ended.said
    assert "SM8750" in ended.said


def test_a_chip_without_htp(tmp_path):
    project(tmp_path, {"g": {"source": "g.onnx"}}, ["SM8250"])
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 2
    assert "SM8250 has no HTP" in ended.said


def test_fp16_where_there_is_none(tmp_path):
    graphs.cnn(tmp_path / "bad.onnx")
    ended = built(tmp_path, {"source": "bad.onnx"}, socs=["SM8650", "QCS6490"])
    assert ended.code == 1
    assert "bad on QCS6490: v68 has no fp16" in ended.said
    assert "{default: fp16, v68: w8a16}" in ended.said
    assert list((tmp_path / "build/bad").glob("*/*.bin")) == [tmp_path / "build/bad/SM8650/bad_fp16_SM8650_v75.bin"]


def test_unsupported_op(tmp_path):
    graphs.with_det(tmp_path / "bad.onnx")
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 1
    assert ended.said.count("error cpu-fallback") == 1
    assert "Det node 'determinant'" in ended.said


def test_a_dynamic_model_without_shapes(tmp_path):
    graphs.cnn(tmp_path / "bad.onnx", batch="batch")
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 1
    assert "dynamic-dim" in ended.said
    assert "image" in ended.said
    assert "batch" in ended.said
    assert "inputs:" in ended.said


def test_more_vtcm_than_there_is(tmp_path):
    graphs.too_wide(tmp_path / "bad.onnx")
    ended = built(tmp_path, {"source": "bad.onnx"}, "--no-verify")
    assert ended.code == 1
    assert "vtcm-exceeded" in ended.said
    assert "61.0 MB of VTCM" in ended.said


def test_wrong_sha256(tmp_path):
    graphs.cnn(tmp_path / "bad.onnx")
    ended = built(tmp_path, {"source": "bad.onnx", "sha256": "0" * 64})
    assert ended.code == 2
    assert "0" * 64 in ended.said


def test_numbers_that_fp16_ruins(tmp_path):
    graphs.overflowing(tmp_path / "bad.onnx")
    ended = built(tmp_path, {"source": "bad.onnx"})
    assert ended.code == 1
    assert "error parity bad on SM8550: cosine must be at least 0.99: y has" in ended.said


def test_a_stage_that_takes_too_long(tmp_path, models):
    ended = built(
        tmp_path,
        {"source": str(models("ch_PP-OCRv4_det_infer.onnx")), "inputs": {"x": [1, 3, 4096, 4096]}},
        "--no-verify",
        limits={"seconds": 4},
    )
    assert ended.code == 4
    assert "stopped after 4 s" in ended.said


def full_disk(size: str, *argv: str) -> list[str]:
    """A command line that runs a program in a folder of its own that holds no more than `size`."""
    mount = f"mkdir -p small && mount -t tmpfs -o size={size} tmpfs small && cp *.onnx *.yaml small && cd small"
    script = f'{mount} && exec "$@"'
    return ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", *argv]


@pytest.mark.parametrize(("size", "stage"), [("320k", "prepare"), ("640k", "compile")])
def test_a_full_disk(tmp_path, size, stage):
    graphs.save(
        tmp_path / "g.onnx",
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="large")],
        {"x": [1, 256]},
        {"y": [1, 256]},
        {"w": graphs.weight(256, 256)},
    )
    project(tmp_path, {"g": {"source": "g.onnx"}}, ["SM8550"])
    argv = full_disk(size, sys.executable, "-m", "qnnci", "build")
    env = environment(QNNCI_CACHE=str(tmp_path / "cache"))
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 5, said
    assert "No space left on device: build/g/" in said
    assert "free some space" in said
    assert "Traceback" not in said
    assert ("g: prepare done" in said) == (stage == "compile")


@pytest.fixture
def long_build(tmp_path, models):
    """A build whose first graph is done and whose second is being compiled, which takes seconds."""
    graphs.cnn(tmp_path / "fine.onnx")
    long = {"source": str(models("ch_PP-OCRv4_det_infer.onnx")), "inputs": {"x": [1, 3, 736, 736]}}
    project(tmp_path, {"fine": {"source": "fine.onnx"}, "long": long}, ["SM8550"])
    argv = [sys.executable, "-m", "qnnci", "build", "--no-verify", "--jobs", "2"]
    child = subprocess.Popen(
        argv, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    folder = tmp_path / "build/long/SM8550"
    wait(lambda: any(folder.glob(".scratch-*")) and (tmp_path / "build" / OTHER).exists(), child)
    yield child
    child.kill()
    child.communicate()


def wait(condition, child=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert child is None or child.poll() is None, child.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.02)


def finished_after(tmp_path) -> None:
    """Nothing half-written stands under a final name, and the next build does only what was not done."""
    assert not list((tmp_path / "build/long/SM8550").glob("*.bin"))
    ended = qnnci("build", "--no-verify", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "long-SM8550: compile done" in ended.said
    assert "fine" not in ended.said.split("graph ", maxsplit=1)[0]  # the lines of progress
    assert "long: prepare" not in ended.said
    assert not list((tmp_path / "build").rglob(".scratch-*"))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(tmp_path, long_build, sent):
    workers = psutil.Process(long_build.pid).children(recursive=True)
    long_build.send_signal(sent)
    said, _ = long_build.communicate(timeout=20)
    assert long_build.returncode == 130
    assert "finished stages stand" in said
    assert "Traceback" not in said
    assert not any(worker.is_running() for worker in workers)
    finished_after(tmp_path)


def test_kill_9_of_the_build_itself(tmp_path, long_build):
    workers = psutil.Process(long_build.pid).children(recursive=True)
    long_build.kill()
    wait(lambda: not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in workers))
    finished_after(tmp_path)


def test_kill_9_of_the_compiler(tmp_path, long_build):
    compiler = max(psutil.Process(long_build.pid).children(), key=lambda each: each.cpu_times().user)
    os.kill(compiler.pid, signal.SIGKILL)
    said, _ = long_build.communicate(timeout=60)
    assert long_build.returncode == 4
    assert "compile was killed from outside" in said
    assert (tmp_path / "build" / OTHER).exists()
    finished_after(tmp_path)


@pytest.mark.usefixtures("long_build")
def test_two_builds_in_one_folder(tmp_path):
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 2
    assert "another build is writing" in ended.said
