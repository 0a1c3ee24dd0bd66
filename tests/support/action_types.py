"""What action-types.yml says beside each action.yml, out of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from qnnci.cli.options import Lines, Lists

HEAD = "# Made by `make docs`; the format is that of github.com/typesafegithub/github-actions-typing.\n"
STRING: dict[str, Any] = {"type": "string"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
INTEGER: dict[str, Any] = {"type": "integer"}
# The input `cache` is for the action's own steps, not for a verb; its default tells its two kinds apart.
_CACHES: dict[str, dict[str, Any]] = {
    "auto": {"type": "enum", "allowed-values": ["auto", "true", "false"]},
    "true": BOOLEAN,
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "result": {"type": "enum", "allowed-values": ["pass", "fail"]},
    "errors": INTEGER,
    "warnings": INTEGER,
    "cache-hit": BOOLEAN,
}


class _Plain(yaml.SafeDumper):
    """Without anchors, which not every reader of these files knows."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def text(path: Path, cli: click.Group) -> str:
    found = types(yaml.safe_load(path.read_text(encoding="utf-8")), cli)
    return HEAD + yaml.dump(found, Dumper=_Plain, sort_keys=False)


def types(action: dict[str, Any], cli: click.Group) -> dict[str, Any]:
    """The types of an action's inputs and outputs, in its own order."""
    options = {
        option.envvar: option
        for step, verb in verbs(action, cli)
        for option in verb.params
        if option.envvar in step.get("env", {})
    }
    inputs = {name: _input(name, about, options) for name, about in action.get("inputs", {}).items()}
    return {"inputs": inputs, "outputs": {name: OUTPUTS.get(name, STRING) for name in action.get("outputs", {})}}


def verbs(action: dict[str, Any], cli: click.Group) -> Iterator[tuple[dict[str, Any], click.Command]]:
    """An action's steps that run a verb, with it."""
    for step in action["runs"]["steps"]:
        if match := re.search(r'"\$QNNCI" ([a-z][a-z -]*)', step.get("run", "")):
            found: click.Command = cli
            for word in match[1].split():
                if isinstance(found, click.Group):
                    found = found.commands[word]
            yield step, found


def _input(name: str, about: dict[str, Any], options: dict[Any, click.Parameter]) -> dict[str, Any]:
    option = options.get(f"QNNCI_INPUT_{name.upper().replace('-', '_')}")
    if name == "cache" and option is None:
        return _CACHES[about["default"]]
    return STRING if option is None else _type(option)


def _type(option: click.Parameter) -> dict[str, Any]:
    kind = option.type
    if getattr(option, "is_flag", False):
        return BOOLEAN
    if isinstance(kind, Lists):  # a list takes commas too where it takes spaces
        return {"type": "list", "separator": "\n" if isinstance(kind, Lines) else ",", "list-item": STRING}
    if isinstance(kind, click.Choice):
        return {"type": "enum", "allowed-values": list(kind.choices)}
    if isinstance(kind, click.IntRange) or kind is click.INT:
        return INTEGER
    return {"type": "float"} if isinstance(kind, click.FloatRange) or kind is click.FLOAT else STRING
