"""The two config files of the context generator, read with the manners that were measured of the real loader.

Unknown keys of a graph are named and ignored, those of a device are ignored in silence, a wrong JSON type ends it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdk import says

_NEW = (2, 26)  # keys that 2.25 did not have; when each came is not known
_GRAPH: dict[str, tuple[str, tuple[int, int]]] = {
    "graph_names": ("strings", (2, 0)),
    **dict.fromkeys(("vtcm_mb", "vtcm_size", "hvx_threads", "num_cores"), ("unsigned", (2, 0))),
    "fp16_relaxed_precision": ("integer", (2, 0)),
    **dict.fromkeys(("O", "dlbc", "dlbc_weights", "sparse_weights_compression"), ("whole", (2, 0))),
    "finalize_config": ("object", (2, 0)),
    **dict.fromkeys(("cached_weights", "slc_alloc_enable", "vtcm_retention"), ("whole", _NEW)),
    **dict.fromkeys(
        (
            "weights_packing",
            "assume_same_quant",
            "share_io_buffer",
            "advanced_activation_fusion",
            "short_depth_conv_on_hmx_off",
            "fold_relu_activation_into_conv_off",
            "high_precision_sigmoid",
            "fp16_clamp_overflow",
            "monolithic_lstm",
        ),
        ("boolean", _NEW),
    ),
    "precision_compensation": ("boolean", (2, 49)),
    "hmx_op_bounding": ("object", _NEW),
    "dynamic_partitioning": ("integers", _NEW),
    "perf_profile": ("string", _NEW),
    "enable_predication": ("any", _NEW),
}
_DEVICE = {
    **dict.fromkeys(("soc_model", "soc_id", "device_id", "core_type", "device_type"), "integer"),
    **dict.fromkeys(("dsp_arch", "pd_session", "profiling_level"), "string"),
    "core_id": "integers",
    "cores": "objects",
    **dict.fromkeys(("use_dynamic_partitioning", "use_client_context", "async_voting"), "boolean"),
}
_CORE = {
    "perf_profile": "string",
    **dict.fromkeys(("rpc_control_latency", "rpc_polling_time", "hmx_timeout_us", "adaptive_polling_time"), "integer"),
    "ddr_perf_mode": "boolean",
}
_CONTEXT = {
    "weight_sharing_enabled": "boolean",
    **dict.fromkeys(("max_spill_fill_buffer_for_group", "group_id", "file_read_memory_budget_in_mb"), "integer"),
    **dict.fromkeys(("dsp_memory_profiling_enabled", "io_memory_estimation", "prepare_only"), "boolean"),
    "extended_udma": "boolean",
}
_TOP = {"graphs": "objects", "devices": "objects", "context": "object or objects", "memory": "object"}
_PROFILES = {
    "low_balanced", "balanced", "default", "high_performance", "sustained_high_performance", "burst",
    "extreme_power_saver", "low_power_saver", "power_saver", "high_power_saver", "system_settings", "custom",
}  # fmt: skip
_OUTER = {
    "backend_extensions", "context_configs", "graph_configs", "profile_configs", "async_graph_execution_config",
    "soc_configs",
}  # fmt: skip


class ConfigError(Exception):
    """A config file that ends the tool; its lines were printed."""


@dataclass(frozen=True)
class GraphOptions:
    names: tuple[str, ...]
    vtcm_mb: int | None = None
    optimization: int | None = None
    fp16: bool = False


@dataclass(frozen=True)
class HtpConfig:
    """What took effect; `soc_id` and `arch` are 0 where nothing was said."""

    soc_id: int = 0
    arch: int = 0
    graphs: tuple[GraphOptions, ...] = ()
    enabled: tuple[str, ...] = field(default=())  # context_configs.enable_graphs


def load(path: Path, minor: tuple[int, int], *, ignored: set[str], echo: bool = False) -> HtpConfig:
    """Read the outer file, and the inner one that it names; `ignored` keys have no effect.

    `echo` says what was accepted, as `--log_level info` does.

    Raises:
        ConfigError: the tool ends with it.

    """
    try:
        outer = _json(path)
    except ConfigError:
        says.native("ERROR", f"Could not parse config file: {path}")
        raise
    for key in outer.keys() - _OUTER:
        says.native("ERROR", f"Unknown Key = {key}")
    for at, graph in enumerate(outer.get("graph_configs", [])):
        if "graph_name" not in graph:
            says.native("ERROR", "Graph Config specified without a graph name in the config file.")
            raise ConfigError
        if "graph_priority" not in graph:
            says.native("ERROR", f"Invalid key: graph_configs/{at}/graph_priority")
    extensions = outer.get("backend_extensions", {})
    inner = HtpConfig()
    if extensions.get("config_file_path"):
        _find_library(str(extensions.get("shared_library_path", "")))
        inner = _load_inner(Path(extensions["config_file_path"]), minor, ignored)
        if echo:
            _echo(inner)
    soc = outer.get("soc_configs", {}).get("soc_model", inner.soc_id)
    enabled = tuple(outer.get("context_configs", {}).get("enable_graphs", ()))
    return HtpConfig(soc, inner.arch, inner.graphs, enabled)


def _echo(config: HtpConfig) -> None:
    if config.soc_id:
        says.native("INFO", f"Key: soc_model, Value: {config.soc_id}")
    for at, graph in enumerate(config.graphs):
        if graph.vtcm_mb is not None:
            in_bytes = graph.vtcm_mb << 20
            says.native("INFO", f"Key: graphs/{at}/vtcm_mb, Value: {graph.vtcm_mb}, {in_bytes} in bytes")
        if graph.optimization is not None:
            says.native("INFO", f"Key : O, Value: {graph.optimization}")


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        says.native("ERROR", f"Cannot open file {path}")
        raise ConfigError
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        says.native("ERROR", f"Input file {path} is not valid JSON, check format")
        raise ConfigError from error
    return data if isinstance(data, dict) else {}


def _find_library(name: str) -> None:
    folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    if not any(path.is_file() for path in (Path(name), *(Path(folder) / name for folder in folders))):
        says.native("ERROR", f"Unable to load backend extensions lib: [{name}]")
        raise ConfigError


def _load_inner(path: Path, minor: tuple[int, int], ignored: set[str]) -> HtpConfig:
    try:
        data = _json(path)
    except ConfigError:
        says.native("ERROR", "HTP backend extensions failed to parse config.")
        raise
    if minor < _NEW and isinstance(data.get("graphs"), dict):
        data["graphs"] = [data["graphs"]]  # the old form
    for pointer, problem in _schema_errors(data):
        says.native("ERROR", f"Input file does not adhere to schema, error in key: #/{pointer}")
        says.native("ERROR", f"Schema error: {problem}")
        says.native("ERROR", "backend config file schema validation failed")
        raise ConfigError
    _name_unknown(data, minor)
    device = _device(data, ignored)
    return HtpConfig(*device, tuple(_graphs(data, ignored)))


def _schema_errors(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _wrong(data, _TOP, "")
    for name, keys in (("graphs", {key: kind for key, (kind, _) in _GRAPH.items()}), ("devices", _DEVICE)):
        for at, each in enumerate(data.get(name, [])):
            yield from _wrong(each, keys, f"{name}/{at}/")
            for core, inner in enumerate(each.get("cores", [])):
                yield from _wrong(inner, _CORE, f"{name}/{at}/cores/{core}/")
    context = data.get("context", {})
    for each in context if isinstance(context, list) else [context]:
        yield from _wrong(each, _CONTEXT, "context/")
    if data.get("memory", {}).get("mem_type", "shared_buffer") != "shared_buffer":
        yield "memory/mem_type", "Value is not in enum"


def _wrong(given: dict[str, Any], keys: dict[str, str], at: str) -> Iterator[tuple[str, str]]:
    for key, value in given.items():
        if key in keys and not _is(value, keys[key]):
            yield f"{at}{key}", f"Value type not permitted by 'type' constraint: {keys[key]} expected"


def _is(value: Any, kind: str) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    whole = number and float(value).is_integer()
    return {
        "string": isinstance(value, str),
        "strings": isinstance(value, list) and all(isinstance(each, str) for each in value),
        "integers": isinstance(value, list) and all(isinstance(each, int) for each in value),
        "objects": isinstance(value, list) and all(isinstance(each, dict) for each in value),
        "object": isinstance(value, dict),
        "object or objects": isinstance(value, (dict, list)),
        "boolean": isinstance(value, bool),
        "integer": whole and not isinstance(value, float),
        "unsigned": whole and not isinstance(value, float),
        "whole": whole,
        "any": True,
    }[kind]


def _name_unknown(data: dict[str, Any], minor: tuple[int, int]) -> None:
    tail = " provided in HTP extensions config" if minor >= _NEW else ""
    unknown = [
        f"graphs/{at}/{key}"
        for at, graph in enumerate(data.get("graphs", []))
        for key in graph
        if key not in _GRAPH or minor < _GRAPH[key][1]
    ]
    context = data.get("context", {})
    inside = {f"context/{key}": value for key, value in context.items()} if isinstance(context, dict) else {}
    top = {key: value for key, value in data.items() if key not in _TOP}
    unknown += [f"{key}/0" for key, value in {**inside, **top}.items() if isinstance(value, list) and value]
    for key in unknown:
        says.native("ERROR", f"Unknown Key: {key}{tail}")


def _device(data: dict[str, Any], ignored: set[str]) -> tuple[int, int]:
    soc, arch = 0, 0
    for device in data.get("devices", [])[:1]:
        soc = device.get("soc_model", device.get("soc_id", 0))
        named = device.get("dsp_arch", "v0")
        if re.fullmatch(r"v\d+", named):
            arch = int(named[1:])
        else:
            says.native("ERROR", f"Error invalid dsp_arch value: {named}")
        if device.get("pd_session", "unsigned") not in {"unsigned", "signed"}:
            says.native(
                "WARNING",
                f"Invalid pd_session option: {device['pd_session']} provided, Setting default pd_session = unsigned",
            )
        for core in device.get("cores", []):
            profile = core.get("perf_profile", "default")
            if profile not in _PROFILES and not profile.startswith("llm_decode_"):
                says.native(
                    "ERROR",
                    f"Invalid perf_profile {profile} passed, Setting perf_profile to default HIGH_PERFORMANCE",
                )
    return 0 if ignored & {"soc_model", "soc_id"} else soc, 0 if "dsp_arch" in ignored else arch


def _graphs(data: dict[str, Any], ignored: set[str]) -> Iterator[GraphOptions]:
    for at, graph in enumerate(data.get("graphs", [])):
        for key in ("vtcm_mb", "vtcm_size", "hvx_threads"):
            if graph.get(key, 0) < 0:
                says.native(
                    "ERROR", f"Exception occurred: Value of key (graphs/{at}/{key}) is not convertible to uint32_t"
                )
                raise ConfigError
        kept = {key: value for key, value in graph.items() if key not in ignored}
        megabytes = kept.get("vtcm_mb", kept["vtcm_size"] >> 20 if "vtcm_size" in kept else None)
        level = kept.get("O")
        yield GraphOptions(
            tuple(kept.get("graph_names", ())),
            megabytes,
            None if level is None else int(level),
            bool(kept.get("fp16_relaxed_precision", 0)),
        )
