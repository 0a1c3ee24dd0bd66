"""Binaries on a fake device: run on the host's emulator, brought there and back as on a real one."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import device_tool, fake_device, runtime

from qnnci.context.info import GraphInfo, Quantization, TensorInfo
from qnnci.device import raw, room, run
from qnnci.device.link import Link
from qnnci.device.room import Room
from qnnci.device.transport import Adb, Ssh
from qnnci.errors import MachineError, ToolCrashed, UsageError
from qnnci.model.parity import distance
from qnnci.runtime import load

TMP = "root/data/local/tmp"
SDK = "qairt/2.51.0.260929"


@pytest.fixture
def here(phone, monkeypatch) -> Path:
    """The fake phone, for this process too."""
    for name, value in fake_device.environment(phone).items():
        monkeypatch.setenv(name, value)
    return phone


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    made = {f"lib{name}.so": tmp_path / name for name in "abc"}
    for path in made.values():
        path.write_bytes(path.name.encode() * 5000)
    return made


def copies(phone: Path) -> list[str]:
    return [line.removeprefix("copy ") for line in (phone / "log").read_text().splitlines() if line.startswith("copy ")]


# the whole verb


def test_a_binary_on_a_phone(on, phone, built):
    ended = on("run")
    assert ended.code == 0, ended.said
    lines = ended.said.splitlines()
    assert "cnn" in lines
    assert "2 samples, those of the build; run on the device" in lines
    assert list((phone / TMP).iterdir()) == []
    assert "Finished Executing Graphs" in (built / "build/cnn/SM8550/logs/device.log").read_text()
    assert 'ADSP_LIBRARY_PATH="$PWD;/vendor/dsp/cdsp;' in (phone / "log").read_text()
    assert {name for name in copies(phone) if "V79" in name or "Prepare" in name} == set()


def test_gates_and_another_original(on, built):
    (built / "build/cnn/reference.npz").unlink()
    ended = on("run")
    assert ended.code == 2
    assert "name the original model with `--against`" in ended.said
    ended = on("run", "--against", "cnn.onnx", "--samples", 1, "--min-snr", 150, "--json")
    assert ended.code == 1, ended.said
    told = json.loads(ended.said[ended.said.index("{\n") : ended.said.rindex("}\n") + 2])
    assert told["graphs"]["cnn"]["runner"] == "device"
    assert told["graphs"]["cnn"]["outputs"]["features"]["cosine"] > 0.99
    assert [each["rule"] for each in told["findings"]] == ["parity"]


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [("skel", "version-mismatch"), ("no skel", "missing-skel"), ("chip", "missing-stub")],
)
def test_what_the_loader_says_is_explained(on, built, phone, wrong, rule):
    libs = built / "libs"
    libs.mkdir()
    for name, content in runtime.libraries("2.51.0.260929181845", (73, 75)).items():
        (libs / name).write_bytes(content)
    if wrong == "skel":
        (libs / "libQnnHtpV73Skel.so").write_bytes(runtime.skel("2.50.0.260831140417"))
    elif wrong == "no skel":
        (libs / "libQnnHtpV73Skel.so").unlink()
    else:  # the user says that it is another chip
        fake_device.props(phone, **{**fake_device.PROPS, "ro.soc.model": "SM8650"})
    ended = on("run", "--libs", "libs", "--soc", "SM8550")
    assert ended.code == 4, ended.said
    assert rule in ended.said
    assert "all that it said: build/cnn/SM8550/logs/device.log" in ended.said
    assert list((phone / TMP).iterdir()) == []


def test_a_board_whose_connection_broke_once(built, tmp_path, qnnci):
    """The libraries are those for Linux, and the second run sends only what the first one could not."""
    device = tmp_path / "board"
    env = fake_device.make(device, "ssh", reset=3)
    fake_device.board(device / "root", machine="SM8550")
    for place in ("lib", "bin"):
        shutil.copytree(built / SDK / place / "aarch64-android", built / SDK / place / "aarch64-oe-linux-gcc11.2")
    arguments = ("device", "run", "ssh:root@board:2222", "--for", "build", "--sdk", SDK)
    ended = qnnci(*arguments, cwd=built, **env)
    assert ended.code == 5, ended.said
    assert "ssh:root@board:2222: the device was lost in the middle" in ended.said
    first = copies(device)
    ended = qnnci(*arguments, "--keep", cwd=built, **env)
    assert ended.code == 0, ended.said
    assert "run on the device" in ended.said
    assert not set(first[:-1]) & set(copies(device)[len(first) :])
    (kept,) = (device / "root/tmp").iterdir()
    assert f"kept on the device: /tmp/{kept.name}" in ended.said


def test_another_chip_is_refused_before_anything_is_sent(on, phone):
    fake_device.props(phone, **{**fake_device.PROPS, "ro.soc.model": "SM8650"})
    ended = on("run")
    assert ended.code == 2
    assert "the device is SM8650 (v75), the manifest has binaries for SM8550 (v73), SM8750 (v79)" in ended.said
    assert copies(phone) == []


def test_a_binary_that_is_not_the_one_that_was_judged(on, built, phone):
    binary = next(built.glob("build/cnn/SM8550/*.bin"))
    binary.write_bytes(binary.read_bytes() + b"\0")
    ended = on("run")
    assert ended.code == 2
    assert "is not the file that was built" in ended.said
    assert copies(phone) == []


def test_no_sdk_with_the_tool(on, built):
    shutil.rmtree(built / SDK / "bin")
    ended = on("run")
    assert ended.code == 3
    assert "there is no bin/aarch64-android/qnn-net-run" in ended.said


# from Python, on phone and board


@pytest.mark.parametrize("kind", ["adb", "ssh"])
def test_feeds_of_a_binary(built, tmp_path, monkeypatch, kind):
    for name, value in fake_device.make(tmp_path / "other", kind).items():
        monkeypatch.setenv(name, value)
    if kind == "ssh":
        fake_device.board(tmp_path / "other/root", machine="SM8550")
    libs = tmp_path / "libs"
    device_tool.write(libs)
    for name, content in runtime.libraries("2.51.0.260929181845", (73,)).items():
        (libs / name).write_bytes(content)
    link = Link(Adb() if kind == "adb" else Ssh("board"))
    binary = next(built.glob("build/cnn/SM8550/*.bin"))
    feed = np.random.default_rng(0).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
    folder = "/data/local/tmp" if kind == "adb" else "/tmp"
    (got,) = run.feeds(link, binary, [{"image": feed}], libs, folder=folder)
    assert list(got) == ["features"]
    assert (got["features"].shape, got["features"].dtype) == ((1, 4, 8, 8), np.float32)
    assert got["features"].max() > 0.1
    with pytest.raises(UsageError, match="has nothing for 'image'"):
        run.feeds(link, binary, [{"picture": feed}], libs, folder=folder)
    (libs / "libQnnHtpV73Skel.so").unlink()
    with pytest.raises(ToolCrashed, match="qnn-net-run failed: dlopen failed for libQnnHtpV73Skel") as caught:
        run.feeds(link, binary, [{"image": feed}], libs, folder=folder)
    assert "skel" in caught.value.hint
    (libs / "libQnnHtp.so").unlink()
    with pytest.raises(UsageError, match="no libQnnHtp"):
        run.feeds(link, binary, [{"image": feed}], libs, folder=folder)


def test_a_tool_that_writes_nothing_or_ends_oddly(built, here, tmp_path):
    """Its exit code is not what counts: outputs that are not there are told, those that are there are judged."""
    libs = tmp_path / "libs"
    device_tool.write(libs)
    for name, content in runtime.libraries("2.51.0.260929181845", (73,)).items():
        (libs / name).write_bytes(content)
    binary = next(built.glob("build/cnn/SM8550/*.bin"))
    feed = {"image": np.zeros((1, 3, 8, 8), np.float32)}
    tool = libs / "qnn-net-run"
    real = tool.read_text()
    tool.write_text("#!/bin/sh\necho Finished Executing Graphs\n")
    with pytest.raises(ToolCrashed, match="the device wrote no output features for feed 0"):
        run.feeds(Link(Adb()), binary, [feed], libs)
    tool.write_text(real.replace("exec ", "").rstrip() + "\nexit 9\n")
    (got,) = run.feeds(Link(Adb()), binary, [feed], libs)
    assert got["features"].shape == (1, 4, 8, 8)
    tool.write_text("#!/bin/sh\nexit 9\n")
    with pytest.raises(ToolCrashed, match="exit code 9"):
        run.feeds(Link(Adb()), binary, [feed], libs)
    assert list((here / TMP).iterdir()) == []


@pytest.mark.parametrize(
    ("line", "rule", "logcat"),
    [
        ("[ ERROR ] Failed to create context from binary with err 0x1388", "version-mismatch", False),
        ("[ ERROR ] Could not create context from binary, err 5005", "arch-mismatch", False),
        ("[ ERROR ] create context from binary failed, err 1002", "out-of-memory", False),
        ("[ ERROR ] Stub lib id mismatch: expected (v2.51.0), detected (v2.50.0)", "version-mismatch", False),
        ("[ ERROR ] qnn_open failed, 0x80000406", "skel-open-failed", True),
        ("[ ERROR ] Unable to load lib 0x80000406", "missing-skel", True),
        ("[ ERROR ] unsigned PD or DSPRPC_GET_DSP_INFO not supported by HTP", "unsigned-pd", True),
        ("Unable to load backend. dlerror(): libQnnHtp.so not found", "missing-lib", False),
        ("", "silent-failure", False),
    ],
)
def test_each_way_not_to_load_is_told_by_its_rule(here, tmp_path, line, rule, logcat):
    """Also where only Android's log says it."""
    tool, binary = tmp_path / "qnn-net-run", tmp_path / "b.bin"
    binary.write_bytes(b"binary")
    port = TensorInfo("x", "FLOAT_32", (1,))
    place, feed = Room(Link(Adb()), "/data/local/tmp/qnnci-0"), [{"x": np.zeros(1, np.float32)}]
    tool.write_text(f"#!/bin/sh\necho '{'' if logcat else line}'\nexit 1\n")
    log = here / "bin/logcat"
    log.write_text(f"#!/bin/sh\necho 'E/adsprpc(1): {line}'\n" if logcat else "#!/bin/sh\n")
    log.chmod(0o755)
    ran = run.once(place, binary, graph(port), feed, {"qnn-net-run": tool}, timeout=60, say=lambda _: None)
    assert (ran.worked, ran.code) == (False, 1)
    assert rule in {each.rule for each in ran.findings}


