"""The device-selection table, and reading a manifest back."""

from __future__ import annotations

import json

import pytest

from qnnci.errors import UsageError
from qnnci.manifest import Entry, Manifest, device_for, devices, load
from qnnci.soc import all_socs, htp_socs


def entry(soc, graph="g", *, passed=True, qairt="v2.51.0.1") -> Entry:
    return Entry(
        graph=graph,
        soc=soc.name,
        soc_id=soc.id,
        dsp_arch=soc.dsp_arch,
        precision="w8a8",
        passed=passed,
        binary=f"{graph}/{soc.name}.bin",
        sha256="0" * 64,
        bytes=1,
        context_model="",
        graph_name="",
        route="ort",
        qairt=qairt,
        optimization=3,
        vtcm_bytes=None,
        spill_fill_bytes=None,
        const_bytes=None,
        op_data_bytes=None,
        io_bytes=None,
        inputs=(),
        outputs=(),
        source="",
        source_sha256="",
        license=None,
        parity=None,
        compile_seconds=0,
        compile_peak_mb=None,
        built_at="",
        built_by="",
    )


def manifest(*entries) -> Manifest:
    table = devices(entries)
    return Manifest(name="p", license=None, passed=True, tools={}, entries=entries, devices=table, findings=())


FULL = manifest(*(entry(soc) for soc in htp_socs()))


@pytest.mark.parametrize("soc", htp_socs(), ids=lambda soc: soc.name)
def test_a_phone_finds_its_binary_by_name_alias_and_binning(soc):
    for name in (soc.name, *soc.aliases):
        device = device_for(FULL, name)
        assert device.soc_model == name
        assert device.binaries == {"g": f"g/{soc.name}.bin"}
    if soc.name[-1].isdigit() and soc.name.startswith("SM"):
        assert device_for(FULL, f"{soc.name}PH").soc == soc.name


@pytest.mark.parametrize("name", ["", "SM9999", "MT6989", "Tensor G5"] + [s.name for s in all_socs() if not s.has_htp])
def test_every_other_phone_runs_on_its_cpu(name):
    assert device_for(FULL, name) is None
    assert FULL.fallback == "cpu"


def test_a_chip_that_was_not_built_runs_on_its_cpu():
    some = manifest(*(entry(soc) for soc in htp_socs() if soc.name == "SM8550"))
    assert device_for(some, "SM8550P").binaries == {"g": "g/SM8550.bin"}
    assert device_for(some, "SM8750") is None


def test_only_what_passed_is_offered_and_the_newest_runtime_is_asked_for():
    soc = next(soc for soc in htp_socs() if soc.name == "SM8750")
    table = devices(
        (
            entry(soc, "old", qairt="v2.9.0.250101-3"),
            entry(soc, "new", qairt="v2.51.0.260929"),
            entry(soc, "bad", passed=False, qairt="v3.0.0"),
        )
    )
    assert {row.soc_model for row in table} == {"SM8750", "SM8750P"}
    assert table[0].binaries == {"old": "old/SM8750.bin", "new": "new/SM8750.bin"}
    assert table[0].min_runtime == "v2.51.0.260929"


def test_a_manifest_is_read_back_as_written(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(FULL.model_dump_json())
    assert load(path) == FULL


GOOD = json.loads(FULL.model_dump_json())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[" * 100_000, "Invalid JSON"),
        (b"[]", "Input should be an object"),
        (b"{}", "name: Field required"),
        (json.dumps({**GOOD, "version": 2}), "version: Input should be 1"),
        (json.dumps({**GOOD, "extra": 2}), "extra: Extra inputs"),
        (json.dumps({**GOOD, "entries": [{**GOOD["entries"][0], "bytes": "many"}]}), "entries.0.bytes: "),
    ],
    ids=range(8),
)
def test_what_is_no_manifest_is_told(tmp_path, content, said):
    path = tmp_path / "manifest.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match="is not a manifest of version 1") as caught:
        load(path)
    assert said in caught.value.message
    assert "qnnci build" in caught.value.hint


def test_a_manifest_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "manifest.json")
