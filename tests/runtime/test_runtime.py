"""`qnnci.runtime.load`: one call for a graph on the CPU and for its binary in the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import graphs
from support.command import project, qnnci

from qnnci.errors import ToolCrashed, ToolMissing, UsageError
from qnnci.model.parity import distance
from qnnci.runtime import load
from qnnci.runtime.runner import Port, Runner, binary_ports, ports

compiled = pytest.mark.skipif(sys.version_info < (3, 11), reason="no embedded compiler on this Python")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of a graph that was built for one chip."""
    folder = tmp_path_factory.mktemp("runtime")
    graphs.cnn(folder / "g.onnx")
    project(folder, {"g": {"source": "g.onnx"}}, ["SM8750"])
    ended = qnnci("build", cwd=folder)
    assert ended.code == 0, ended.said
    return folder / "build/g"


def feed_of(runner: Runner, seed: int = 0) -> dict[str, np.ndarray]:
    dice = np.random.default_rng(seed)
    return {port.name: dice.uniform(-1, 1, port.sizes).astype(port.dtype) for port in runner.inputs}


@compiled
def test_the_same_call_for_cpu_and_binary(built):
    with (
        load(built / "prepared.onnx") as cpu,
        load(built / "SM8750/g_fp16_SM8750_v79.bin") as binary,
    ):
        assert (cpu.place, binary.place) == ("cpu", "emulator")
        assert (cpu.inputs, cpu.outputs) == (binary.inputs, binary.outputs)
        for seed in range(2):
            feed = feed_of(cpu, seed)
            want, got = cpu.run(feed), binary.run({**feed, "something else": 1})
            assert list(want) == list(got)
            for name, array in want.items():
                assert (array.dtype, array.shape) == (got[name].dtype, got[name].shape)
                figures = distance(array, got[name])
                assert figures.snr_db is not None
                assert 40 < figures.snr_db < 190  # fp16's arithmetic, not the CPU's again


@compiled
def test_a_binary_alone_has_its_own_ports(built, tmp_path):
    alone = tmp_path / "alone.bin"
    alone.write_bytes((built / "SM8750/g_fp16_SM8750_v79.bin").read_bytes())
    with load(alone) as runner, load(built / "prepared.onnx") as cpu:
        feed = feed_of(cpu)
        assert {port.name for port in runner.inputs} == set(feed)
        want, got = cpu.run(feed), runner.run(feed)
        assert all(np.allclose(got[name], array, atol=0.05) for name, array in want.items())
    with load(alone, like=built / "prepared.onnx") as runner:
        assert runner.inputs == cpu.inputs
    assert [path.name for path in tmp_path.iterdir()] == ["alone.bin"]


@compiled
def test_the_context_model_names_its_binary(built):
    with load(str(built / "SM8750/g_fp16_SM8750_v79_ctx.onnx")) as runner:
        assert runner.path.name == "g_fp16_SM8750_v79.bin"


@compiled
def test_a_run_that_takes_too_long_is_stopped_and_the_next_one_is_another(built):
    binary = built / "SM8750/g_fp16_SM8750_v79.bin"
    with load(binary, seconds=0) as runner, pytest.raises(ToolCrashed, match="timeout"):
        runner.run(feed_of(runner))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda feed: feed.clear(), "no array for the input"),
        (lambda feed: feed.update(image=np.zeros((1, 2), np.float32)), "has shape [1, 2], the graph wants"),
        (lambda feed: feed.update(image=np.zeros(feed["image"].shape, complex)), "is complex128"),
    ],
)
def test_a_feed_that_does_not_fit(tmp_path, change, told):
    graphs.cnn(tmp_path / "g.onnx")
    with load(tmp_path / "g.onnx") as runner:
        feed = feed_of(runner)
        change(feed)
        with pytest.raises(UsageError) as error:
            runner.run(feed)
    assert told in str(error.value)


def test_an_open_size_takes_any(tmp_path):
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graphs.save(tmp_path / "g.onnx", [node], {"x": ["n", 3]}, {"y": ["n", 3]})
    with load(tmp_path / "g.onnx") as runner:
        assert runner.inputs == (Port("x", ("n", 3), np.dtype(np.float32)),)
        for rows in (1, 4):
            assert runner.run({"x": [[1, -1, 0]] * rows})["y"].tolist() == [[1, 0, 0]] * rows
        with pytest.raises(UsageError, match="open sizes"):
            _ = runner.inputs[0].sizes


@pytest.mark.parametrize("name", ["none.onnx", "none.bin"])
def test_no_such_file(tmp_path, name):
    with pytest.raises(UsageError, match="no such file"):
        load(tmp_path / name)


@given(st.binary(max_size=200))
@settings(max_examples=15, deadline=None)
def test_no_file_crashes_it(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bad")
    for name in ("bad.onnx", "bad.bin"):
        (folder / name).write_bytes(content)
        with pytest.raises((UsageError, ToolMissing)):  # Python 3.10 has no libQnnSystem
            load(folder / name)


def test_ports_that_are_no_arrays():
    from qnnci.model import graph

    assert ports([graph.Port("a", "int64", (1, None, "t"))]) == [Port("a", (1, "", "t"), np.dtype(np.int64))]
    for bad in (graph.Port("a", "string?", (1,)), graph.Port("a", "float32", None)):
        with pytest.raises(UsageError):
            ports([bad])
    assert binary_ports([]) == []