def test_the_same_call_on_a_device(built, here, tmp_path):
    libs = tmp_path / "libs"
    device_tool.write(libs)
    for name, content in runtime.libraries("2.51.0.260929181845", (73,)).items():
        (libs / name).write_bytes(content)
    binary = next(built.glob("build/cnn/SM8550/*.bin"))
    feed = np.random.default_rng(0).uniform(-1, 1, (1, 3, 8, 8)).astype(np.float32)
    with load(built / "build/cnn/prepared.onnx") as cpu, load(binary, on="adb:SERIAL1", libs=libs) as phone:
        assert (phone.place, phone.inputs) == ("adb:SERIAL1", cpu.inputs)
        for _ in range(2):
            far = distance(cpu.run({"image": feed})["features"], phone.run({"image": feed})["features"])
            assert far.snr_db is not None
            assert far.snr_db > 40
    assert copies(here).count(binary.name) == 1
    assert list((here / TMP).iterdir()) == []
    with pytest.raises(UsageError, match=r"for SoC id 69, adb is SM8550 \(43\)"):
        load(next(built.glob("build/cnn/SM8750/*.bin")), on="adb", libs=libs)
    with pytest.raises(UsageError, match="a binary"):
        load(built / "build/cnn/prepared.onnx", on="adb", libs=libs)


