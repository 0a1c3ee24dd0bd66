"""Verbs about phones and boards."""

from __future__ import annotations

from pathlib import Path

import click

from qnnci.cli.options import Command, option


@click.group()
def device() -> None:
    """See how binaries do on real hardware: phones by adb, boards by ssh."""


def _device_options(command: Command) -> Command:
    options = (
        click.argument("address"),
        option("--soc", env="SOC", help="The device's chip, where it does not say so itself."),
        click.option(
            "--ssh-option", "ssh_options", multiple=True, help="As `ssh -o` takes it: IdentityFile=… Repeatable."
        ),
    )
    for each in reversed(options):
        command = each(command)
    return command


@device.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def device_list(ctx: click.Context, /, *, as_json: bool) -> None:
    """List the phones that adb sees, and what to do for those that are not ready. Ends with 1 where none is."""
    from qnnci.commands import device as command

    ctx.exit(command.show_list(as_json=as_json))


@device.command("info")
@_device_options
@click.option("--for", "where", type=click.Path(path_type=Path), help="A manifest: which of its binaries are for it.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def device_info(
    ctx: click.Context,
    /,
    *,
    address: str,
    soc: str | None,
    ssh_options: tuple[str, ...],
    where: Path | None,
    as_json: bool,
) -> None:
    """Say what a device is: chip, system, free space. ADDRESS is adb, adb:SERIAL or ssh:user@host:port."""
    from qnnci.commands import device as command

    ctx.exit(command.info(address, ssh_options, soc or "", where, as_json=as_json))


VERBS = (device,)
