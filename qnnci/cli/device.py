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


@device.command("measure")
@_device_options
@_run_options
@click.option("--inferences", type=click.IntRange(min=1), help="The task: so many (default 1000).")
@click.option("--minutes", type=click.FloatRange(min=0.01), help="The task: so long, such as 30; for the battery.")
@click.option("--repeat", default=3, type=click.IntRange(min=1), help="How often, NPU and CPU in turn (default 3).")
@click.option("--rest", default=30.0, type=click.FloatRange(min=0), help="Seconds between runs (default 30).")
@click.option(
    "--cpu-model-lib", "cpu_library", type=click.Path(path_type=Path), help="Model library to run on the CPU."
)
@click.option("--cpu-command", default="", help="Command on the device that does the same task on its CPU.")
@click.option("--push", multiple=True, type=click.Path(path_type=Path), help="File for that command. Repeatable.")
@click.option("--seconds", type=click.FloatRange(min=1), help="Limit of one run (default twice --minutes and an hour).")
@click.option("--record/--no-record", default=True, help="Write the figures into the manifest (default).")
@click.pass_context
def device_measure(
    ctx: click.Context, /, *, address: str, soc: str | None, ssh_options: tuple[str, ...], where: Path, **how: Any
) -> None:
    """Measure wall time, CPU, battery and heat of a binary on a device, and of its CPU for the same task."""
    from qnnci.commands import device_measure as command

    task = {
        name: how.pop(name)
        for name in ("inferences", "minutes", "repeat", "rest", "cpu_library", "cpu_command", "push")
    }
    if task["inferences"] and task["minutes"]:
        raise click.UsageError("--inferences and --minutes are two tasks: give one")
    if task["cpu_library"] and task["cpu_command"]:
        raise click.UsageError("--cpu-model-lib and --cpu-command are two tasks: give one")
    if not task["minutes"]:
        task["inferences"] = task["inferences"] or 1000
    ctx.exit(command.measured(address, ssh_options, where, command.Wanted(**task), soc=soc or "", **how))


@device.command("generate")
@_device_options
@click.argument("library", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The context binary to write.")
@click.option("--graph-name", "graph", default="", help="The graph in it (default the library's name without lib).")
@click.option(
    "--libs", type=click.Path(path_type=Path), help="Libraries, as `qnnci runtime-libs --prepare` writes them."
)
@click.option("--sdk", "root", help="A QAIRT SDK for libraries and tools (default QNN_SDK_ROOT, or installed).")
@click.option("--folder", default="", help="On the device, for files (default one that is in memory on boards).")
@click.option("--seconds", default=3600.0, type=click.FloatRange(min=1), help="Limit (default 3600).")
@click.option("--keep", is_flag=True, help="Leave all files on the device.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def device_generate(
    ctx: click.Context,
    /,
    *,
    address: str,
    soc: str | None,
    ssh_options: tuple[str, ...],
    library: Path,
    output: Path,
    **how: Any,
) -> None:
    """Compile a model LIBRARY (.so, for the device's own machine) to a context binary on the device itself."""
    from qnnci.commands import device_generate as command

    ctx.exit(command.on_device(address, ssh_options, library, output, soc=soc or "", **how))


@device.command("aihub")
@click.argument("name")
@click.option(
    "--for",
    "where",
    required=True,
    type=click.Path(path_type=Path),
    help="The manifest of the binaries, or its folder.",
)
@names("--graph", "graphs", env="GRAPH", help="Only these graphs (default all that are for its chip).")
@option("--soc", env="SOC", help="The device's chip, where AI Hub's word for it is not known here.")
@click.option("--against", "source", default="", help="The original model, where the build's reference is not there.")
@click.option("--feeds", type=click.Path(path_type=Path), help="Inputs, with `--against` (default random ones).")
@click.option("--samples", default=4, type=click.IntRange(1, 1000), help="How many at most (default 4).")
@click.option("--min-cosine", default=0.99, help="Least cosine of every output (default 0.99).")
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
@click.pass_context
def device_aihub(
    ctx: click.Context,
    /,
    *,
    name: str,
    where: Path,
    graphs: tuple[str, ...],
    soc: str | None,
    source: str,
    feeds: Path | None,
    samples: int,
    min_cosine: float,
    as_json: bool,
) -> None:
    """Profile and run binaries on a device that Qualcomm's AI Hub hosts, by its NAME, such as "Samsung Galaxy S24".

    Needs `pip install 'qnnci[aihub]'` and a token of AI Hub. The binary is uploaded to it.
    """
    from qnnci.commands import device_aihub as command

    ctx.exit(
        command.run(
            name, where, soc=soc or "", graphs=graphs, source=source, feeds=feeds, samples=samples,
            min_cosine=min_cosine, as_json=as_json,
        )
    )  # fmt: skip


VERBS = (device,)
