"""The flags of every tool as data, and the two kinds of parsers that take them.

One flag a line: its spellings, what follows it, and notes. What follows: `.` nothing · `s` one value · `i` an int ·
`f` a float · `p` a path that must exist · `2` two values · `?` none or one · `*` any number · `+` one or more. Behind
it: `a` it may come several times, `=` its default, `!` required. Notes: `since=2.35`, `until=2.35`, `hidden`,
`of=--new` the deprecated spelling of another flag, `one=group` exclusive within a group.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdk import flag_tables

Version = tuple[int, int]


@dataclass(frozen=True)
class Flag:
    names: tuple[str, ...]
    follows: str
    repeated: bool = False
    required: bool = False
    default: str = ""
    hidden: bool = False
    replaces: str = ""  # the new spelling, where this one is deprecated
    group: str = ""

    @property
    def dest(self) -> str:
        """The name in the namespace: the first long spelling."""
        long = next((name for name in self.names if name.startswith("--")), self.names[0])
        return long.lstrip("-").replace("-", "_")


def flags(tool: str, version: Version, forgotten: set[str]) -> list[Flag]:
    """The flags that this version of a tool knows."""
    lines = (line for line in flag_tables.TABLES[tool].splitlines() if line.strip())
    return [flag for line in lines for flag in _flag(line, version) if not forgotten & set(flag.names)]


def _flag(line: str, version: Version) -> Iterator[Flag]:
    names, what, *notes = line.split()
    said = {key: value for key, _, value in (note.partition("=") for note in notes)}
    since, until = (
        tuple(map(int, said.get(key, other).split("."))) for key, other in (("since", "0"), ("until", "99"))
    )
    if not since <= version < until:
        return
    found = re.fullmatch(r"([.sifp2?*+])(a?)(!?)(?:=(.*))?", what)
    assert found, line
    yield Flag(
        names=tuple(names.split(",")),
        follows=found[1],
        repeated=bool(found[2]),
        required=bool(found[3]),
        default=found[4] or "",
        hidden="hidden" in said or "of" in said,
        replaces=said.get("of", ""),
        group=said.get("one", ""),
    )


class _ExistingPath(argparse.Action):
    """The real tools check paths in actions like this one: a missing file is a traceback, not a usage error."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: Any = None) -> None:
        if not Path(values).exists():
            raise FileNotFoundError(f"No such file or directory: {values}")
        setattr(namespace, self.dest, values)


def parser(tool: str, version: Version, forgotten: set[str]) -> argparse.ArgumentParser:
    """The parser of a tool in Python: no positionals, abbreviations allowed, usage errors exit 2."""
    made = argparse.ArgumentParser(prog=tool, allow_abbrev=True, conflict_handler="resolve")
    groups: dict[str, Any] = {}
    for flag in flags(tool, version, forgotten):
        if flag.group and flag.group not in groups:
            groups[flag.group] = made.add_mutually_exclusive_group()
        groups.get(flag.group, made).add_argument(*flag.names, **_argument(flag))
    return made


def _argument(flag: Flag) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        ".": {"action": "store_true"},
        "s": {},
        "i": {"type": int},
        "f": {"type": float},
        "p": {"action": _ExistingPath},
        "2": {"nargs": 2},
        "?": {"nargs": "?", "const": "info"},
        "*": {"nargs": "*"},
        "+": {"nargs": "+"},
    }
    argument: dict[str, Any] = {"dest": flag.dest, **kinds[flag.follows]}
    if flag.repeated:
        argument |= {"action": "append", "default": []}
    elif flag.follows in "if" and flag.default:
        argument["default"] = argument["type"](flag.default)
    elif flag.follows == "+":
        argument["default"] = []
    elif flag.follows != ".":
        argument["default"] = flag.default or None
    if flag.required:
        argument["required"] = True
    return {**argument, "help": argparse.SUPPRESS if flag.hidden else f"see the documentation of {flag.dest}"}


def deprecated(arguments: Sequence[str], tool: str, version: Version) -> dict[str, str]:
    """Old spellings on the command line, with their new ones. Only whole words count: `--act_bw=8` evades it."""
    known = {name: flag.replaces for flag in flags(tool, version, set()) if flag.replaces for name in flag.names}
    return {argument: known[argument] for argument in arguments if argument in known}


def settle(namespace: argparse.Namespace, tool: str, version: Version) -> None:
    """Let what was given in an old spelling count for the new one."""
    for flag in flags(tool, version, set()):
        old = getattr(namespace, flag.dest, None)
        if flag.replaces and old and str(old) != flag.default:
            setattr(namespace, flag.replaces.lstrip("-"), old)


class NativeUsageError(Exception):
    """A command line that a C++ tool refuses; the text is what it prints."""


def native(tool: str, version: Version, forgotten: set[str], arguments: Sequence[str]) -> dict[str, str]:
    """Values by flag of a C++ tool, which takes `--x v` and `--x=v` and no abbreviations; a bare flag has `1`.

    Raises:
        NativeUsageError: an unknown flag, or a required one is missing.

    """
    known = {name: flag for flag in flags(tool, version, forgotten) for name in flag.names}
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        flag = known.get(name)
        if flag is None:
            raise NativeUsageError(f"Invalid Argument Consumption\nUnused Arguments: {name}\nInitialization failure")
        if flag.follows == ".":
            value = "1"
        elif not equals:
            if not rest:
                raise NativeUsageError(f"Arguments Invalid: {name}\nERROR: Failed to parse command line arguments")
            value = rest.pop(0)
        found[flag.dest] = value
    if not {"help", "version"} & found.keys():
        for flag in known.values():
            if flag.required and flag.dest not in found:
                raise NativeUsageError(f"Missing required argument: --{flag.dest}")
    return found


def native_help(tool: str, version: Version, forgotten: set[str]) -> str:
    shown = [flag for flag in flags(tool, version, forgotten) if not flag.hidden]
    return f"Usage:\n  {tool} [options]\n\n" + "\n".join(f"  {', '.join(flag.names)}" for flag in shown)
