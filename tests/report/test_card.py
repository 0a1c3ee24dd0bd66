"""The model card: what it says, what people wrote, and names that would be markup."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pages import entry, manifest

from qnnci.project import HuggingFace
from qnnci.report import front_matter
from qnnci.report.card import BEGIN, END, Facts, card
from qnnci.report.summary import markdown

HOSTILE = "x](http://evil) | <script>alert(1)</script> `a` **b** --> \n# c\n---\nlicense: mit\n![i](j) " + END


def facts(text: str = "vad", **more: object) -> Facts:
    made = manifest(text, socs=("SM8550", "SM8750"))
    entries = tuple(
        entry(each.graph, each.soc, text=text, binary=f"{each.graph}/{each.soc}/b.bin", qairt="v2.51.0")
        for each in made.entries
    )
    made = made.model_copy(update={"entries": entries})
    paths = {(each.graph, each.soc): each.binary for each in entries}
    given_ = {"about": HuggingFace(), "layout": "plain", "license": "MIT", "binaries": paths, **more}
    return Facts(repo="org/name", manifest=made, **given_)


def read(text: str) -> tuple[dict[str, object], str]:
    front, body = front_matter.split(text)
    data = yaml.safe_load(front)
    assert isinstance(data, dict)
    return data, body


def test_a_new_card():
    about = HuggingFace.model_validate(
        {
            "base_model": "snakers4/silero-vad",
            "pipeline_tag": "voice-activity-detection",
            "language": ["no"],
            "tags": ["vad"],
        }
    )
    data, body = read(card(facts(about=about, commit="me/it@abc", run="https://github.com/me/it/actions/runs/1"), ""))
    tags = data.pop("tags")
    assert data == {
        "license": "mit", "library_name": "onnxruntime", "base_model": ["snakers4/silero-vad"],
        "base_model_relation": "quantized", "pipeline_tag": "voice-activity-detection", "language": ["no"],
    }  # fmt: skip
    assert {"qnn", "vad"} <= {*tags}
    assert body.startswith("\n# vad for Snapdragon\n")
    assert "| SM8550 | v79 | enc | fp16 | 3 MiB | 0.999500 | 40.0 dB | [b.bin](enc/SM8550/b.bin) |" in body
    assert "3 QNN context binaries for 2 chips: SM8550, SM8750." in body
    assert "sha256 1111" in body
    assert f"of commit {markdown('me/it@abc')}" in body
    assert "in [a workflow run](https://github.com/me/it/actions/runs/1)" in body


@pytest.mark.parametrize(
    ("more", "there", "absent"),
    [
        ({"context_models": ["enc/SM8550/e_ctx.onnx"]}, ["addQnn", 'folder, "e_ctx.onnx"', "enc/SM8550/*"], ["sherpa"]),
        ({"layout": "sherpa-onnx", "archives": ["a.tar.bz2"]}, ["tar xf a.tar.bz2", "org/name a.tar.bz2"], ["addQnn"]),
        ({"layout": "onnxruntime", "archives": ["a.zip"]}, ["ONNXRUNTIME.md"], ["sherpa", "addQnn"]),
        ({"archives": ["a.tar.bz2"]}, [], ["sherpa", "addQnn", "ONNXRUNTIME"]),
    ],
)
def test_how_to_run_it_is_told_for_what_is_there(more, there, absent):
    text = card(facts(**more), "")
    assert [each for each in there if each not in text] == []
    assert [each for each in absent if each in text] == []


@pytest.mark.parametrize(
    ("licence", "notice", "expected"),
    [
        ("Apache-2.0", "LICENSE", {"license": "apache-2.0"}),
        ("GPL-3.0-or-later", "", {"license": "gpl-3.0"}),
        ("PDDL-1.0", "", {"license": "pddl"}),
        ("EUPL-1.2", "LICENSE.txt", {"license": "other", "license_name": "eupl-1.2", "license_link": "LICENSE.txt"}),
        ("Our own licence!", "", {"license": "other", "license_name": "our-own-licence"}),
        ("", "", {"license": "other", "license_name": "unknown"}),
    ],
)
def test_licences_as_the_hub_has_them(licence, notice, expected):
    data, _ = read(card(facts(license=licence, notice=notice), ""))
    assert {key: value for key, value in data.items() if key.startswith("license")} == expected


OLD = """---
# of people
license: other
license_name: old
datasets: [a/b]   # theirs
tags:
- speech
- "no"
widget:
  - text: "license: x"
# before the end
---
# Title by hand

Words by hand.

{part}
After it, by hand.
"""


def test_what_people_wrote_stays():
    first = card(facts(), OLD.format(part=f"{BEGIN}\nold\n{END}\n"))
    data, body = read(first)
    assert data["datasets"] == ["a/b"]
    assert data["widget"] == [{"text": "license: x"}]
    assert (data["license"], "license_name" in data) == ("mit", False)
    assert data["tags"][:2] == ["speech", "no"]
    for line in ("# of people", "datasets: [a/b]   # theirs", "# before the end"):
        assert line in first.split("\n")
    assert body.startswith("# Title by hand\n\nWords by hand.\n\n")
    assert body.endswith(f"{END}\n\nAfter it, by hand.\n")
    assert "old" not in body
    assert card(facts(), first) == first
    assert "# Title by hand" in card(facts(), "# Title by hand\n")
    assert card(facts(), "# Title by hand\n").count(BEGIN) == 1


def test_hostile_names_are_text():
    told = facts(HOSTILE, license=HOSTILE, allowed_because=HOSTILE, commit=HOSTILE, run=HOSTILE)
    text = card(told, "")
    data, body = read(text)
    assert data["license"] == "other"
    assert re.fullmatch(r"[a-z0-9.-]+", str(data["license_name"]))
    assert card(told, text) == text
    assert (body.count(BEGIN), body.count(END)) == (1, 1)
    html = MarkdownIt("commonmark").enable("table").render(body)
    assert "<script" not in html
    assert "<img" not in html
    assert set(re.findall(r'href="([^"]*)"', html)) == {
        "manifest.json", "enc/SM8550/b.bin", "enc/SM8750/b.bin", "dec/SM8550/b.bin"
    }  # fmt: skip
    assert html.count("<h1>") == 1


_WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
_VALUE = st.recursive(st.none() | st.booleans() | st.integers() | _WORD | st.text(max_size=30), lambda inner: st.lists(
    inner, max_size=3) | st.dictionaries(_WORD, inner, max_size=3), max_leaves=5)  # fmt: skip
_KEYS = st.sampled_from(["license", "tags", "datasets", "base_model", "model-index", "x.y"])


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(_KEYS, _VALUE), st.dictionaries(_KEYS, _VALUE))
def test_merged_yaml_holds_ours_and_theirs(theirs, ours):
    front = yaml.safe_dump(theirs, sort_keys=False) if theirs else ""
    expected = {key: value for key, value in {**theirs, **ours}.items() if not (key in ours and value is None)}
    assert (yaml.safe_load(front_matter.merged(front, ours)) or {}) == expected


@settings(max_examples=80, deadline=None)
@given(st.text() | st.text().map(lambda text: f"---\n{text}\n---\n{text}"))
def test_any_text_may_stand_in_a_cards_place(text):
    told = facts()
    once = card(told, text)
    front_matter.tags(front_matter.split(text)[0])
    assert BEGIN in once
    assert once.startswith("---\nlicense" if not front_matter.split(text)[0] else "---\n")
