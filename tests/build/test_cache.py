"""A stage is skipped only when nothing that decides its result has changed, and its files are as it left them."""

from __future__ import annotations

import copy
import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnnci.build import cache
from qnnci.build.cache import Record, digests, key_of, load, save, seen_beside
from qnnci.rules import finding

PARTS = {"model": {"prepared.onnx": "0" * 64}, "soc_id": 69, "fp16": True, "label": "g", "shape": [1, 3]}


@pytest.mark.parametrize(
    "changed",
    [
        {"model": {"prepared.onnx": "1" * 64}},
        {"model": {"other.onnx": "0" * 64}},
        {"soc_id": 57},
        {"soc_id": "69"},
        {"fp16": False},
        {"label": ""},
        {"shape": [3, 1]},
        {"more": None},
    ],
)
def test_the_key_changes_with_each_part(changed):
    assert key_of(**{**PARTS, **changed}) != key_of(**PARTS)


def test_the_key_does_not_depend_on_order_or_process():
    assert key_of(**dict(reversed(PARTS.items()))) == key_of(**copy.deepcopy(PARTS))


@pytest.mark.parametrize("what", ["tool_versions", "_code"])
def test_the_key_changes_with_tools_and_with_our_own_code(monkeypatch, what):
    before = key_of(**PARTS)
    monkeypatch.setattr(cache, what, lambda: "another")
    assert key_of(**PARTS) != before


