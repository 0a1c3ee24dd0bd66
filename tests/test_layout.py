"""`layout`: ports of the binary with their axes in another order, on route ort; the emulator says that numbers stay."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from onnx import helper
from support import graphs
from support.command import project, qnnci

from qnnci import manifest
from qnnci.errors import UsageError
from qnnci.project_file import validate
from qnnci.runtime import load

compiled = pytest.mark.skipif(sys.version_info < (3, 11), reason="no embedded compiler on this Python")


def written(folder, layout, **more):
    """A graph whose axes have one size, so that no shape tells of their order."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1]),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    graphs.save(folder / "g.onnx", nodes, {"x": [1, 8, 8]}, {"y": [1, 8, 8]}, {"w": graphs.weight(8, 8, 3)})
    feeds = np.random.default_rng(0).uniform(-1, 1, (8, 1, 8, 8)).astype(np.float32)
    np.savez(folder / "feeds.npz", x=feeds)
    graph = {
        "source": "g.onnx",
        "layout": layout,
        "calibration": "feeds.npz",
        "verify": {"inputs": "feeds.npz"},
        **more,
    }
    project(folder, {"g": graph}, ["SM8750", "QCS6490"], precision={"default": "fp16", "v68": "w8a16"})
    return feeds


@compiled
@pytest.mark.parametrize("more", [{}, {"quantize": {"io": "ufixed16"}, "socs": ["QCS6490"]}])
def test_the_numbers_are_those_of_the_graph_in_its_own_order(tmp_path, more):
    feeds = written(tmp_path, {"x": "NTF", "y": [2, 0, 1]}, **more)
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    for entry in manifest.load(tmp_path / "build/manifest.json").entries:
        assert entry.layout == {"x": (0, 2, 1), "y": (2, 0, 1)}
        assert [tensor.shape for tensor in (*entry.inputs, *entry.outputs)] == [(1, 8, 8), (8, 1, 8)]
        assert [tensor.name for tensor in (*entry.inputs, *entry.outputs)] == ["x", "y"]
        assert entry.parity is not None
        assert (entry.parity.outputs["y"].snr_db or 0) > 35
        with load(tmp_path / "build" / entry.binary) as binary, load(tmp_path / "build/g/prepared.onnx") as cpu:
            want, got = (each.run({"x": feeds[0]})["y"] for each in (cpu, binary))
        assert np.abs(want - got).max() < 0.05 * np.abs(want).max()


@compiled
@pytest.mark.parametrize(
    ("layout", "told"),
    [({"z": "NTF"}, "names 'z', which the graph has not"), ({"x": "NHWC"}, "gives 'x' 4 axes, it has 3")],
)
def test_ports_that_are_not_there(tmp_path, layout, told):
    written(tmp_path, layout)
    ended = qnnci("build", cwd=tmp_path)
    assert (ended.code, told in ended.said) == (2, True), ended.said


@pytest.mark.parametrize(
    ("layout", "route", "told"),
    [
        ({"x": "NCT"}, "ort", "'NCT' is no layout"),
        ({"x": [0, 2]}, "ort", "does not name each axis once"),
        ({"x": [0, 1, 1]}, "ort", "does not name each axis once"),
        ({"x": "NTF"}, "dlc", "is of route ort"),
    ],
)
def test_what_is_no_layout(layout, route, told):
    data = {"name": "x", "socs": ["SM8750"], "route": route, "graphs": {"g": {"source": "g.onnx", "layout": layout}}}
    with pytest.raises(UsageError) as error:
        validate(data, "qnn.yaml")
    assert told in str(error.value)
