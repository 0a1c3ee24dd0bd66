"""Verbs about phones and boards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qnnci.cli.options import Command, names, option


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


def _run_options(command: Command) -> Command:
    folder = click.Path(path_type=Path)
    options = (
        click.option("--for", "where", required=True, type=folder, help="The manifest of the binaries, or its folder."),
        names("--graph", "graphs", env="GRAPH", help="Only these graphs (default all that are for its chip)."),
        click.option(
            "--libs", type=folder, help="Run-time libraries, as `qnnci runtime-libs` writes them to a folder."
        ),
        click.option("--sdk", "root", help="A QAIRT SDK for libraries and tools (default QNN_SDK_ROOT, or installed)."),
        click.option("--against", "source", default="", help="The original ONNX model, where its build is not here."),
        click.option("--feeds", type=folder, help="With --against: a .npz, or a folder of .npz, .npy or .raw, to run."),
        click.option(
            "--folder", default="", help="On the device, for files (default one that is in memory on boards)."
        ),
        click.option("--keep", is_flag=True, help="Leave all files on the device."),
        click.option("--json", "as_json", is_flag=True, help="As JSON."),
    )
    for each in reversed(options):
        command = each(command)
    return command


@device.command("run")
@_device_options
@_run_options
@click.option("--samples", default=4, type=click.IntRange(min=1), help="How many feeds at most (default 4).")
@click.option("--seconds", default=600.0, type=click.FloatRange(min=1), help="Limit of one run (default 600).")
@click.option("--min-cosine", default=0.99, help="Gate (default 0.99).")
@click.option("--min-snr", type=float, help="Gate, in dB (default none).")
@click.pass_context
def device_run(
    ctx: click.Context, /, *, address: str, soc: str | None, ssh_options: tuple[str, ...], where: Path, **how: Any
) -> None:
    """Run binaries on a device, and compare their outputs with the original on the CPU."""
    from qnnci.commands import device_run as command

    ctx.exit(command.compare_all(address, ssh_options, where, soc=soc or "", **how))


VERBS = (device,)
