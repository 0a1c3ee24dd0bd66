"""Verbs about the project file: matrix, show, init, schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from qnnci.errors import UsageError
from qnnci.files import write_text
from qnnci.flags import Flags, graph_name, project_file
from qnnci.plan import matrix as matrix_of
from qnnci.plan import plan
from qnnci.project import Project
from qnnci.report import github
from qnnci.soc import find_soc

_BLANK = "fill-in"
DEFAULT_SOCS = ("SM8550", "SM8650", "SM8750")
_FIXED_ARCH = 68  # no chip of it has fp16


def matrix(flags: dict[str, Any], graphs: Sequence[str], max_jobs: int | None) -> None:
    """Print one line of JSON, with `graphs`, `prepare` and `shards`; on GitHub, set it as outputs too."""
    file = project_file(Flags(**flags))
    made = matrix_of(plan(file.project, graphs), max_jobs)
    lines = {name: json.dumps(each, separators=(",", ":")) for name, each in {"matrix": made, **made}.items()}
    click.echo(lines["matrix"])
    if github.on_github():
        github.write_outputs({**lines, "directory": github.workspace_path(file.base / file.project.output)})


def show(flags: dict[str, Any]) -> None:
    """Print the effective project as YAML that is a project file again, and the targets as comments."""
    file = project_file(Flags(**flags))
    data = file.project.model_dump(mode="json", exclude_none=True)
    for name, graph in data["graphs"].items():
        # The project's, where the graph has no word of its own: a default here would be one.
        for key, of in (("convert", file.project.convert_for), ("quantize", file.project.quantize_for)):
            if key in graph:
                graph[key] = of(name).model_dump(mode="json", exclude_none=True)
    click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)
    click.echo("# targets")
    for target in plan(file.project):
        refusal = target.refusal
        click.echo(f"#   {target.stem}.bin{f'  refused: {refusal.message}' if refusal else ''}")


def schema() -> None:
    """Print the JSON Schema of qnn.yaml; the repository keeps the same text."""
    click.echo(schema_text(), nl=False)


def schema_text() -> str:
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Project.model_json_schema()}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def init(model: str, output: Path, socs: Sequence[str], *, force: bool) -> None:
    """Write a starter project file.

    Raises:
        UsageError: the file is there already, or the model is not one.

    """
    from qnnci.files import default_cache
    from qnnci.model.graph import describe
    from qnnci.model.source import fetch

    if output.exists() and not force:
        raise UsageError(f"{output} is there already", hint="`--force` overwrites it")
    source = fetch(model, sha256=None, base=Path(), cache=default_cache())
    ports = describe(source.path).inputs
    name = graph_name(model)
    chips = [find_soc(soc) for soc in socs or DEFAULT_SOCS]
    fixed = sorted({soc.dsp_arch if soc.arch == _FIXED_ARCH else soc.name for soc in chips if not soc.fp16})
    lines = [
        "# What every key means: docs/project-file.md, or `qnnci schema`.",
        f"name: {_quoted(name)}",
        f"socs: [{', '.join(soc.name for soc in chips)}]",
        *_precision(fixed, every=all(not soc.fp16 for soc in chips)),
        "graphs:",
        f"  {_quoted(name)}:",
        f"    source: {_quoted(_relative(model, output))}",
        f"    sha256: {source.sha256}",
        "    inputs:" if ports else "    inputs: {}",
    ]
    lines += [f"      {_quoted(port.name)}: {_shape(port.dims)}{_remark(port.dims)}" for port in ports]
    if fixed:
        lines.append(
            f"    calibration: {_BLANK}  # FILL IN: 8 or more real inputs: a .npz, a folder, an input_list.txt"
        )
    lines += [
        "gates:",
        "  parity:",
        "    - {metric: cosine, min: 0.99}",
        "    - {metric: snr_db, min: 20, severity: warning}",
    ]
    lines += ["  spill_fill_bytes: {max: 0, severity: warning}"]
    write_text(output, "\n".join(lines) + "\n")
    todo = "fill in what is marked, then" if any("FILL IN" in line for line in lines) else "next:"
    click.echo(f"wrote {output}: {todo} `qnnci build{'' if output == Path('qnn.yaml') else f' -c {output}'}`")


def _precision(fixed: Sequence[str], *, every: bool) -> list[str]:
    """A precision for the chips that have no fp16; none where all have it."""
    if not fixed:
        return []
    if every:
        return ["precision: w8a16 # these chips have no fp16"]
    rest = ", ".join(f"{name}: w8a16" for name in fixed)
    return [f"precision: {{default: fp16, {rest}}} # what is named has no fp16"]


def _quoted(text: str) -> str:
    """Text as a YAML scalar on one line, whatever stands in it."""
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).strip()


def _relative(model: str, output: Path) -> str:
    """A local path as the project file must write it: from its own folder."""
    path = Path(model)
    if "://" in model or path.is_absolute() or not path.exists():
        return model
    folder = output.resolve().parent
    full = path.resolve()
    return str(full.relative_to(folder)) if full.is_relative_to(folder) else str(full)


def _shape(dims: Sequence[int | str | None] | None) -> str:
    """The shape as far as it is known; what a person must say is no number, so that a build asks for it."""
    if dims is None:
        return f"[{_BLANK}]"
    known = [str(dim) if isinstance(dim, int) and dim > 0 else _BLANK for dim in dims]
    if known and known[0] == _BLANK and not re.search(r"(?i)seq|len|time|frame", str(dims[0])):
        known[0] = "1"  # the batch
    return f"[{', '.join(known)}]"


def _remark(dims: Sequence[int | str | None] | None) -> str:
    if dims is None:
        return "  # FILL IN: the model does not say its rank"
    if not dims:
        return "  # a scalar; `{value: …}` folds it away"
    shown = json.dumps([str(dim) for dim in dims])  # in ASCII, it cannot end the comment
    if _BLANK in _shape(dims):
        return f"  # FILL IN: dynamic in the model: {shown}"
    return "" if all(isinstance(dim, int) and dim > 0 for dim in dims) else f"  # in the model: {shown}"
