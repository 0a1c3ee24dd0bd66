"""Verbs about the machine: chips, compiler, SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qnnci.cli.options import Command, names, option


@click.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Chips without HTP too.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def socs(*, names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """List the chips that can be compiled for, or look some up by name or alias."""
    from qnnci.report import chips

    chips.show(names, everything=everything, as_json=as_json)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def doctor(ctx: click.Context, /, *, as_json: bool) -> None:
    """Prove the toolchain by compiling a tiny graph, and print every version."""
    from qnnci.commands import doctor as command

    ctx.exit(command.run(as_json=as_json))


@click.group()
def sdk() -> None:
    """Bring, find and examine the QAIRT SDK, which the routes model-lib and dlc need."""


def _sdk_options(command: Command) -> Command:
    command = click.option("--root", help="Folder of the SDK (default QNN_SDK_ROOT, else what is installed).")(command)
    return option("--version", env="SDK_VERSION", help="As in 2.40.0.251030, or cut short at a dot.")(command)


@sdk.command("install")
@click.argument("version", required=False, envvar="QNNCI_INPUT_SDK_VERSION")
@option(
    "--from",
    "source",
    env="SDK_SOURCE",
    default="mirror",
    help="mirror (default), vendor, hf://org/repo, https://…/v{version}.zip, a zip, or an unpacked folder.",
)
@names("--for", "needs", env="SDK_FOR", help="Unpack only what ort, model-lib or dlc need (default model-lib,dlc).")
@option(
    "--accept-license",
    "accepted",
    env="ACCEPT_QAIRT_LICENSE",
    is_flag=True,
    help="You accept Qualcomm's licence of the SDK, LICENSE.pdf in it.",
)
@click.option("--python/--no-python", default=True, help="Make the Python environment of its tools (default).")
@option("--cache", env="CACHE", type=click.Path(path_type=Path), help="Folder to install into (QNNCI_CACHE).")
def sdk_install(*, version: str | None, source: str, needs: tuple[str, ...], **options: Any) -> None:
    """Install a QAIRT SDK (default 2.40.0.251030) and the Python environment of its tools."""
    from qnnci.commands import sdk as command

    command.install(version, source, needs, **options)


@sdk.command("path")
@_sdk_options
@click.option("--python", is_flag=True, help="The interpreter of its tools instead.")
def sdk_path(*, version: str | None, root: str | None, python: bool) -> None:
    """Print the folder of the SDK that builds would use."""
    from qnnci.commands import sdk as command

    command.path(version, root, python=python)


@sdk.command("doctor")
@_sdk_options
@click.option("--route", "routes", multiple=True, type=click.Choice(("model-lib", "dlc")), help="Default both.")
@names("--soc", "socs", env="SOCS", help="Chips that there must be run-time libraries for. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def sdk_doctor(ctx: click.Context, /, *, version: str | None, root: str | None, **options: Any) -> None:
    """Examine an SDK: its libraries, Python, NDK, every flag that is used, and folders of dsp arches."""
    from qnnci.commands import sdk as command

    ctx.exit(command.doctor(version, root, **options))


VERBS = (socs, doctor, sdk)
