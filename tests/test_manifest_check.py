"""A manifest against its files: real binaries, then each way in which they can be others."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from support import graphs
from support.command import project, qnnci

from qnnci.manifest import devices, load, save
from qnnci.soc import htp_socs

ROOT = Path(__file__).resolve().parents[1]
compiles = pytest.mark.skipif(sys.version_info < (3, 11), reason="the embedded compiler needs Python 3.11")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    graphs.cnn(folder / "a.onnx")
    project(folder, {"a": {"source": "a.onnx"}}, ["SM8550", "SM8750"], verify={"enabled": False})
    assert qnnci("build", cwd=folder).code == 0
    return folder / "build"


@pytest.fixture
def build(built, tmp_path):
    return Path(shutil.copytree(built, tmp_path / "build"))


def told(build: Path) -> list[tuple[str, str]]:
    ended = qnnci("manifest", "check", "build", "--json", cwd=build.parent)
    found = [(each["rule"], each.get("soc", "")) for each in json.loads(ended.said)]
    assert ended.code == (1 if found else 0)
    return found


def edit(build: Path, **fields) -> None:
    manifest = load(build / "manifest.json")
    first, *others = manifest.entries
    save(build / "manifest.json", manifest.model_copy(update={"entries": (first.model_copy(update=fields), *others)}))


@compiles
def test_files_as_they_were_built_pass(build):
    assert told(build) == []
    ended = qnnci("manifest", "check", "build/manifest.json", cwd=build.parent)
    assert ended.said == "passed: 2 of 2 binaries are as they were built\n"


@compiles
def test_a_file_that_is_gone_cut_or_changed(build):
    one, other = sorted(build.glob("a/*/*.bin"))
    one.write_bytes(one.read_bytes()[:-3])
    other.unlink()
    assert told(build) == [("file-changed", "SM8550"), ("not-a-context", "SM8550"), ("file-missing", "SM8750")]


@compiles
def test_one_byte_that_libqnnsystem_does_not_mind(build):
    one = min(build.glob("a/*/*.bin"))
    data = bytearray(one.read_bytes())
    data[-1] ^= 1
    one.write_bytes(data)
    assert told(build) == [("file-changed", "SM8550")]


@compiles
def test_a_context_model_that_is_gone(build):
    sorted(build.glob("a/*/*_ctx.onnx"))[1].unlink()
    assert told(build) == [("file-missing", "SM8750")]


@compiles
@pytest.mark.parametrize(
    "lie", [{"soc_id": 69}, {"qairt": "v2.1"}, {"spill_fill_bytes": 1}, {"outputs": ()}, {"vtcm_bytes": 4 << 20}]
)
def test_a_manifest_that_says_otherwise(build, lie):
    edit(build, **lie)
    found = told(build)
    assert ("manifest-differs", "SM8550") in found


@compiles
def test_a_table_of_devices_that_leads_elsewhere(build):
    text = (build / "manifest.json").read_text()
    data = json.loads(text)
    data["devices"][0]["binaries"]["a"] = "../../etc/passwd"
    (build / "manifest.json").write_text(json.dumps(data))
    # `shards.join` makes the table anew from the entries, so nothing that was slipped in is believed.
    assert told(build) == []


def test_no_manifest_is_a_usage_error(tmp_path):
    ended = qnnci("manifest", "check", "absent", cwd=tmp_path)
    assert ended.code == 2
    (tmp_path / "manifest.json").write_text("{")
    assert qnnci("manifest", "check", ".", cwd=tmp_path).code == 2


def test_the_snippet_of_the_docs_finds_the_binaries_of_every_chip(tmp_path):
    from test_manifest import entry, manifest

    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs/manifest.md").read_text(), re.DOTALL)[0]
    space: dict[str, object] = {}
    exec(code, space)  # noqa: S102 - the snippet is what is tested
    find = space["binaries_for"]
    assert callable(find)
    full = manifest(*(entry(soc) for soc in htp_socs()))
    save(tmp_path / "manifest.json", full)
    for soc in htp_socs():
        for name in (soc.name, *soc.aliases):
            assert find(tmp_path / "manifest.json", name) == {"g": tmp_path / f"g/{soc.name}.bin"}
    assert find(tmp_path / "manifest.json", "MT6989") is None
    assert {(row.stub, row.skel) for row in devices((entry(htp_socs()[0]),))} == {
        (f"libQnnHtpV{htp_socs()[0].arch}Stub.so", f"libQnnHtpV{htp_socs()[0].arch}Skel.so")
    }
