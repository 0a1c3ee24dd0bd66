from __future__ import annotations

from pathlib import Path

import pytest

from qnnci.soc import find_soc
from qnnci.toolchain.htp_config import GRAPH_KEYS, config_findings, htp_config

V240, V251 = (2, 40, 0, 251030), (2, 51, 0, 260929)


def test_both_files():
    config = htp_config(
        find_soc("SM8750"),
        "encoder",
        vtcm_mb=8,
        optimization=3,
        options={"fp16_relaxed_precision": 1},
        library=Path("/sdk/libQnnHtpNetRunExtensions.so"),
        inner=Path("/b/htp_config.json"),
    )
    assert config.outer == {
        "backend_extensions": {
            "shared_library_path": "/sdk/libQnnHtpNetRunExtensions.so",
            "config_file_path": "/b/htp_config.json",
        }
    }
    assert config.inner == {
        "graphs": [{"graph_names": ["encoder"], "vtcm_mb": 8, "O": 3, "fp16_relaxed_precision": 1}],
        "devices": [
            {
                "soc_id": 69,
                "dsp_arch": "v79",
                "cores": [{"core_id": 0, "perf_profile": "burst", "rpc_control_latency": 200}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("options", "version", "severities"),
    [
        ({"hvx_threads": 4}, V240, []),
        ({"monolithic_lstm": True}, V251, []),
        ({"monolithic_lstm": True}, V240, ["warning"]),  # 2.40 would say nothing
        ({"precision_compensation": False}, (2, 49), []),
        ({"foo": 1}, V251, ["error"]),
        ({"O": 3}, V251, ["error"]),  # `compile: {optimization: 3}` is where it is said
        ({"hvx_threads": True}, V240, ["error"]),
        ({"hvx_threads": 2.5}, V240, ["error"]),
        ({"hvx_threads": -1}, V240, ["error"]),
        ({"dlbc": "1"}, V240, ["error"]),
        ({"monolithic_lstm": 1}, V251, ["error"]),
        ({"finalize_config": {"P": 1}, "dynamic_partitioning": [1], "perf_profile": "burst"}, V251, []),
        ({"finalize_config": 1, "dynamic_partitioning": {}, "perf_profile": 5}, V251, ["error"] * 3),
    ],
)
def test_what_a_project_may_add(options, version, severities):
    found = config_findings(options, version)
    assert [each.severity for each in found] == severities
    assert all(f"htp.{key}" in each.message for key, each in zip(options, found, strict=False))


def test_every_key_is_judged_by_the_sdk_that_brought_it():
    for key, since in GRAPH_KEYS.items():
        assert not any("known from SDK" in each.message for each in config_findings({key: 1}, since))
