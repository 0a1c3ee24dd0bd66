"""`split:` in a graph: its parts are graphs like any other, verified by themselves and as a chain."""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci import manifest
from qnnci.errors import UsageError
from qnnci.plan import matrix, plan, shards
from qnnci.project_file import load
from qnnci.shards import planned

compiled = pytest.mark.skipif(sys.version_info < (3, 11), reason="no embedded compiler on this Python")


def written(folder, split, socs=("SM8750",), graph=None, **more):
    graphs.residual(folder / "g.onnx")
    return project(folder, {"g": {"source": "g.onnx", "split": split, **(graph or {})}}, list(socs), **more)


def stands(folder):
    return manifest.load(folder / "build/manifest.json")


def test_parts_are_graphs_of_the_project(tmp_path):
    file = load(written(tmp_path, {"at": ["b", ["e"]]}, ["SM8650", "SM8750"]))
    assert list(file.project.graphs) == ["g", "g-0", "g-1", "g-2"]
    assert {target.graph for target in plan(file.project)} == {"g-0", "g-1", "g-2"}
    assert plan(file.project, ["g"]) == plan(file.project)
    assert [target.graph for target in plan(file.project, ["g-1"])] == ["g-1", "g-1"]


def test_one_job_has_all_parts(tmp_path):
    file = load(written(tmp_path, {"at": ["b"], "names": ["front", "back"]}, ["SM8650", "SM8750"]))
    targets = plan(file.project)
    (shard,) = shards(targets)
    assert (shard.graph, shard.socs, shard.graphs) == ("g", ("SM8650", "SM8750"), ("front", "back"))
    told = planned(json.dumps(matrix(targets)))
    assert {(each.graph, each.soc) for each in told} == {(target.graph, target.soc.name) for target in targets}


def test_what_show_prints_is_the_same_project(tmp_path):
    file = written(tmp_path, {"at": ["b"], "names": ["front", "back"]})
    shown = qnnci("show", cwd=tmp_path)
    assert shown.code == 0, shown.said
    again = tmp_path / "again.yaml"
    again.write_text(shown.said)
    assert plan(load(again).project) == plan(load(file).project)


@pytest.mark.parametrize(
    ("split", "more", "told"),
    [
        ({"at": []}, {}, "must not be empty"),
        ({"at": ["b"], "names": ["one"]}, {}, "1 cuts make 2 parts, there are 1 names"),
        ({"at": ["b"], "names": ["g", "h"]}, {}, "has the name of another graph, 'g'"),
        ({"at": ["b"], "names": ["h", "h"]}, {}, "has the name of another graph, 'h'"),
        ({"at": 5}, {}, "must be a list"),
        ({"at": [[]]}, {}, "must not be empty"),
        ({"at": [["b", 5]]}, {}, "must be text"),
        ({"at": ["b"], "names": [1, 2]}, {}, "must be text"),
        (5, {}, "must be a mapping"),
        ({"at": ["b"]}, {"layout": {"x": [0, 2, 1]}}, "compiled whole"),
        ({"at": ["b"]}, {"verify": {"command": "a {model} {report}", "metric": "wer"}}, "runs no `verify"),
        ({"at": ["b"]}, {"part": {"of": "h", "index": 0}}, "a part has no `source`"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(tmp_path, split, more, told):
    with pytest.raises(UsageError) as caught:
        load(written(tmp_path, split, graph=more))
    assert told in str(caught.value)
    assert "qnn.yaml:" in str(caught.value)


@compiled
def test_parts_are_verified_and_so_is_the_chain(tmp_path):
    written(tmp_path, {"at": ["b", "e"]})
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "g on SM8750 = g-0 → g-1 → g-2: cosine 0.9999" in ended.said
    made = stands(tmp_path)
    assert [entry.graph for entry in made.entries] == ["g-0", "g-1", "g-2"]
    (first,) = made.chains
    assert [(part.graph, part.takes, part.gives) for part in first.parts] == [
        ("g-0", ("x",), ("b",)),
        ("g-1", ("mask", "b"), ("e",)),
        ("g-2", ("mask", "e"), ("y",)),
    ]
    assert first.passed
    assert first.parity is not None
    assert (first.parity.samples, list(first.parity.outputs)) == (4, ["y"])
    assert all(entry.parity and entry.parity.inputs == "seeded (0)" for entry in made.entries)
    assert {entry.source for entry in made.entries} == {"g.onnx"}
    with (
        np.load(tmp_path / "build/g/part-1.reference.npz") as before,
        np.load(tmp_path / "build/g-2/reference.npz") as at,
    ):
        assert np.array_equal(before["0/want/e"], at["0/feed/e"])
    written(tmp_path, {"at": ["b", "e"]}, gates={"parity": {"metric": "snr_db", "min": 199}})
    again = qnnci("build", cwd=tmp_path)
    assert again.code == 1
    assert "done in" not in again.said  # the gate alone is another one
    assert "chain-parity g on SM8750" in again.said
    made = stands(tmp_path)
    assert not any(each.passed for each in (*made.chains, *made.entries))


@compiled
def test_fixed_point_parts_are_calibrated_on_what_reaches_them(tmp_path):
    rng = np.random.default_rng(3)
    shape = (8, 1, 8, 16)
    np.savez(tmp_path / "feeds.npz", x=rng.uniform(-1, 1, shape).astype("f"), mask=rng.uniform(0, 1, shape).astype("f"))
    written(tmp_path, {"at": ["b"]}, graph={"calibration": "feeds.npz", "precision": "w8a16"})
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    made = stands(tmp_path)
    assert {(entry.precision, entry.quantization.samples) for entry in made.entries} == {("w8a16", 8)}
    assert made.chains[0].parity is not None
    assert made.chains[0].parity.inputs == "calibration inputs"


@compiled
def test_a_part_alone_makes_no_chain_and_has_its_own_weights_only(tmp_path):
    written(tmp_path, {"at": ["b"]})
    model = tmp_path / "g.onnx"
    onnx.save(onnx.load(str(model)), str(model), save_as_external_data=True, location="g.data", size_threshold=0)
    ended = qnnci("build", "--graph", "g-1", cwd=tmp_path)
    assert ended.code == 0, ended.said
    made = stands(tmp_path)
    assert [entry.graph for entry in made.entries] == ["g-1"]
    assert made.chains == ()
    held = onnx.load(str(tmp_path / "build/g-1/prepared.onnx")).graph.initializer
    assert [each.name for each in held] == ["w2", "w3"]


@compiled
def test_a_tensor_that_the_graph_has_not_is_told_with_its_line(tmp_path):
    (tmp_path / "qnn.yaml").write_text(
        "name: t\nsocs: [SM8750]\ngraphs:\n  g:\n    source: g.onnx\n    split: {at: [bb]}\n"
    )
    graphs.residual(tmp_path / "g.onnx")
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 2, ended.said
    assert "qnn.yaml:6: `split: {at: …}` names 'bb', which the graph has not" in ended.said
    assert "did you mean 'b'" in ended.said
