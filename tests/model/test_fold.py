"""Folding by itself: what becomes a constant, what must not, and how branches are taken out of an `If`."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from qnnci.errors import UsageError
from qnnci.model.fold import fold
from qnnci.model.graph import parameters, static_shape
from qnnci.model.names import sort_nodes

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def folded(text, head=HEAD):
    model = parser.parse_model(f"{head} {text}")
    known = fold(model, "here")
    return model.graph, known


def ops(graph):
    return [node.op_type for node in graph.node]


def test_shape_arithmetic_becomes_constants():
    text = """g (float[2, 3, 4] x) => (float[a, b] y) <int64 one = {1}, int64 zero = {0}, int64[1] rest = {-1}> {
        s = Shape(x) batch = Gather<axis = 0>(s, zero) n = Size(x) half = Div(n, batch)
        axes = Unsqueeze(batch, rest0) shape = Concat<axis = 0>(axes, rest) y = Reshape(x, shape) }"""
    graph, _ = folded(text.replace("<int64 one = {1}", "<int64[1] rest0 = {0}, int64 one = {1}"))
    assert ops(graph) == ["Reshape"]
    assert static_shape(graph.output[0].type) == (2, 12)
    assert {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer} == {"shape": [2, -1]}


def test_unknown_shapes_fold_nothing():
    graph, known = folded("g (float[n, 4] x) => (float[a] y) <int64[1] f = {-1}> { s = Shape(x) y = Reshape(x, s) }")
    assert ops(graph) == ["Shape", "Reshape"]
    assert (known.unsure, known.refused) == ([], [])


def test_what_is_not_needed_goes():
    graph, _ = folded("g (float[2] x, float[2] spare) => (float[2] y) <float w = {1}> { d = Exp(x) y = Relu(x) }")
    assert ops(graph) == ["Relu"]
    assert [value.name for value in graph.input] == ["x", "spare"]
    assert list(graph.initializer) == []


def test_large_values_are_not_stored():
    graph, _ = folded("g () => (float[a] y) <int64[1] s = {100000}> { c = ConstantOfShape(s) y = Neg(c) }")
    assert ops(graph) == ["ConstantOfShape", "Neg"]
    assert static_shape(graph.output[0].type) == (100_000,)


def test_random_numbers_and_quantized_weights_are_no_constants():
    text = """g (float[2] x) => (float[2] y) <int8[2] w = {1, 2}, float s = {0.5}, int8 z = {0}> {
        r = RandomUniform<shape = [2]>() d = DequantizeLinear(w, s, z) a = Add(r, d) y = Add(a, x) }"""
    graph, _ = folded(text)
    assert ops(graph) == ["RandomUniform", "DequantizeLinear", "Add", "Add"]


def test_a_constant_output_keeps_its_node():
    graph, _ = folded("g (float[2, 3] x) => (int64[2] s) { s = Shape(x) }")
    assert ops(graph) == ["Shape"]
    assert static_shape(graph.output[0].type) == (2,)


def test_an_empty_part_becomes_a_constant():
    text = """g (float[2, 3] x) => (float[a, b] y) <int64[1] a = {3}, int64[1] b = {9}, int64[1] one = {1}> {
        nothing = Slice(x, a, b, one) y = Concat<axis = 1>(nothing, x) }"""
    graph, _ = folded(text)
    assert ops(graph) == ["Concat"]
    assert static_shape(graph.output[0].type) == (2, 3)


BRANCHES = """g (float[2] x) => (float[a] y, float[a] z) <bool yes = {VALUE}> {
    y, z = If(yes) <
        then_branch = t () => (float[a] p, float[a] x) <float[1] w = {3}> { y = Mul(x, w) p = Neg(y) },
        else_branch = e () => (float[a] w, float[a] w) <float[1] w = {4}> { y = Abs(w) }
    > }"""


def test_the_branch_taken_may_pass_on_outside_values():
    graph, _ = folded(BRANCHES.replace("VALUE", "1"))
    assert ops(graph) == ["Mul", "Neg", "Identity"]
    assert [list(node.output) for node in graph.node] == [["y/1"], ["y"], ["z"]]
    assert list(graph.node[2].input) == ["x"]
    assert [static_shape(value.type) for value in graph.output] == [(2,), (2,)]


def test_the_branch_taken_may_give_a_constant_twice():
    graph, _ = folded(BRANCHES.replace("VALUE", "0"))
    assert ops(graph) == ["Identity", "Identity"]
    (stored,) = graph.initializer
    assert numpy_helper.to_array(stored).tolist() == [4]
    assert {node.input[0] for node in graph.node} == {stored.name}


def test_an_undecided_if_keeps_its_branches_and_what_they_read():
    text = """g (float[2] x, bool yes) => (float[2] y) <float[1] w = {3}> {
        a = Relu(x)
        y = If(yes) <
            then_branch = t () => (float[2] p) { p = Mul(a, w) },
            else_branch = e () => (float[2] p) { p = Neg(a) }
        > }"""
    graph, known = folded(text)
    assert ops(graph) == ["Relu", "If"]
    assert [tensor.name for tensor in graph.initializer] == ["w"]
    names = [attribute.g.output[0].name for attribute in graph.node[1].attribute]
    assert len(set(names)) == 2
    assert (known.unsure, known.refused) == ([], [])


def test_a_node_that_refuses_its_inputs_is_told_once():
    _, known = folded("g (float[2] x, float[3] z) => (float[a] y) { a = Add(x, z) b = Relu(a) y = Neg(b) }")
    assert [node.op_type for node, _ in known.refused] == ["Add"]
    assert known.refused[0][1]


def test_inputs_that_have_defaults_are_constants():
    head = '<ir_version: 3, opset_import: ["" : 11]>'
    model = parser.parse_model(f"{head} g (float[2] x, float[2] w) => (float[2] y) {{ y = Add(x, w) }}")
    model.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    fold(model, "here")
    assert [value.name for value in model.graph.input] == ["x"]
    assert model.ir_version == 4
    onnx.checker.check_model(model)


def test_sorting_keeps_the_order_that_can_be_kept():
    text = "g (float[2] x) => (float[2] y) { c = Neg(b) a = Relu(x) b = Exp(x) d = Add(a, c) y = Abs(d) }"
    graph = parser.parse_graph(text)
    assert sort_nodes(graph, "here")
    assert ops(graph) == ["Relu", "Exp", "Neg", "Add", "Abs"]
    assert not sort_nodes(graph, "here")


def test_a_branch_that_reads_what_nothing_makes():
    text = """g (float[2] x, bool yes) => (float[2] y) {
        y = If(yes) <
            then_branch = t () => (float[2] p) { p = Neg(gone) },
            else_branch = e () => (float[2] p) { p = Neg(x) }
        > }"""
    with pytest.raises(UsageError, match="needs 'gone'"):
        folded(text)


def test_parameters_count_every_stored_number():
    text = """g (float[2] x, bool yes) => (float[2] y) <float[2] w = {3, 4}> {
        c = Constant<value = float[2, 3] {1, 2, 3, 4, 5, 6}>()
        y = If(yes) <
            then_branch = t () => (float[2] p) <float[2] v = {1, 1}> { p = Add(v, w) },
            else_branch = e () => (float[2] p) { p = Neg(x) }
        > }"""
    assert parameters(parser.parse_model(f"{HEAD} {text}")) == 2 + 6 + 2
