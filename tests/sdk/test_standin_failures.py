"""The stand-in fails when it is told to, and where its config files are wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

from qnnci.context.read import inspect
from sdk import htp_config
from sdk.running import config_for


@pytest.mark.parametrize(
    ("config", "accepted", "said"),
    [
        ({}, True, ""),
        ({"graphs": [], "devices": []}, True, ""),
        ({"graphs": [{"foo": 1}]}, True, "Unknown Key: graphs/0/foo provided in HTP extensions config"),
        ({"graphs": [{"o": 3}]}, True, "Unknown Key: graphs/0/o provided"),
        ({"devices": [{"htp_arch": 73}], "stray": 1}, True, ""),
        ({"context": {"enable_graphs": ["g"]}}, True, "Unknown Key: context/enable_graphs/0"),
        ({"graphs": {}}, False, "error in key: #/graphs"),
        ({"graphs": [{"vtcm_mb": "8"}]}, False, "error in key: #/graphs/0/vtcm_mb"),
        ({"graphs": [{"vtcm_mb": -1}]}, False, "(graphs/0/vtcm_mb) is not convertible to uint32_t"),
        ({"graphs": [{"O": 3.0, "fp16_relaxed_precision": 1}]}, True, ""),
        ({"graphs": [{"O": 2.5}]}, False, "#/graphs/0/O"),
        ({"graphs": [{"fp16_relaxed_precision": True}]}, False, "#/graphs/0/fp16_relaxed_precision"),
        ({"devices": [{"soc_model": "69"}]}, False, "#/devices/0/soc_model"),
        ({"devices": [{"dsp_arch": "V73"}]}, True, "Error invalid dsp_arch value: V73"),
        ({"devices": [{"dsp_arch": 73}]}, False, "#/devices/0/dsp_arch"),
        ({"devices": [{"cores": [{"perf_profile": "BURST"}]}]}, True, "Invalid perf_profile BURST passed"),
        ({"memory": {"mem_type": "other"}}, False, "#/memory/mem_type"),
    ],
)
def test_manners_of_the_config_loader(config, accepted, said, sdk, tmp_path, capsys):
    outer = sdk.config(tmp_path, config)
    try:
        htp_config.load(outer, (2, 51), ignored=set())
        loaded = True
    except htp_config.ConfigError:
        loaded = False
    printed = capsys.readouterr().out
    assert loaded == accepted, printed
    assert said in printed
    assert bool(said) == bool(printed)


def test_a_config_that_is_no_json_ends_the_generator(sdk, library, tmp_path):
    config = sdk.config(tmp_path, {})
    (tmp_path / "htp.json").write_text("{")
    ended = sdk.generate(tmp_path, "--model", library, "--config_file", config)
    assert (ended.code, "is not valid JSON, check format" in ended.said) == (9, True)


@pytest.mark.parametrize(
    ("way", "code", "said", "size"),
    [
        ("abort", -6, "terminate called", None),
        ("segfault", -11, "pid:", None),
        ("empty", 0, "", 0),
        ("error-inside", 0, "[ ERROR ]", None),
        ("2gib", 1, "limit is 2097152 KB", None),
        ("late-exit", 1, "Completed stage: Completion", 1),
        ("late-segfault", -11, "Completed stage: Completion", 1),
        ("import-error", 1, "cannot import name 'libPyIrGraph38'", None),
        ("no-libcxx", 127, "libc++.so.1: cannot open shared object file", None),
    ],
)
def test_ways_to_fail(way, code, said, size, sdk, library, tmp_path):
    ended = sdk.generate(tmp_path, "--model", library, "--soc_model", 43, fail=f"qnn-context-binary-generator:{way}")
    assert ended.code == code, ended.said
    assert said in ended.said
    made = tmp_path / "output/net.bin"
    assert (min(made.stat().st_size, 1) if made.exists() else None) == size


def test_it_can_hang(sdk, library, tmp_path):
    with pytest.raises(subprocess.TimeoutExpired):
        sdk.generate(tmp_path, "--model", library, fail="*:hang", timeout=2)


def test_it_can_ignore_a_key(sdk, library, tmp_path):
    config = sdk.config(tmp_path, config_for(43, "my_net", vtcm_mb=8, O=3))
    more = {"fail": "qnn-context-binary-generator:ignore=vtcm_mb"}
    assert sdk.generate(tmp_path, "--model", library, "--config_file", config, **more).code == 0
    graph = inspect(tmp_path / "output/net.bin").graphs[0]
    assert (graph.vtcm_bytes, graph.optimization) == (4 << 20, 3)


@pytest.mark.usefixtures("library")
def test_a_library_too_big_to_link(sdk, samples, tmp_path):
    arguments = ("-c", samples / "made/my.net.cpp", "-b", samples / "made/my.net.bin", "-t", "x86_64-linux-clang")
    ended = sdk("qnn-model-lib-generator", *arguments, cwd=tmp_path, fail="qnn-model-lib-generator:relocation")
    assert (ended.code, "relocation truncated to fit" in ended.said) == (1, True)
    assert "RuntimeError: Failed to compile model library for target: x86_64-linux-clang" in ended.said
    assert list(tmp_path.iterdir()) == []


def test_nothing_outside_the_tests_knows_of_it():
    product = Path(__file__).resolve().parents[2] / "qnnci"
    knowing = [path for path in product.rglob("*.py") if "standin" in path.read_text().lower()]
    assert knowing == []
