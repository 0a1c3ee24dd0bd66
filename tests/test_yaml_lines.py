"""Hostile and broken YAML: told, with the line where there is one, and cheap."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.yaml_lines import read

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


def told(path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as caught:
        read(path)
    return str(caught.value).removeprefix(f"{path}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na:\n  - 3\n", ":3: the key 'a' stands twice"),
        ("a:\n  b: 1\n  b: 1\n", ":3: the key 'b' stands twice"),
        (f"a: 1\n{'k' * 200}: 1\n{'k' * 200}: 1\n", ":3: the key"),
        ("a:\n\t- b\n", ":2: found character"),
        ("a: [1, 2\n", ":2: expected ',' or ']'"),
        ("a: *b\n", ":1: found undefined alias"),
        ("a: 1\n---\nb: 2\n", ":2: but found another document"),
        ("? [a, b]\n: c\n", ":1: a key must be text"),
        ("? {a: b}\n: c\n", ":1: a key must be text"),
        ("a: &a\n  b: *a\n", ":1: an alias that refers to itself"),
        ("&a [*a]", ":1: an alias that refers to itself"),
        (LAUGHS, ": too many values, with aliases followed"),
        ("a: " + "[" * 30 + "]" * 30, ":1: nested too deeply"),
        ("[" * 50_000, ": nested too deeply"),
        ("a: !!python/object/apply:os.system [ls]\n", ":1: could not determine a constructor"),
        ("a: !!int ''\n", ": a value does not fit its tag"),
        ("a: !!bool soon\n", ": a value does not fit its tag"),
        ("a: !!timestamp soon\n", ": a value does not fit its tag"),
        ("a: 2026-99-99\n", ": not YAML: month must be in 1..12"),
        ("a: 1\n<<: 5\n", ":2: expected a mapping"),
        ('a: 1\nb: "\\0"\n', ":2: a character that no file can hold"),
        ('a: 1\nb: "\\ud800"\n', ":2: a character that no file can hold"),
        ('"\\ud800": 1\n', ":1: a key must be text"),
        ("a: 1\nb: \x07\n", ": not YAML: unacceptable character"),
        (b"a: 1\nb: \xff\n", ":2: not text in UTF-8"),
        (bytes(range(256)), ":2: not text in UTF-8"),
        ("a: 1\n".encode("utf-16"), ":1: not text in UTF-8"),
        ("#" * ((1 << 20) + 1), ": larger than 1 MiB"),
    ],
    ids=range(28),
)
def test_bad_yaml_is_told(tmp_path, text, said):
    message = told(tmp_path / "bad.yaml", text)
    if said.startswith(": "):
        assert said.removeprefix(": ") in message
    else:
        assert message.startswith(said)
    assert len(message) < 200


def test_a_file_without_end_is_not_read_to_its_end():
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize("text", ["a: 1\r\nb: 2\r\n", "\ufeffa: 1\nb: 2\n", "a: 1\nb: 2"])
def test_line_ends_and_byte_order_marks_are_no_matter(tmp_path, text):
    path = tmp_path / "good.yaml"
    path.write_bytes(text.encode())
    assert read(path) == ({"a": 1, "b": 2}, {("a",): 1, ("b",): 2})


def test_aliases_and_merges_have_the_lines_of_what_they_stand_for(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text("a: &a\n  x: 1\nb: *a\nc:\n  <<: *a\n  y: 2\n")
    data, lines = read(path)
    assert data == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
    assert (lines["b",], lines["b", "x"], lines["c", "y"]) == (3, 2, 6)


@given(st.one_of(st.binary(max_size=200), st.text("ab:-[]{}&*!?|>%@`'\"#, \n\t~<01.", max_size=60).map(str.encode)))
@settings(max_examples=300, deadline=None)
def test_no_bytes_do_more_than_complain(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(content)
    try:
        _, lines = read(path)
    except UsageError as error:
        assert str(path) in str(error)  # noqa: PT017 - whether it is raised depends on the bytes
    else:
        assert all(1 <= line <= len(content) + 1 for line in lines.values())
