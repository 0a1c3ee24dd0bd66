"""`contexts:` of a project: several graphs in one binary with weights in common, beside the binaries of their own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import onnx
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci import manifest
from qnnci.build.cache import Record
from qnnci.build.calls import Call
from qnnci.build.shared import Contexts, judge
from qnnci.build.state import BuildState
from qnnci.context.info import ContextInfo, GraphInfo, TensorInfo
from qnnci.errors import UsageError
from qnnci.plan import matrix, plan
from qnnci.project_file import load
from qnnci.shards import Shard, join, planned

compiled = pytest.mark.skipif(sys.version_info < (3, 11), reason="no embedded compiler on this Python")


def written(folder, contexts, socs=("SM8750",), **more):
    for name, rows in (("short", 8), ("long", 32)):
        graphs.dense(folder / f"{name}.onnx", rows)
    named = {name: {"source": f"{name}.onnx"} for name in ("short", "long")}
    return project(folder, named, list(socs), contexts=contexts, **more)


@compiled
def test_weights_in_common_are_there_once(tmp_path):
    written(tmp_path, {"both": ["short", "long"]})
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "both on SM8750 = short + long in one context: " in ended.said
    assert "context-not-run both on SM8750" in ended.said
    build = tmp_path / "build"
    made = manifest.load(build / "manifest.json")
    (shared,) = made.contexts
    assert shared.passed
    assert shared.bytes == (build / shared.binary).stat().st_size
    assert shared.separate_bytes == sum((build / entry.binary).stat().st_size for entry in made.entries)
    assert shared.bytes < 0.6 * shared.separate_bytes
    assert shared.shared_weights_bytes >= 2 * 256 * 256 * 2  # fp16
    for graph in shared.graphs:
        (node,) = onnx.load(str(build / graph.context_model)).graph.node
        told = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        assert told["ep_cache_context"].decode() == "both_SM8750_v79.bin"
        assert told["partition_name"].decode() == graph.graph_name
    assert {entry.graph_name for entry in made.entries} == {graph.graph_name for graph in shared.graphs}
    assert join([Shard(build / "manifest.json", made)], tmp_path).contexts[0].binary == f"build/{shared.binary}"
    assert qnnci("manifest", "check", "build/manifest.json", cwd=tmp_path).code == 0
    assert "nothing to do" in qnnci("build", cwd=tmp_path).said
    (build / shared.binary).write_bytes(b"x")
    (build / shared.graphs[0].context_model).unlink()
    checked = qnnci("manifest", "check", "build/manifest.json", cwd=tmp_path)
    assert checked.code == 1
    assert "file-changed both on SM8750" in checked.said
    assert "file-missing both on SM8750" in checked.said


@compiled
def test_a_graph_that_does_not_compile_keeps_the_context_from_being_made(tmp_path):
    written(tmp_path, {"both": ["short", "long"]})
    graphs.with_det(tmp_path / "long.onnx")
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 1, ended.said
    made = manifest.load(tmp_path / "build/manifest.json")
    assert [entry.graph for entry in made.entries] == ["short"]
    assert made.contexts == ()


def test_a_process_in_which_sharing_failed_is_not_used_again(tmp_path):
    """The provider would give its graphs to the next context."""
    file = load(written(tmp_path, {"both": ["short", "long"]}))
    targets = plan(file.project)
    stops = []
    contexts = Contexts(BuildState(file, targets, tmp_path), SimpleNamespace(run=lambda *_: Record()))
    for target in targets:
        options = {"model": "m", "fp16": True, "soc_id": 69, "vtcm_mb": 8, "optimization": 3}
        shared = contexts.compiled(target, Call(target.id, "compile", tmp_path, options, "key"))
    assert shared is not None
    contexts.run(shared, SimpleNamespace(stop=lambda: stops.append("stopped")))
    assert stops == ["stopped"]


def test_one_job_has_all_graphs(tmp_path):
    file = load(written(tmp_path, {"both": ["short", "long"]}, ["SM8650", "SM8750"]))
    targets = plan(file.project)
    assert plan(file.project, ["both"]) == targets
    told = matrix(targets)
    assert [(row["graph"], row["graphs"]) for row in told["shards"]] == [("both", "short,long")]
    wanted = {(each.graph, each.soc) for each in planned(json.dumps(told))}
    assert wanted == {(target.graph, target.soc.name) for target in targets}


def test_a_graph_that_is_cut_brings_all_its_parts(tmp_path):
    file = project(
        tmp_path,
        {"g": {"source": "g.onnx", "split": {"at": ["t"]}}, "h": {"source": "h.onnx"}},
        ["SM8750"],
        contexts={"all": ["g", "h"]},
    )
    assert load(file).project.members("all") == ("g-0", "g-1", "h")


@pytest.mark.parametrize(
    ("contexts", "more", "told"),
    [
        ({"short": ["short", "long"]}, {}, "contexts.short has the name of a graph"),
        ({"both": ["short", "lang"]}, {}, "contexts.both names 'lang'; there are short, long"),
        ({"both": ["short", "short"]}, {}, "contexts.both has one graph"),
        ({"a": ["short", "long"], "b": ["long", "short"]}, {}, "is in two contexts, a and b"),
        ({"both": ["short", "long"]}, {"route": "dlc"}, "graphs share a context on route ort, this is dlc"),
        ({"both": []}, {}, "must not be empty"),
    ],
)
def test_what_cannot_be_is_told(tmp_path, contexts, more, told):
    with pytest.raises(UsageError) as caught:
        load(written(tmp_path, contexts, **more))
    assert told in str(caught.value)


def test_a_part_alone_and_other_chips_are_told(tmp_path):
    named = {"g": {"source": "g.onnx", "split": {"at": ["t"]}}, "h": {"source": "h.onnx", "socs": ["SM8650"]}}
    with pytest.raises(UsageError, match="names a part: name 'g'"):
        load(project(tmp_path, named, ["SM8750"], contexts={"all": ["g-0", "h"]}))
    with pytest.raises(UsageError, match="for different chips"):
        load(project(tmp_path, named, ["SM8750"], contexts={"all": ["g", "h"]}))


def context(*names):
    port = (TensorInfo("x", "FLOAT_32", (1, 4)),)
    made = tuple(GraphInfo(name, port, port) for name in names)
    return ContextInfo(3, "v2.51.0", 6, "2.40.0", "5.51.0", "4.0.6", 100, 69, 79, made)


@pytest.mark.parametrize(
    ("info", "size", "rules"),
    [
        (context("a", "b"), 150, ["context-not-run"]),
        (context("a", "b"), 200, ["context-larger", "context-not-run"]),
        (context("a", "a"), 150, ["context-graphs"]),
        (context("a", "b", "c"), 150, ["context-graphs"]),
        (context("a", "c"), 150, ["context-graphs", "context-not-run"]),
    ],
)
def test_a_context_is_held_against_the_graphs_themselves(info, size, rules):
    own = [context("a"), context("b")]
    assert [each.rule for each in judge(["a", "b"], info, size, own, 200)] == rules


def test_other_inputs_than_alone_are_told():
    other = replace(context("a", "b").graphs[1], inputs=())
    info = replace(context("a"), graphs=(*context("a").graphs, other))
    found = judge(["a", "b"], info, 150, [context("a"), context("b")], 200)
    assert found[0].message == "b has other inputs or outputs in the context than alone"
