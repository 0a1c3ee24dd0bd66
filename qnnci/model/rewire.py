"""Nodes between the ports of a graph and what is inside: tensors renamed, readers led elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx


def behind(graph: Any, name: str) -> str:
    """Let all that read an input read a new tensor, whose name is returned."""
    inside = _new(graph, name)
    reread(graph, name, inside)
    return inside


def before(graph: Any, name: str) -> str:
    """Let what makes an output, and all that read it, make and read a new tensor, whose name is returned."""
    inside = _new(graph, name)
    reread(graph, name, inside)
    rename(graph, name, inside)
    return inside


def reread(graph: Any, old: str, new: str) -> None:
    """Let all that read one tensor read another."""
    for node in graph.node:
        node.input[:] = [new if each == old else each for each in node.input]


def rename(graph: Any, old: str, new: str) -> None:
    """Let what makes a tensor call it otherwise."""
    for node in graph.node:
        node.output[:] = [new if each == old else each for each in node.output]


def in_order(graph: Any, nodes: Sequence[Any]) -> None:
    """Let the graph have these nodes, in this order."""
    ordered = onnx.GraphProto()
    ordered.node.extend(nodes)  # a copy: what is deleted below would go with its graph
    del graph.node[:]
    graph.node.extend(ordered.node)


def _new(graph: Any, name: str) -> str:
    there = {each for node in graph.node for each in (*node.input, *node.output)}
    inside = f"{name}/inside"
    while inside in there:
        inside += "/inside"
    return inside
