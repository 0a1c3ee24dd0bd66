"""Nodes and tensors of a graph by the names that people give, exact or as patterns; unknown ones are told of."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

from qnnci.errors import UsageError

_NEAR = 3


def tensor_names(graph: Any) -> list[str]:
    """Inputs, weights, and what nodes make."""
    made = (name for node in graph.node for name in node.output if name)
    return list(dict.fromkeys((*(each.name for each in (*graph.input, *graph.initializer)), *made)))


def known(names: Iterable[str], of: Sequence[str], setting: str) -> None:
    """Hold names against those that there are.

    Raises:
        UsageError: an unknown one, with the nearest.

    """
    there = set(of)
    for name in names:
        if name not in there:
            raise UsageError(f"`{setting}` names {name!r}, which the graph has not", hint=_nearest(name, of))


def nodes_of(patterns: Iterable[str], graph: Any, setting: str) -> list[str]:
    """Names of the nodes that patterns mean, by their own names or by those of tensors that they make.

    Raises:
        UsageError: a pattern that means none, with the nearest names.

    """
    names = {node.name: (node.name, *node.output) for node in graph.node}
    found: dict[str, None] = {}
    for pattern in patterns:
        fits = [
            name
            for name, words in names.items()
            if pattern in words or any(fnmatch.fnmatchcase(word, pattern) for word in words)
        ]
        if not fits:
            every = [word for words in names.values() for word in words]
            raise UsageError(
                f"`{setting}` names {pattern!r}, which fits no node or tensor", hint=_nearest(pattern, every)
            )
        found |= dict.fromkeys(fits)
    return list(found)


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=_NEAR, cutoff=0.3)
    return f"did you mean {', '.join(map(repr, near))}?" if near else "names are those of prepared.onnx"
