"""Verbs about what builds left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qnnci.cli.options import FAIL_ON, Lines, joined, names, option


@click.group()
def manifest() -> None:
    """Work with the manifests that builds write."""


@manifest.command("join")
@click.argument("folders", nargs=-1, type=Lines(), envvar="QNNCI_INPUT_FOLDERS", callback=joined, required=True)
@option(
    "-o",
    "--output",
    env="OUTPUT",
    type=click.Path(path_type=Path),
    default=Path("manifest.json"),
    help="File to write (default manifest.json); its paths start from its own folder.",
)
def manifest_join(*, folders: tuple[str, ...], output: Path) -> None:
    """Join the manifests of many builds of one project: of each folder, its own, else those right below it."""
    from qnnci.commands import manifest as command

    command.join(folders, output)


@manifest.command("check")
@click.argument("where", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_MANIFEST")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
@click.pass_context
def manifest_check(ctx: click.Context, /, *, where: Path, as_json: bool) -> None:
    """Hash every file again and read every binary again: ends with 1 where one is not what the manifest says."""
    from qnnci.commands import manifest as command

    ctx.exit(command.check(where, as_json=as_json))


@manifest.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--exit-code", is_flag=True, help="End with 1 where a model may behave differently.")
@click.option("--json", "as_json", is_flag=True, help="Changes as JSON.")
@click.pass_context
def manifest_diff(ctx: click.Context, /, *, old: Path, new: Path, exit_code: bool, as_json: bool) -> None:
    """Say what changed between two builds, and why a model may behave differently."""
    from qnnci.commands import manifest as command

    ctx.exit(command.diff(old, new, exit_code=exit_code, as_json=as_json))


@manifest.command("schema")
def manifest_schema() -> None:
    """Print the JSON Schema of manifest.json."""
    from qnnci.commands import manifest as command

    command.schema()


@click.command()
@click.argument("where", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_MANIFEST")
@option("--plan", env="PLAN", help="What `qnnci matrix` printed: a target of it that nothing tells of fails.")
@option("--fail-on", env="FAIL_ON", type=click.Choice(FAIL_ON), help="Fail on more than the builds themselves did.")
@option(
    "-o",
    "--output",
    env="OUTPUT",
    type=click.Path(path_type=Path),
    help="Write what was judged as one manifest, and report.html.",
)
@click.pass_context
def gate(ctx: click.Context, /, *, where: Path, plan: str | None, fail_on: str | None, output: Path | None) -> None:
    """Judge a manifest, or a folder of builds: ends with 1 where a gate failed or a planned target is missing."""
    from qnnci.commands import manifest as command

    ctx.exit(command.gate(where, plan, fail_on, output))


@click.command()
@click.argument("where", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_MANIFEST")
@names("--resident", env="RESIDENT", help="Graphs that are in memory at once (default all).")
@names("--soc", "socs", env="SOCS", help="Only these chips (default all of the manifest).")
@option("--process-mb", default=3584, type=click.IntRange(min=1), help="What one process may map (default 3584).")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def budget(ctx: click.Context, /, *, where: Path, resident: tuple[str, ...], socs: tuple[str, ...], **how: Any) -> None:
    """Sum up what graphs need that run side by side, from their binaries: VTCM, constants, spill-fill, I/O."""
    from qnnci.commands import budget as command

    ctx.exit(command.run(where, resident, socs, **how))


@click.command()
@click.argument("where", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (default report.html beside it).")
def report(*, where: Path, output: Path | None) -> None:
    """Write report.html of a manifest, or of a folder of builds: one page that needs no network."""
    from qnnci.commands import manifest as command

    command.report(where, output)


VERBS = (manifest, gate, report, budget)
