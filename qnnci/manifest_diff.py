"""Two manifests of one project: what changed, and why a model may behave differently. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from qnnci.manifest import Entry, Manifest

Effect = Literal["numbers", "speed", "interface", "record"]

EFFECTS: Mapping[Effect, str] = {
    "interface": "what an app must follow",
    "numbers": "what may change its numbers",
    "speed": "what may change its speed and memory",
    "record": "what else changed",
}

# What a change of a field means for whoever runs the binary; a field that is not named here is only a record.
_EFFECTS: Mapping[str, tuple[Effect, str]] = {
    "source_sha256": ("numbers", "another source model"),
    "source": ("record", "the source's address"),
    "encodings_sha256": ("numbers", "other encodings"),
    "calibration_sha256": ("numbers", "other calibration inputs"),
    "precision": ("numbers", "another precision"),
    "quantization": ("numbers", "quantized in another way"),
    "float_fallback_ops": ("numbers", "other ops were left in float"),
    "route": ("numbers", "another way to compile"),
    "qairt": ("numbers", "another compiler build: rounding and scheduling may differ"),
    "options": ("numbers", "other options of converter or compiler"),
    "parity": ("numbers", "parity figures"),
    "export_parity": ("numbers", "parity of the export"),
    "export_metrics": ("numbers", "metrics of the export"),
    "task": ("numbers", "the metric of the project's own command"),
    "optimization": ("speed", "optimisation level"),
    "vtcm_bytes": ("speed", "VTCM"),
    "spill_fill_bytes": ("speed", "traffic between VTCM and DDR"),
    "const_bytes": ("speed", "size of the constants"),
    "op_data_bytes": ("speed", "size of the op data"),
    "bytes": ("speed", "size of the binary"),
    "inputs": ("interface", "inputs"),
    "outputs": ("interface", "outputs"),
    "graph_name": ("interface", "the name of the graph in the binary"),
    "soc_id": ("interface", "the chip in the binary"),
    "dsp_arch": ("interface", "the dsp arch in the binary"),
    "measurements": ("record", "what was measured on devices"),
    "passed": ("record", "the verdict"),
    "license": ("record", "the licence"),
}
# These differ between any two builds.
_ALWAYS = frozenset({"sha256", "binary", "context_model", "compile_seconds", "compile_peak_mb", "built_at", "built_by"})


@dataclass(frozen=True, slots=True)
class Change:
    """One field of one target; `old` and `new` as JSON has them, None where a whole target came or went."""

    graph: str
    soc: str
    field: str
    effect: Effect
    meaning: str
    old: Any
    new: Any


def diff(old: Manifest, new: Manifest) -> list[Change]:
    """Every change, by target; builds that did the same work differ in nothing."""
    return [*_targets(old, new), *_tools(old, new)]


def _targets(old: Manifest, new: Manifest) -> Iterator[Change]:
    before, after = ({(each.graph, each.soc): each for each in manifest.entries} for manifest in (old, new))
    for key in dict.fromkeys((*before, *after)):
        graph, soc = key
        if key not in after:
            yield Change(graph, soc, "", "interface", "no longer built", before[key].binary, None)
        elif key not in before:
            yield Change(graph, soc, "", "interface", "newly built", None, after[key].binary)
        else:
            yield from _fields(before[key], after[key])


def _fields(old: Entry, new: Entry) -> Iterator[Change]:
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    for field in before:
        if field not in _ALWAYS and before[field] != after[field]:
            effect, meaning = _EFFECTS.get(field, ("record", field.replace("_", " ")))
            values = [_short(field, each[field]) for each in (before, after)]
            yield Change(old.graph, old.soc, field, effect, meaning, *values)


def _short(field: str, value: Any) -> Any:
    """Of measurements only where, when and the middle of the runs: each has a table of its own."""
    if field != "measurements" or not isinstance(value, list):
        return value
    keys = ("npu_seconds", "npu_cpu_percent", "cpu_seconds", "cpu_cpu_percent")
    return [
        {"device": each["device"], "at": each["at"], **{key: each[key]["median"] for key in keys if each[key]}}
        for each in value
    ]


def _tools(old: Manifest, new: Manifest) -> Iterator[Change]:
    for tool in dict.fromkeys((*old.tools, *new.tools)):
        versions = old.tools.get(tool), new.tools.get(tool)
        if versions[0] != versions[1]:
            yield Change("", "", f"tools.{tool}", "record", f"version of {tool}", *versions)