# copies


def test_only_what_is_not_there_is_sent(here, files):
    place = Room(Link(Adb()), "/data/local/tmp/qnnci-0")
    assert place.put(files) == sum(path.stat().st_size for path in files.values())
    assert place.put(files) == 0
    (here / TMP / "qnnci-0/libb.so").write_bytes(b"another")
    assert place.put(files) == 5000
    assert (here / TMP / "qnnci-0/libb.so").read_bytes() == b"b" * 5000
    assert copies(here) == ["a", "b", "c", "b"]


@pytest.mark.parametrize("failure", ["reset", "break_shell"])
def test_a_connection_that_breaks_is_gone_on_with(here, files, failure):
    fake_device.setting(here, **{failure: 2})
    with pytest.raises(MachineError, match="in the middle"), room.opened(Link(Adb()), "/data/local/tmp", 1) as at:
        at.put(files)
    assert not {path.name for path in (here / TMP).rglob("*.so")} & {"libc.so"}
    with room.opened(Link(Adb()), "/data/local/tmp", 1) as at:
        assert at.put(files) < 15000
        assert (here / at.path.replace("/data", "root/data") / "libc.so").read_bytes() == b"c" * 5000
    assert list((here / TMP).iterdir()) == []


def test_bytes_that_arrive_as_others_are_sent_again(here, files):
    fake_device.setting(here, corrupt=1)
    place = Room(Link(Adb()), "/data/local/tmp/qnnci-0")
    place.put(files)
    assert copies(here) == ["a", "b", "b", "c"]
    assert (here / TMP / "qnnci-0/libb.so").read_bytes() == b"b" * 5000