def test_our_code_is_all_that_decides_results(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    for folder in ("toolchain", "context", "build", "data"):
        (tmp_path / folder).mkdir()
    source = tmp_path / "model" / "prepare.py"
    seen = set()
    monkeypatch.setattr(cache, "files", lambda _: tmp_path)
    for text in ("a = 1", "a = 2"):
        source.write_text(text)
        seen.add(cache._code.__wrapped__())
    assert len(seen) == 2


RECORD = Record(
    data={"info": {"soc_id": 69, "shape": [1, 3]}, "at": "2026-12-01"},
    findings=(finding("spill-fill", "much", graph="g"), finding("int64-io", "ünïcode", line=3)),
    files={"a.bin": "", "a_ctx.onnx": ""},
    seconds=1.25,
    peak_mb=300,
)


@pytest.fixture
def folder(tmp_path):
    """A folder with a stage done under the key `key`."""
    (tmp_path / "a.bin").write_bytes(b"binary")
    (tmp_path / "a_ctx.onnx").write_bytes(b"wrapper")
    save(tmp_path, "compile", "key", RECORD)
    return tmp_path


def test_a_finished_stage_is_found_as_it_was(folder):
    found = load(folder, "compile", "key")
    assert (found.data, found.findings) == (RECORD.data, RECORD.findings)
    assert (found.seconds, found.peak_mb, found.cached) == (1.25, 300, True)
    assert {name: len(digest) for name, digest in found.files.items()} == {"a.bin": 64, "a_ctx.onnx": 64}


def test_saving_tells_the_digests_of_the_files(folder):
    saved = save(folder, "compile", "key", RECORD)
    assert saved.files == load(folder, "compile", "key").files
    assert not saved.cached


@pytest.mark.parametrize(("stage", "key"), [("compile", "other"), ("inspect", "key"), ("compile", "")])
def test_another_stage_or_key_is_not_done(folder, stage, key):
    assert load(folder, stage, key) is None


def test_a_touched_file_is_still_the_same(folder):
    os.utime(folder / "a.bin", (1, 1))
    assert load(folder, "compile", "key")


@pytest.mark.parametrize("content", [b"", b"bin", b"binarY", b"binary and more"])
def test_a_changed_file_undoes_the_stage(folder, content):
    (folder / "a.bin").write_bytes(content)
    assert load(folder, "compile", "key") is None


def test_a_changed_file_undoes_the_stage_whatever_time_it_is_given(folder):
    before = (folder / "a.bin").stat()
    (folder / "a.bin").write_bytes(b"BINARY")
    os.utime(folder / "a.bin", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load(folder, "compile", "key") is None


def test_a_stage_is_undone_by_what_else_it_read(folder, tmp_path):
    outside = [tmp_path / name for name in ("weights", "not there")]
    outside[0].write_bytes(b"1")
    save(folder, "prepare", "key", Record(data={"reads": seen_beside(outside, tmp_path)}))
    assert load(folder, "prepare", "key", beside=tmp_path)
    os.utime(outside[0], (1, 1))
    assert load(folder, "prepare", "key", beside=tmp_path)
    outside[0].write_bytes(b"2")
    assert load(folder, "prepare", "key", beside=tmp_path) is None
    outside[0].unlink()
    assert load(folder, "prepare", "key", beside=tmp_path) is None


def test_a_stage_that_moved_is_still_done(folder, tmp_path_factory):
    (folder / "weights").write_bytes(b"1")
    save(folder, "prepare", "key", Record(data={"reads": seen_beside([folder / "weights"], folder)}))
    moved = tmp_path_factory.mktemp("elsewhere") / "moved"
    shutil.copytree(folder, moved, copy_function=shutil.copyfile)  # as an artifact travels: times of its own
    shutil.rmtree(folder)
    assert load(moved, "compile", "key")
    assert load(moved, "prepare", "key", beside=moved)
    (moved / "weights").write_bytes(b"2")
    assert load(moved, "prepare", "key", beside=moved) is None


def test_digests_know_content_and_names_but_no_place(tmp_path):
    for name, content in (("a/x.npz", b"1"), ("b/x.npz", b"1"), ("c/y.npz", b"1"), ("d/x.npz", b"2")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    a, b, c, d = (digests(tmp_path / name) for name in "abcd")
    assert a == b
    assert len({*map(str, (a, c, d))}) == 3
    assert digests(tmp_path / "a/x.npz") == digests(tmp_path / "b/x.npz") != digests(tmp_path / "d/x.npz")
    assert digests(tmp_path / "missing") == []


def test_a_swapped_file_undoes_the_stage(folder):
    (folder / "b.bin").write_bytes(b"BINARY")
    (folder / "b.bin").replace(folder / "a.bin")
    assert load(folder, "compile", "key") is None


def test_a_missing_file_or_a_folder_in_its_place_undoes_the_stage(folder):
    (folder / "a.bin").unlink()
    assert load(folder, "compile", "key") is None
    (folder / "a.bin").mkdir()
    assert load(folder, "compile", "key") is None


def test_files_of_an_earlier_key_are_removed_and_no_others(folder):
    (folder / "mine.bin").write_bytes(b"not yours")
    (folder / "b.bin").write_bytes(b"binary")
    save(folder, "compile", "other", Record(files={"b.bin": "", "a_ctx.onnx": ""}))
    assert sorted(path.name for path in folder.iterdir()) == [".stages", "a_ctx.onnx", "b.bin", "mine.bin"]


GOOD = {"key": "key", "data": {}, "findings": [], "files": {}, "seconds": 0.0, "peak_mb": 0, "digest": "0"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SHAPES = st.dictionaries(st.sampled_from(sorted(GOOD)), JSON).map(lambda changed: json.dumps({**GOOD, **changed}))
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.binary(max_size=60) | JSON.map(json.dumps).map(str.encode) | SHAPES.map(str.encode))
@FUZZ
def test_a_record_that_we_did_not_write_is_no_record(folder, content):
    (folder / ".stages" / "compile.json").write_bytes(content)
    assert load(folder, "compile", "key") is None
    assert save(folder, "compile", "key", RECORD).files
    assert (folder / "a.bin").exists()


@given(st.data())
@FUZZ
def test_a_flipped_or_lost_byte_of_a_record_is_noticed(folder, data):
    path = folder / ".stages" / "compile.json"
    save(folder, "compile", "key", RECORD)
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.binary(max_size=1).filter(lambda byte: byte != whole[place : place + 1]))
    path.write_bytes(whole[:place] + other + whole[place + 1 :])
    found = load(folder, "compile", "key")
    assert found is None or (found.data, found.findings, found.seconds) == (RECORD.data, RECORD.findings, 1.25)


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"digest": ' + b"9" * 5000 + b"}", b"\xff", b'{"digest": "\\ud800"}']
)
def test_records_that_json_itself_stumbles_over(folder, content):
    (folder / ".stages" / "compile.json").write_bytes(content)
    assert load(folder, "compile", "key") is None
