"""The two JSON files that tell the HTP backend what to compile for. Pure; rules measured on QAIRT 2.51's own loader.

An unknown key gives an error line at best and silence at worst, never an exit code: so only known keys are written,
and whether they took effect is read out of the written binary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.findings import Finding
from qnnci.rules import finding
from qnnci.soc import Soc

Version = tuple[int, ...]

# Keys of the inner file and the SDK they came with; those without a newer one are in 2.25 already.
_FIRST: Version = (2, 25)
GRAPH_KEYS: dict[str, Version] = {
    **dict.fromkeys(
        (
            "graph_names", "vtcm_mb", "vtcm_size", "O", "fp16_relaxed_precision", "hvx_threads", "num_cores", "dlbc",
            "dlbc_weights", "sparse_weights_compression", "finalize_config",
        ),
        _FIRST,
    ),
    # First seen in 2.51; no earlier SDK than this is known to take them.
    **dict.fromkeys(
        (
            "cached_weights", "slc_alloc_enable", "vtcm_retention", "weights_packing", "assume_same_quant",
            "share_io_buffer", "advanced_activation_fusion", "short_depth_conv_on_hmx_off",
            "fold_relu_activation_into_conv_off", "high_precision_sigmoid", "fp16_clamp_overflow", "monolithic_lstm",
            "hmx_op_bounding", "dynamic_partitioning", "perf_profile",
        ),
        (2, 51),
    ),
    "precision_compensation": (2, 49),
}  # fmt: skip
_BOOLEAN = frozenset({
    "weights_packing", "assume_same_quant", "share_io_buffer", "advanced_activation_fusion",
    "short_depth_conv_on_hmx_off", "fold_relu_activation_into_conv_off", "high_precision_sigmoid",
    "fp16_clamp_overflow", "monolithic_lstm", "precision_compensation",
})  # fmt: skip
_OTHER = {"finalize_config": dict, "hmx_op_bounding": dict, "dynamic_partitioning": list, "perf_profile": str}
# Set from the SoC table and the project's own keys: a project that sets them here too would contradict itself.
_OURS = frozenset({"graph_names", "vtcm_mb", "vtcm_size", "O"})

_CORE = {"core_id": 0, "perf_profile": "burst", "rpc_control_latency": 200}  # for a device's run: compiling ignores it


@dataclass(frozen=True, slots=True)
class HtpConfig:
    """Both files as data, and where the inner one goes."""

    outer: dict[str, Any]
    inner: dict[str, Any]


def htp_config(
    soc: Soc,
    graph_name: str,
    *,
    vtcm_mb: int,
    optimization: int,
    options: Mapping[str, Any],
    library: Path,
    inner: Path,
) -> HtpConfig:
    """Config for one graph on one chip. `library` is libQnnHtpNetRunExtensions.so, `inner` the inner file's path.

    `graph_names` must be the sanitised name, or the graph's options are not applied (2.40) or composing fails.
    """
    graph = {"graph_names": [graph_name], "vtcm_mb": vtcm_mb, "O": optimization, **options}
    device = {"soc_id": soc.id, "dsp_arch": soc.dsp_arch, "cores": [_CORE]}
    return HtpConfig(
        outer={"backend_extensions": {"shared_library_path": str(library), "config_file_path": str(inner)}},
        inner={"graphs": [graph], "devices": [device]},
    )


def config_findings(options: Mapping[str, Any], version: Version) -> list[Finding]:
    """What is wrong with a project's own `htp:` options, before any tool runs."""
    return list(_config_findings(options, version))


def _config_findings(options: Mapping[str, Any], version: Version) -> Iterator[Finding]:
    for key, value in options.items():
        if key in _OURS:
            yield finding("htp-config", f"htp.{key} is set from the SoC table and `compile:`")
        elif key not in GRAPH_KEYS:
            yield finding("htp-config", f"htp.{key} is no key of any SDK: the tool would not say so")
        elif version < GRAPH_KEYS[key]:
            since = ".".join(map(str, GRAPH_KEYS[key]))
            message = f"htp.{key} is known from SDK {since} on; this one would ignore it"
            yield finding("htp-config", message, severity="warning")
        elif not _fits(key, value):
            yield finding("htp-config", f"htp.{key} is {value!r}: the wrong JSON type ends the tool")


def _fits(key: str, value: object) -> bool:
    if key in _BOOLEAN:
        return isinstance(value, bool)
    if key in _OTHER:
        return isinstance(value, _OTHER[key])
    # Whole numbers only: true, 2.5 and "3" all fail the loader's schema.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
