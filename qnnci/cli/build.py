"""Verbs that build a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from qnnci.cli.options import UNTIL, names, option, project_options


@click.command()
@project_options
@names("--graph", "graphs", env="GRAPH", help="Only these graphs of the project. Repeatable.")
@option("-j", "--jobs", env="JOBS", type=click.IntRange(min=1), help="Targets at once (default: cores).")
@click.option("--keep-going/--fail-fast", default=True, help="Go on with other targets after a failure (default).")
@option("--cache", env="CACHE", type=click.Path(path_type=Path), help="Folder for downloads (QNNCI_CACHE).")
@option("--until", env="UNTIL", type=click.Choice(UNTIL), help="Stop there: a later build finds it done (default end).")
@option(
    "--report/--no-report", env="REPORT", default=True, help="On GitHub: annotate, and write the summary (default)."
)
@click.pass_context
def build(
    ctx: click.Context,
    /,
    *,
    graphs: tuple[str, ...],
    jobs: int | None,
    keep_going: bool,
    cache: Path | None,
    until: Literal["prepare", "convert"] | None,
    report: bool,
    **flags: Any,
) -> None:
    """Prepare, compile, inspect, verify and gate every graph for every SoC."""
    from qnnci.commands import build as command

    ctx.exit(command.run(flags, graphs, report=report, jobs=jobs, keep_going=keep_going, cache=cache, until=until))


@click.command()
@project_options
@names("--graph", "graphs", env="GRAPH", help="Only these graphs of the project. Repeatable.")
@option("--max-jobs", env="MAX_JOBS", default=256, type=click.IntRange(1, 256), help="Jobs to spread the SoCs over.")
def matrix(*, graphs: tuple[str, ...], max_jobs: int, **flags: Any) -> None:
    """Print the graph × SoC matrix as JSON for GitHub's fromJSON; on GitHub, set it as a step's outputs too."""
    from qnnci.commands import project as command

    command.matrix(flags, graphs, max_jobs)


@click.command()
@project_options
def show(**flags: Any) -> None:
    """Print the effective settings: what won of flags, file and defaults."""
    from qnnci.commands import project as command

    command.show(flags)


@click.command()
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("qnn.yaml"),
    help="File to write (default qnn.yaml).",
)
@names("--soc", "socs", env="SOCS", help="Chips (default: a common few).")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def init(*, model: str, output: Path, socs: tuple[str, ...], force: bool) -> None:
    """Write a starter project file from a model's own inputs."""
    from qnnci.commands import project as command

    command.init(model, output, socs, force=force)


@click.command()
def schema() -> None:
    """Print the JSON Schema of the project file."""
    from qnnci.commands import project as command

    command.schema()


VERBS = (build, matrix, show, init, schema)
