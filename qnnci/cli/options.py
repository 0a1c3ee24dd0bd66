"""Options that verbs share: each is a flag, and on GitHub the input of an action."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

# As `qnnci.project` has them, which takes too long to import here.
PRECISIONS = ("fp16", "w8a8", "w8a16", "w4a16")
ROUTES = ("ort", "model-lib", "dlc")
FAIL_ON = ("error", "warning", "never")
UNTIL = ("prepare", "convert")

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class Lists(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4, older ones do too
    """Names separated by commas, spaces or newlines, as an action's input gives them; the option may repeat too."""

    name = "names"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(value.replace(",", " ").split())


class Lines(Lists):
    """Values separated by newlines: a value may hold commas and spaces."""

    name = "values"
    envvar_list_splitter = "\n"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(line.strip() for line in value.splitlines() if line.strip())


def joined(_ctx: click.Context, _param: click.Parameter, value: Any) -> tuple[str, ...]:
    return tuple(name for names in value for name in names)


def option(*names: str, env: str = "", **settings: Any) -> Decorator:
    return click.option(*names, envvar=f"QNNCI_INPUT_{env}" if env else None, **settings)


def names(*names: str, env: str, lines: bool = False, **settings: Any) -> Decorator:
    kind = Lines() if lines else Lists()
    return option(*names, env=env, multiple=True, type=kind, callback=joined, **settings)


def project_options(command: Command) -> Command:
    options = (
        option("-c", "--config", env="CONFIG", help="Project file (default qnn.yaml)."),
        option("--model", env="MODEL", help="One model instead of a project file: path, https, hf:// or pypi://."),
        names("--soc", "socs", env="SOCS", help="Chips, by name or alias, instead of the project file's. Repeatable."),
        names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable."),
        option("--precision", env="PRECISION", type=click.Choice(PRECISIONS), help="Of every graph on every chip."),
        option("--route", env="ROUTE", type=click.Choice(ROUTES), help="How to compile."),
        option("--output", env="OUTPUT", help="Folder for everything that is made (default build)."),
        option("--fail-on", env="FAIL_ON", type=click.Choice(FAIL_ON), help="What fails a build (default error)."),
        option("--verify/--no-verify", env="VERIFY", default=None, help="Run binaries in the emulator."),
    )
    for each in reversed(options):
        command = each(command)
    return command
