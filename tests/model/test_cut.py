"""A graph cut into parts: the same numbers on the CPU, and cuts that do not separate it are told of."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper
from support import graphs

from qnnci.errors import UsageError
from qnnci.model.cut import Part, cut


def outs_of(model, cuts):
    return [model.with_name(f"part-{number}.onnx") for number in range(len(cuts) + 1)]


def run(model, names, feed):
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(list(names), feed), strict=True))


def feed_of(model):
    rng = np.random.default_rng(0)
    return {
        each.name: rng.standard_normal([dim.dim_value for dim in each.type.tensor_type.shape.dim]).astype(np.float32)
        for each in onnx.load(str(model)).graph.input
    }


def chained(outs, parts, feed):
    pool = dict(feed)
    for out, part in zip(outs, parts, strict=True):
        pool |= run(out, part.gives, {name: pool[name] for name in part.takes})
    return pool


def test_parts_one_after_the_other_are_the_whole(tmp_path):
    model = graphs.residual(tmp_path / "g.onnx")
    cuts = [["b"], ["e"]]
    parts = cut(model, cuts, outs_of(model, cuts))
    assert parts == [Part(("x",), ("b",)), Part(("mask", "b"), ("e",)), Part(("mask", "e"), ("y",))]
    feed = feed_of(model)
    assert np.array_equal(chained(outs_of(model, cuts), parts, feed)["y"], run(model, ["y"], feed)["y"])
    held = [[each.name for each in onnx.load(str(out)).graph.initializer] for out in outs_of(model, cuts)]
    assert held == [["w1"], ["w2"], ["w3"]]


def test_weights_outside_stay_there(tmp_path):
    model = graphs.residual(tmp_path / "g.onnx")
    onnx.save(onnx.load(str(model)), str(model), save_as_external_data=True, location="g.data", size_threshold=0)
    cuts = [["d"]]
    parts = cut(model, cuts, outs_of(model, cuts))
    assert all(out.stat().st_size < 1000 for out in outs_of(model, cuts))
    feed = feed_of(model)
    assert np.array_equal(chained(outs_of(model, cuts), parts, feed)["y"], run(model, ["y"], feed)["y"])


def test_what_only_constants_lead_to_is_in_each_part_that_reads_it(tmp_path):
    nodes = [
        helper.make_node("Neg", ["w"], ["v"], name="constant"),
        helper.make_node("Add", ["x", "v"], ["a"]),
        helper.make_node("Add", ["a", "v"], ["y"]),
    ]
    model = graphs.save(tmp_path / "g.onnx", nodes, {"x": [1, 4]}, {"y": [1, 4]}, {"w": graphs.weight(1, 4)})
    parts = cut(model, [["a"]], outs_of(model, [["a"]]))
    assert parts == [Part(("x",), ("a",)), Part(("a",), ("y",))]


@pytest.mark.parametrize(
    ("cuts", "told", "hint"),
    [
        ([["bb"]], "names 'bb', which the graph has not", "did you mean 'b'"),
        ([["x"]], "names 'x', an input of the graph", "name what nodes make"),
        ([["w1"]], "names 'w1', which the graph has not", ""),
        ([["c"]], "does not separate the graph: b out of part 0 passes too", "at: [[c, b]]"),
        ([["a"], ["c"]], "b out of part 1 passes too", "at: [a, [c, b]]"),
        ([["e"], ["b"]], "cut 2 (b) leads to cut 1 (e)", "in the order in which the graph computes them"),
        ([["y"]], "leaves part 1 without a node", "in the middle"),
        ([["b"], ["b"]], "names 'b' in two cuts", ""),
        ([["b", "a"]], "names 'a', which no later part reads", "leave it out"),
    ],
)
def test_a_cut_that_cannot_be_is_told(tmp_path, cuts, told, hint):
    model = graphs.residual(tmp_path / "g.onnx")
    with pytest.raises(UsageError) as caught:
        cut(model, cuts, outs_of(model, cuts))
    assert told in caught.value.message
    assert hint in caught.value.hint
    assert not outs_of(model, cuts)[0].exists()


def test_what_the_message_names_is_enough(tmp_path):
    model = graphs.residual(tmp_path / "g.onnx")
    cuts = [["c", "b"]]
    parts = cut(model, cuts, outs_of(model, cuts))
    assert parts[0] == Part(("x",), ("b", "c"))
    feed = feed_of(model)
    assert np.array_equal(chained(outs_of(model, cuts), parts, feed)["y"], run(model, ["y"], feed)["y"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=9),
    st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=3), min_size=1, max_size=3),
)
def test_any_graph_is_cut_right_or_refused(tmp_path, pairs, wanted):
    """Adds of any two tensors before them; what is refused for tensors that pass is cut once these are named too."""
    names = ["x"]
    nodes = []
    for number, (one, other) in enumerate(pairs):
        nodes.append(helper.make_node("Add", [names[one % len(names)], names[other % len(names)]], [f"t{number}"]))
        names.append(f"t{number}")
    read = {name for node in nodes for name in node.input}
    ends = {name: [1, 3] for name in names[1:] if name not in read}
    model = graphs.save(tmp_path / "g.onnx", nodes, {"x": [1, 3]}, ends)
    cuts = [[f"t{number % len(nodes)}" for number in cut_at] for cut_at in wanted]
    outs = outs_of(model, cuts)
    try:
        parts = cut(model, cuts, outs)
    except UsageError as error:
        assert error.message.startswith("`split: {at: …}`")  # noqa: PT017 - what is right is told below
        return
    feed = feed_of(model)
    pool, whole = chained(outs, parts, feed), run(model, list(ends), feed)
    assert all(np.array_equal(pool[name], whole[name]) for name in ends)
    named = {name for each in cuts for name in each}
    assert all(set(part.takes) <= named | {"x"} for part in parts)
