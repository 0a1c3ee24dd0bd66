"""YAML to plain data, and the line of every key and item; whatever the file holds, it costs little."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from qnnci.errors import UsageError

Loc = tuple[str, ...]  # keys and indices from the top; an index as its digits
_BYTES = 1 << 20
_DEPTH = 16  # the deepest key of a project is at 6, and a constant has few dimensions
_NODES = 1 << 18  # with aliases followed: a file of a few hundred bytes can stand for billions
# What PyYAML's constructors stumble over, such as `!!int ""` or `!!timestamp soon`.
_BAD_TAG = (LookupError, AttributeError, TypeError, ArithmeticError)
_UNFIT = re.compile("[\0\ud800-\udfff]")  # YAML can escape them, but no path, no JSON and no terminal takes them


def read(path: Path) -> tuple[Any, dict[Loc, int]]:
    """Read a YAML file: its data, and at which line each place stands, aliases followed.

    Raises:
        UsageError: not there, not YAML, a key twice, or more of anything than a file for people has.

    """
    text = _text(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = _lines(node)
        return yaml.safe_load(text), lines
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(error.problem or "not YAML", where=f"{path}:{line}") from error
    except RecursionError as error:
        raise UsageError("nested too deeply", where=str(path)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"not YAML: {str(error).splitlines()[0]}", where=str(path)) from error
    except _BAD_TAG as error:
        raise UsageError("a value does not fit its tag (`!!…`)", where=str(path)) from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES + 1)
        if len(content) > _BYTES:
            raise UsageError("larger than 1 MiB: not a project file", where=str(path))
        return content.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no project file {path}", hint="`qnnci init MODEL.onnx` writes one; `--config` names another"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError("not text in UTF-8", where=f"{path}:{line}") from error


def _lines(top: yaml.Node | None) -> dict[Loc, int]:
    lines: dict[Loc, int] = {}
    waiting: list[tuple[yaml.Node, Loc, frozenset[int]]] = [(top, (), frozenset())] if top else []
    while waiting:
        node, loc, above = waiting.pop()
        if problem := _problem(node, loc, above, len(lines)):
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        for part, inner, mark in _inner(node):
            here = (*loc, part)
            if here in lines:
                raise yaml.MarkedYAMLError(problem=f"the key {part[:80]!r} stands twice", problem_mark=mark)
            lines[here] = mark.line + 1
            waiting.append((inner, here, above | {id(node)}))
    return lines


def _problem(node: yaml.Node, loc: Loc, above: frozenset[int], count: int) -> str:
    if id(node) in above:
        return "an alias that refers to itself"
    if len(loc) > _DEPTH:
        return "nested too deeply"
    if count > _NODES:
        return "too many values, with aliases followed"
    if isinstance(node, yaml.ScalarNode) and _UNFIT.search(node.value):
        return "a character that no file can hold"
    return ""


def _inner(node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Mark]]:
    """Each key or index of a node, what stands there, and where it begins."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or _UNFIT.search(key.value):
                raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
            yield key.value, value, key.start_mark
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield str(index), value, value.start_mark
