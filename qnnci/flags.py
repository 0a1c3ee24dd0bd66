"""Command-line flags over the project file: flags beat file, file beats defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.errors import UsageError
from qnnci.project_file import ProjectFile, load, validate
from qnnci.soc import find_soc

DEFAULT_CONFIG = "qnn.yaml"
_DIGITS = 10  # of a dimension


@dataclass(frozen=True, slots=True)
class Flags:
    """What the user gave on the command line or as the action's inputs; None or empty where nothing was given."""

    config: str | None = None
    model: str | None = None
    socs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    precision: str | None = None
    route: str | None = None
    output: str | None = None
    fail_on: str | None = None
    verify: bool | None = None


def project_file(flags: Flags) -> ProjectFile:
    """Return the effective project of a file with flags over it, or of flags alone where a model is named.

    Raises:
        UsageError: flags that do not go together, or a project that does not hold.

    """
    if flags.model and flags.config:
        raise UsageError("give --model or --config, not both", hint="a project file names its own graphs")
    for name in flags.socs:
        find_soc(name)  # told here, a wrong one is not taken for the project file's
    if flags.model:
        return ProjectFile(validate(_over(_from_model(flags.model, flags.socs), flags), "flags"))
    return load(Path(flags.config or DEFAULT_CONFIG), lambda data: _over(data, flags))


def _from_model(model: str, socs: Sequence[str]) -> dict[str, Any]:
    if not socs:
        raise UsageError("--model needs the chips to compile for", hint="for example `--soc SM8750 --soc SM8650`")
    name = graph_name(model)
    return {"name": name, "socs": list(socs), "graphs": {name: {"source": model}}}


def graph_name(source: str) -> str:
    """A graph name from a file name: `dir/My Model.onnx` becomes `My_Model`."""
    if source.startswith("hf://"):
        source = source.split("@", maxsplit=1)[0]  # the revision
    elif source.startswith(("https://", "http://")):
        source = re.split(r"[?#]", source, maxsplit=1)[0]
    stem = re.split(r"[/\\]", source.rstrip("/"))[-1]
    stem = re.sub(r"\.onnx$", "", stem, flags=re.IGNORECASE)
    return re.sub(r"[^A-Za-z0-9_.-]", "_", stem).lstrip("_.-")[:100] or "model"


def _over(data: dict[str, Any], flags: Flags) -> dict[str, Any]:
    """Lay flags over raw project data; per-graph settings of the same kind give way too."""
    graphs = data.get("graphs")
    graphs = dict(graphs) if isinstance(graphs, dict) else {}
    top = {"route": flags.route, "output": flags.output, "fail_on": flags.fail_on, "precision": flags.precision}
    changed = {**data, **{key: value for key, value in top.items() if value is not None}}
    if flags.precision is not None:
        graphs = {name: _without(graph, "precision") for name, graph in graphs.items()}
    if flags.socs and not flags.model:
        changed["socs"] = list(flags.socs)
        graphs = {name: _without(graph, "socs") for name, graph in graphs.items()}
    if flags.verify is not None:
        changed["verify"] = {**_mapping(data.get("verify")), "enabled": flags.verify}
        graphs = {
            name: {**graph, "verify": {**_mapping(graph["verify"]), "enabled": flags.verify}}
            if isinstance(graph, dict) and graph.get("verify")
            else graph
            for name, graph in graphs.items()
        }
    if flags.inputs:
        if len(graphs) != 1:
            raise UsageError("--input fits a project of one graph", hint="write the shapes into the project file")
        name, graph = next(iter(graphs.items()))
        given = dict(parse_input(text) for text in flags.inputs)
        graphs = {name: {**_mapping(graph), "inputs": {**_mapping(_mapping(graph).get("inputs")), **given}}}
    return {**changed, "graphs": graphs} if graphs else changed


def _without(graph: Any, key: str) -> Any:
    return {name: value for name, value in graph.items() if name != key} if isinstance(graph, dict) else graph


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def parse_variable(text: str) -> tuple[str, str | None]:
    """Read `NAME=value`, and `NAME` alone, whose value is to be that of this environment (None).

    Raises:
        UsageError: it begins with no name of a variable.

    """
    name, sign, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        hint = "write `NAME=value`, or `NAME` alone to pass on its value from here"
        raise UsageError(f"cannot read the variable {text[:80]!r}", hint=hint)
    return name, value if sign else None


def parse_input(text: str) -> tuple[str, dict[str, Any]]:
    """Read `name=1,3,224,224` as a shape and `name:=16000` as a constant (JSON).

    Raises:
        UsageError: neither form.

    """
    hint = "write `name=1,3,224,224` for a shape or `name:=16000` for a constant"
    if match := re.fullmatch(r"(.+?):=(.+)", text.strip(), re.DOTALL):
        try:
            return match[1], {"value": json.loads(match[2])}
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the constant {match[2][:80]!r} is not JSON", hint=hint) from error
    if match := re.fullmatch(r"(.*[^:])=\[?([\d\s,x]*)\]?", text.strip(), re.DOTALL):
        dims = [dim for dim in re.split(r"[\s,x]+", match[2].strip()) if dim]
        if all(len(dim) <= _DIGITS for dim in dims):
            return match[1], {"shape": [int(dim) for dim in dims]}
    raise UsageError(f"cannot read the input {text[:80]!r}", hint=hint)
