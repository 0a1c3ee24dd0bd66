"""What changed between two builds, and what it means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import qnnci
from test_shards import entry, manifest

from qnnci.manifest import Entry, save
from qnnci.manifest_diff import diff

OLD = entry("enc", "SM8550")


def changes(**fields):
    new = OLD.model_copy(update=fields)
    return [(each.field, each.effect, each.graph, each.soc) for each in diff(manifest(OLD), manifest(new))]


def test_the_same_work_differs_in_nothing():
    again = {"sha256": "f" * 64, "built_at": "later", "built_by": "another", "compile_seconds": 9, "compile_peak_mb": 7}
    assert changes(**again) == []


@pytest.mark.parametrize(
    ("field", "value", "effect"),
    [
        ("source_sha256", "a" * 64, "numbers"),
        ("encodings_sha256", "a" * 64, "numbers"),
        ("qairt", "v2.52.0", "numbers"),
        ("precision", "w8a8", "numbers"),
        ("spill_fill_bytes", 5, "speed"),
        ("bytes", 5, "speed"),
        ("graph_name", "other", "interface"),
        ("passed", False, "record"),
    ],
)
def test_each_change_says_what_it_may_change(field, value, effect):
    assert changes(**{field: value}) == [(field, effect, "enc", "SM8550")]


def test_targets_and_tools_come_and_go():
    new = manifest(entry("enc", "SM8750"), tools={"onnx": "2", "numpy": "1"})
    found = [(each.graph, each.soc, each.field, each.old, each.new) for each in diff(manifest(OLD), new)]
    assert found == [
        ("enc", "SM8550", "", "enc/SM8550/enc.bin", None),
        ("enc", "SM8750", "", None, "enc/SM8750/enc.bin"),
        ("", "", "tools.onnx", "1", "2"),
        ("", "", "tools.numpy", None, "1"),
    ]


@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # the values are of wrong types
@settings(max_examples=20)
@given(st.sampled_from(sorted(Entry.model_fields)))
def test_no_field_changes_unseen(field):
    always = {"sha256", "binary", "context_model", "compile_seconds", "compile_peak_mb", "built_at", "built_by"}
    new = OLD.model_copy(update={field: "something else"})
    with_new = manifest(OLD).model_copy(update={"entries": (new,)})
    assert bool(diff(manifest(OLD), with_new)) == (field not in always)


def test_as_a_person_reads_it(tmp_path):
    both = [entry("enc", "SM8550"), entry("enc", "SM8750")]
    save(tmp_path / "old/manifest.json", manifest(*both))
    save(tmp_path / "new/manifest.json", manifest(*(each.model_copy(update={"qairt": "v2.52.0"}) for each in both)))
    ended = qnnci("manifest", "diff", "old/manifest.json", "new", cwd=tmp_path)
    assert ended.code == 0
    assert ended.said.splitlines() == [
        "what may change its numbers",
        "  another compiler build: rounding and scheduling may differ: v2.51.0 → v2.52.0 (enc-SM8550, enc-SM8750)",
    ]
    assert qnnci("manifest", "diff", "old", "new", "--exit-code", cwd=tmp_path).code == 1
    same = qnnci("manifest", "diff", "old", "old/manifest.json", "--exit-code", cwd=tmp_path)
    assert (same.code, same.said) == (0, "nothing: both builds did the same work\n")
    told = json.loads(qnnci("manifest", "diff", "old", "new", "--json", cwd=tmp_path).said)
    assert {each["field"] for each in told} == {"qairt"}
    assert qnnci("manifest", "diff", "old", "absent", cwd=tmp_path).code == 2
