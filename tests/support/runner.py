"""GitHub's runner as far as it reads a step: workflow commands in its log, both spellings, and the file of outputs.

Written after src/Runner.Common/ActionCommand.cs and src/Runner.Worker/{ActionCommandManager,FileCommandManager}.cs of
actions/runner, v2.33x, with what they do to odd input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

COMMANDS = frozenset(
    {
        *("error", "warning", "notice", "debug", "group", "endgroup", "echo", "stop-commands"),
        *("add-mask", "add-path", "set-env", "set-output", "save-state", "add-matcher", "remove-matcher"),
        "internal-set-repo-path",
    }
)
_DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}
_PROPERTY = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
_OLD = {"%3B": ";", "%0D": "\r", "%0A": "\n", "%5D": "]", "%25": "%"}


@dataclass(frozen=True)
class Command:
    name: str
    data: str
    properties: Mapping[str, str]


def lines(log: str) -> list[str]:
    """As the runner's reader splits them: a lone carriage return ends a line, and no other odd character does."""
    return re.split(r"\r\n|\n|\r", log)


def obeyed(log: str) -> list[Command]:
    """The commands that the runner carries out."""
    return list(_obeyed(log))


def _obeyed(log: str) -> Iterator[Command]:
    known, token = set(COMMANDS), ""
    for line in lines(log):
        command = _new(line, known) or _old(line, known)
        if command is None:
            continue
        if token:
            if command.name == token:
                known.remove(token)
                token = ""
        elif command.name == "stop-commands":
            token = command.data.lower()
            known.add(token)
        else:
            yield command


def _new(line: str, known: set[str]) -> Command | None:
    """`::name key=value,key=value::data`, at the start of the line."""
    head, mark, data = line.lstrip().removeprefix("::").partition("::")
    name, _, rest = head.partition(" ")
    if not line.lstrip().startswith("::") or not mark or name.lower() not in known:
        return None
    return Command(name.lower(), _plain(data, _DATA), _pairs(rest.strip(), ",", _PROPERTY))


def _old(line: str, known: set[str]) -> Command | None:
    """`##[name key=value;key=value]data`, anywhere in the line."""
    _, mark, rest = line.partition("##[")
    head, end, data = rest.partition("]")
    name, _, given = head.partition(" ")
    if not mark or not end or name.lower() not in known:
        return None
    return Command(name.lower(), _plain(data, _OLD), _pairs(given, ";", _OLD))


def _pairs(text: str, between: str, escapes: Mapping[str, str]) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split(between))
    return {key: _plain(value, escapes) for key, _, value in pairs if key and value}


def _plain(text: str, escapes: Mapping[str, str]) -> str:
    for code, char in escapes.items():
        text = text.replace(code, char)
    return text


def outputs(text: str) -> dict[str, str]:
    """What a GITHUB_OUTPUT file sets.

    Raises:
        ValueError: the runner would fail the step.

    """
    values, rest = {}, iter(text.removesuffix("\n").split("\n") if text else ())
    for line in rest:
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and not 0 <= heredoc < equals:
            name, value = line.split("=", 1)
        elif heredoc >= 0:
            name, delimiter = line.split("<<", 1)
            inside: list[str] = []
            while (part := next(rest, None)) != delimiter:
                if part is None:
                    raise ValueError(f"no {delimiter!r}")
                inside.append(part)
            value = "\n".join(inside)
        else:
            raise ValueError(f"invalid: {line!r}")
        if not name:
            raise ValueError("no name")
        values[name] = value
    return values
