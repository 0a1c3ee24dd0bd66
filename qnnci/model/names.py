"""Names in ONNX graphs: who makes them, who reads them, in which order, and how they are changed safely."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Any

from qnnci.errors import UsageError
from qnnci.model.graph import label, subgraphs


def reads(node: Any) -> set[str]:
    """Names that a node needs, those that its subgraphs take from outside included."""
    names = {name for name in node.input if name}
    for graph in subgraphs(node):
        inside = defined(graph)
        needed = {value.name for value in graph.output}.union(*(reads(inner) for inner in graph.node))
        names |= needed - inside
    return names


def defined(graph: Any) -> set[str]:
    """Names that a graph itself makes: inputs, initializers and what its nodes make."""
    names = {value.name for value in graph.input}
    names.update(tensor.name for tensor in graph.initializer)
    names.update(tensor.values.name for tensor in graph.sparse_initializer)
    names.update(name for node in graph.node for name in node.output if name)
    return names


def rename_reads(nodes: Iterable[Any], names: Mapping[str, str]) -> None:
    """Make nodes, and the graphs in them, read other names. No name may be made twice in the model."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        for graph in subgraphs(node):
            rename_reads(graph.node, names)
            for value in graph.output:
                value.name = names.get(value.name, value.name)


def sort_nodes(graph: Any, where: str) -> bool:
    """Put nodes after those that they need, keeping their order where it can be kept. Says if any moved.

    Raises:
        UsageError: a name that nothing makes, one made twice, or a circle.

    """
    nodes = list(graph.node)
    maker: dict[str, int] = {}
    given = defined(graph) - {name for node in nodes for name in node.output}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name in given or (name and maker.setdefault(name, index) != index):
                raise UsageError(f"broken graph: {name!r} is made twice", where=where, hint="export the model again")
    waits = [{maker[name] for name in reads(node) if name in maker} for node in nodes]
    for node in nodes:
        if lost := sorted(reads(node) - given - maker.keys()):
            message = f"broken graph: node {label(node)!r} needs {lost[0]!r}, which nothing makes"
            raise UsageError(message, where=where, hint="export the model again")
    if lost := sorted({value.name for value in graph.output} - given - maker.keys()):
        message = f"broken graph: nothing makes the output {lost[0]!r}"
        raise UsageError(message, where=where, hint="export the model again")
    order = _order(waits)
    if len(order) < len(nodes):
        raise UsageError("broken graph: its nodes need each other in a circle", where=where, hint="export it again")
    if order == sorted(order):
        return False
    del graph.node[:]
    graph.node.extend(nodes[index] for index in order)
    return True


def _order(waits: list[set[int]]) -> list[int]:
    """Kahn's algorithm, always taking the earliest that is ready; shorter than `waits` where there is a circle."""
    left = [len(wait) for wait in waits]
    users: list[list[int]] = [[] for _ in waits]
    for index, wait in enumerate(waits):
        for other in wait:
            users[other].append(index)
    ready = [index for index, count in enumerate(left) if count == 0]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            left[user] -= 1
            if left[user] == 0:
                heapq.heappush(ready, user)
    return order


def fresh_name(name: str, used: set[str]) -> str:
    """`name`, or the first of `name/1`, `name/2`, … that is not in `used`; it is added there."""
    fresh, count = name, 1
    while fresh in used:
        fresh, count = f"{name}/{count}", count + 1
    used.add(fresh)
    return fresh


def make_names_unique(graph: Any) -> None:
    """Rename what nested graphs make where another graph makes the same name, so that bodies can be moved."""
    used = defined(graph)
    for node in graph.node:
        for body in subgraphs(node):
            _rename_body(body, {}, used)


def _rename_body(body: Any, outer: dict[str, str], used: set[str]) -> None:
    names = dict(outer)
    for name in sorted(defined(body)):
        names[name] = fresh_name(name, used)
    for value in [*body.input, *body.initializer, *body.output, *body.value_info]:
        value.name = names.get(value.name, value.name)
    for sparse in body.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    for node in body.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for inner in subgraphs(node):
            _rename_body(inner, names, used)
