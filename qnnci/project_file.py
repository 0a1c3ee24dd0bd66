"""Reading qnn.yaml: every complaint names the line and, for a wrong key, the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from qnnci.errors import UsageError
from qnnci.project import Project

Loc = tuple[str | int, ...]
_LIMIT_BYTES = 1 << 20
_DEPTH = 12  # the deepest key of a project is at 6; deeper nesting is an alias bomb


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project, where it was read from, and at which line each key stands. `path` is None for one made of flags."""

    project: Project
    path: Path | None = None
    lines: dict[Loc, int] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        """The folder that relative paths in the project start from."""
        return self.path.parent if self.path else Path()

    def line(self, *loc: str | int) -> int:
        """Line of a key, or of the nearest key above it that is in the file; 0 where there is no file."""
        return next((self.lines[loc[:end]] for end in range(len(loc), 0, -1) if loc[:end] in self.lines), 0)


def load(path: Path, edit: Callable[[dict[str, Any]], dict[str, Any]] = lambda data: data) -> ProjectFile:
    """Read and validate a project file; `edit` may change the raw data first, as flags do.

    Raises:
        UsageError: not there, not YAML, or not a project; every complaint with its line.

    """
    text = _read(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = dict(_lines(node)) if node else {}
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(error.problem or "not YAML", where=f"{path}:{line}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"not YAML: {str(error).splitlines()[0]}", where=str(path)) from error
    if not isinstance(data, dict):
        raise UsageError("a project file is a mapping with name, socs and graphs", where=f"{path}:1")
    return ProjectFile(validate(edit(data), str(path), lines), path, lines)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LIMIT_BYTES:
            raise UsageError("larger than 1 MiB: not a project file", where=str(path))
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no project file {path}", hint="`qnnci init MODEL.onnx` writes one; `--config` names another"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read it: {error}", where=str(path)) from error


def validate(data: dict[str, Any], where: str, lines: dict[Loc, int] | None = None) -> Project:
    """Data to project.

    Raises:
        UsageError: all complaints, one a line.

    """
    try:
        return Project.model_validate(data)
    except ValidationError as error:
        told = [_complaint(each, where, lines or {}) for each in error.errors()]
    raise UsageError("\n".join(dict.fromkeys(told)), hint="the keys are described in docs/project-file.md")


def _complaint(error: Any, where: str, lines: dict[Loc, int]) -> str:
    loc: Loc = tuple(error["loc"])
    line = next((lines[loc[:end]] for end in range(len(loc), 0, -1) if loc[:end] in lines), 1 if lines else 0)
    place = f"{where}:{line}" if line else where
    name = ".".join(str(part) for part in loc)
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), _valid_keys(loc[:-1]), n=1, cutoff=0.5)
        valid = ", ".join(_valid_keys(loc[:-1]))
        return f"{place}: unknown key {name!r}; {f'did you mean {near[0]!r}?' if near else f'valid keys: {valid}'}"
    message = error["msg"].removeprefix("Value error, ")
    given = f" (given: {error['input']!r})" if isinstance(error["input"], (str, int, float, bool)) else ""
    return f"{place}: {name or 'the file'}: {message}{given}"


def _valid_keys(loc: Loc) -> list[str]:
    """Keys that are allowed at a place, from the JSON Schema."""
    root = Project.model_json_schema()
    schemas = [root]
    for part in (None, *loc):
        below: list[dict[str, Any]] = []
        for schema in schemas:
            below += _step(schema, part)
        schemas = [each for schema in below for each in _resolved(schema, root)]
    return sorted({key for schema in schemas for key in schema.get("properties", {})})


def _step(schema: dict[str, Any], part: str | int | None) -> list[dict[str, Any]]:
    if part is None:
        return [schema]
    inner = schema.get("properties", {}).get(part) or schema.get("items") or schema.get("additionalProperties")
    by_pattern = list(schema.get("patternProperties", {}).values())
    return [each for each in (inner, *by_pattern) if isinstance(each, dict)]


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in schema:
        yield from _resolved(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root)
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from _resolved(each, root)
    else:
        yield schema


def _lines(node: yaml.Node, loc: Loc = (), visited: frozenset[int] = frozenset()) -> Iterator[tuple[Loc, int]]:
    if loc:
        yield loc, node.start_mark.line + 1
    if id(node) in visited or len(loc) > _DEPTH:
        raise yaml.MarkedYAMLError(problem="an alias that refers to itself", problem_mark=node.start_mark)
    visited |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
            here = (*loc, key.value)
            for place, line in _lines(value, here, visited):
                yield place, key.start_mark.line + 1 if place == here else line
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*loc, index), visited)