def test_a_full_device_is_left_as_it_was(here, files):
    used = sum(path.stat().st_size for path in (here / "root").rglob("*") if path.is_file())
    fake_device.setting(here, full=used + 7000)
    with (
        pytest.raises(MachineError, match="no space left"),
        room.opened(Link(Adb()), "/data/local/tmp", 1) as at,
    ):
        at.put(files)
    assert list((here / TMP).iterdir()) == []


def test_a_device_without_enough_space_is_not_begun_with(on, phone):
    (phone / "free_kb").write_text("100000")
    ended = on("run")
    assert ended.code == 5
    assert "no space left on the device: /data/local/tmp has 97 MB free" in ended.said
    assert copies(phone) == []


def test_a_program_that_hangs_is_ended(here):
    place = Room(Link(Adb()), "/data/local/tmp/qnnci-0")
    with pytest.raises(ToolCrashed, match="did not end"):
        place.run("sleep 1000", timeout=1)
    assert fake_device.ended(int((here / TMP / "qnnci-0/pid").read_text()))


def test_a_process_of_somebody_else_is_not_ended(here):
    place = Room(Link(Adb()), "/data/local/tmp/qnnci-0")
    place.run("true", timeout=30)
    (here / TMP / "qnnci-0/pid").write_text("1")
    place.stop()
    assert Path("/proc/1").exists()


# raw files


def graph(*inputs: TensorInfo) -> GraphInfo:
    return GraphInfo("g", inputs, inputs)


TENSORS = st.sampled_from(["FLOAT_32", "FLOAT_16", "INT_32", "UINT_8", "UFIXED_POINT_16", "SFIXED_POINT_8", "BOOL_8"])


@settings(max_examples=30)
@given(st.lists(TENSORS, min_size=1, max_size=3), st.lists(st.integers(1, 3), max_size=3), st.integers(1, 3))
def test_what_is_packed_can_be_read_by_the_tool(kinds, shape, count):
    ports = [TensorInfo(f"x{at}", kind, tuple(shape), Quantization("x", 1.0)) for at, kind in enumerate(kinds)]
    rng = np.random.default_rng(0)
    feeds = [{p.name: rng.integers(0, 2, shape).astype(raw.carrier(p)) for p in ports} for _ in range(count)]
    with tempfile.TemporaryDirectory() as name:
        raw.pack(feeds, graph(*ports), Path(name) / "in.tar")
        with tarfile.open(Path(name) / "in.tar") as tar, tarfile.open(Path(name) / "out.tar", "w") as out:
            lines = tar.extractfile("in/list.txt").read().decode().splitlines()
            for number, line in enumerate(lines):
                for port, word in zip(ports, line.split(" "), strict=True):
                    data = tar.extractfile(word.rpartition(":=")[2]).read()
                    add(out, f"out/Result_{number}/{port.name}_native.raw", data)
        got = raw.unpack(Path(name) / "out.tar", graph(*ports), count)
    for feed, back in zip(feeds, got, strict=True):
        assert all(np.array_equal(feed[key], back[key]) and feed[key].dtype == back[key].dtype for key in feed)


def add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


@settings(max_examples=30)
@given(st.binary(max_size=600))
def test_no_answer_of_a_device_breaks_the_reader(data):
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "t").write_bytes(data)
        with pytest.raises(ToolCrashed):
            raw.unpack(Path(name) / "t", graph(TensorInfo("x", "FLOAT_32", (2,))), 1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3, np.int32), r"\[2\] in the binary, \[3\] in the feed"),
        (np.zeros(2, np.float32), "INT_32 in the binary, float32 in the feed"),
    ],
)
def test_feeds_that_do_not_fit(tmp_path, array, message):
    with pytest.raises(UsageError, match=message):
        raw.pack([{"x": array}], graph(TensorInfo("x", "INT_32", (2,))), tmp_path / "t")
    with pytest.raises(UsageError, match="not run here"):
        raw.carrier(TensorInfo("x", "SFIXED_POINT_4", (2,)))


def test_a_tool_that_is_nowhere(tmp_path):
    (tmp_path / "libQnnHtp.so").touch()
    with pytest.raises(UsageError, match="no qnn-net-run"):
        run.kit(tmp_path)
