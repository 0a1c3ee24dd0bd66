"""The YAML at the top of a model card: our keys are set, every other line stays as people wrote it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

_FENCED = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w.-]*|\"[^\"\n]*\"|'[^'\n]*')[ \t]*:(?=[ \t\r\n]|\Z)")


def split(card: str) -> tuple[str, str]:
    """The YAML of a card, empty where it has none, and the rest."""
    found = _FENCED.match(card)
    return (found["yaml"], card[found.end() :]) if found else ("", card)


def tags(front: str) -> tuple[str, ...]:
    """The tags that a card has, none where they cannot be read. Every word is text: `no` is Norwegian."""
    try:
        data = yaml.load(front, Loader=yaml.BaseLoader)  # noqa: S506 - of a BaseLoader come texts, lists and mappings
    except (yaml.YAMLError, RecursionError):
        return ()
    found = data.get("tags") if isinstance(data, dict) else None
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def merged(front: str, ours: Mapping[str, Any]) -> str:
    """The YAML with our keys set: where they stood, else at the end; one whose value is None is taken out."""
    left = dict(ours)
    parts = []
    for key, text in _blocks(front):
        if key not in ours:
            parts.append(text)
        elif key in left:
            parts.append(_line(key, left.pop(key)))
    parts += [_line(key, value) for key, value in left.items()]
    return "".join(part if part.endswith("\n") or not part else f"{part}\n" for part in parts)


def _line(key: str, value: Any) -> str:
    if value is None:
        return ""
    plain = json.dumps(value, ensure_ascii=False).isprintable()  # what ends a line for some is escaped
    return yaml.safe_dump({key: value}, allow_unicode=plain, width=1 << 20)


def _blocks(front: str) -> Iterator[tuple[str, str]]:
    """Each top-level key with all its lines; what stands before the first one comes with an empty key.

    Comments and blank lines that end a block are of what follows, so they stay when a block goes.
    """
    key, held, loose = "", "", ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", front):
        found = _KEY.match(line)
        if found:
            yield key, held
            if loose:
                yield "", loose
            key, held, loose = found["key"].strip("\"'"), line, ""
        elif re.match(r"\s*(#|$)", line):
            loose += line
        else:
            held, loose = held + loose + line, ""
    yield key, held
    if loose:
        yield "", loose
