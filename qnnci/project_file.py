"""Reading qnn.yaml: every complaint names the line and, for a wrong key, the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qnnci import parts
from qnnci.errors import UsageError
from qnnci.project import GRAPH_NAME, NAME, SHA256, Project
from qnnci.strict import PYTHON, VARIABLE
from qnnci.variants import expand
from qnnci.yaml_lines import Loc, read

_TOLD = 20  # complaints; more help nobody
_SHOWN = 80  # characters of a value or key that is complained of
_WORDS = {
    "missing": "is missing",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "string_type": "must be text; put it in quotes",
    "invalid_key": "a key must be text; put it in quotes",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
}

_PATTERNS = {
    GRAPH_NAME: "must be letters, digits, `_`, `.` and `-`, and begin with a letter or digit",
    NAME: "must be letters, digits, `_`, `.` and `-`, and begin with a letter or digit",
    SHA256: "must be 64 digits of 0-9 and a-f",
    PYTHON: 'must be a version such as "3.10"',
    VARIABLE: "must be the name of an environment variable",
}


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

    def line(self, *loc: str) -> int:
        """Line of a key, or of the nearest key above it that is in the file; 0 where there is no file."""
        return _line(loc, self.lines)


def load(path: Path, edit: Callable[[dict[str, Any]], dict[str, Any]] = lambda data: data) -> ProjectFile:
    """Read and validate a project file; `edit` may change the raw data first, as flags do.

    Raises:
        UsageError: not there, not YAML, or not a project; every complaint with its line.

    """
    data, lines = read(path)
    if not isinstance(data, dict):
        raise UsageError("a project file is a mapping with name, socs and graphs", where=f"{path}:1")
    data, lines = expand(data, lines, str(path))
    data, lines = parts.expand(edit(data), lines, str(path))
    return ProjectFile(validate(data, str(path), lines), path, lines)


def validate(data: dict[str, Any], where: str, lines: dict[Loc, int] | None = None) -> Project:
    """Data to project.

    Raises:
        UsageError: all complaints, one a line.

    """
    try:
        return Project.model_validate(parts.expand(data, lines or {}, where)[0])
    except ValidationError as error:
        errors = error.errors()
    told = list(dict.fromkeys(_complaint(each, where, lines or {}) for each in errors[:_TOLD]))
    if len(errors) > _TOLD:
        told.append(f"… and {len(errors) - _TOLD} more")
    raise UsageError("\n".join(told), hint="the keys are described in docs/project-file.md")


def _complaint(error: Any, where: str, lines: dict[Loc, int]) -> str:
    # Of a key that is wrong itself, pydantic says so in one more part.
    loc: Loc = tuple(str(part) for part in error["loc"] if part != "[key]")
    line = _line(loc, lines) or (1 if lines else 0)
    place = f"{where}:{line}" if line else where
    name = ".".join(loc)
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(loc[-1], _valid_keys(loc[:-1]), n=1, cutoff=0.5)
        valid = ", ".join(_valid_keys(loc[:-1]))
        said = f"did you mean {near[0]!r}?" if near else f"valid keys: {valid}"
        return f"{place}: unknown key {_short(name)}; {said}"
    return f"{place}: {_short(name, str) if name else 'the file'}: {_words(error)}"


def _words(error: Any) -> str:
    """What is wrong in the words of YAML; pydantic's own are those of Python."""
    pattern = error.get("ctx", {}).get("pattern")
    words = _PATTERNS.get(pattern) or _WORDS.get(error["type"])
    if words is None:
        words = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    shown = isinstance(error["input"], (str, int, float)) and error["type"] != "value_error"
    return f"{words} (given: {_short(error['input'])})" if shown else words


def _short(value: object, form: Callable[[object], str] = repr) -> str:
    try:
        text = form(value)
    except ValueError:  # Python refuses to print an integer of thousands of digits
        return "a huge number"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _line(loc: Loc, lines: dict[Loc, int]) -> int:
    """Line of the deepest part of a place that is in the file; 0 where none is.

    Parts that only the model has, such as `shape` where the file gives a list, are left out.
    """
    here: Loc = ()
    for part in loc:
        if (*here, part) in lines:
            here = (*here, part)
    return lines.get(here, 0)


def _valid_keys(loc: Loc) -> list[str]:
    """Keys that are allowed at a place, from the JSON Schema."""
    root = _schema()
    schemas = [root]
    for part in (None, *loc):
        below: list[dict[str, Any]] = []
        for schema in schemas:
            below += _step(schema, part)
        schemas = [each for schema in below for each in _resolved(schema, root)]
    return sorted({key for schema in schemas for key in schema.get("properties", {})})


@cache
def _schema() -> dict[str, Any]:
    return Project.model_json_schema()


def _step(schema: dict[str, Any], part: str | None) -> list[dict[str, Any]]:
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
