"""Verbs that build a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from qnnci.cli.options import FAIL_ON, UNTIL, names, option, project_options


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
@option(
    "--max-jobs",
    env="MAX_JOBS",
    type=click.IntRange(1, 256),
    help="Jobs to spread the SoCs over (default: as few as hold 8 SoCs of a graph each).",
)
def matrix(*, graphs: tuple[str, ...], max_jobs: int | None, **flags: Any) -> None:
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


@click.command()
@option("-c", "--config", env="CONFIG", help="Project file (default qnn.yaml, where there is no --run).")
@names("--graph", "graphs", env="GRAPH", help="Only these graphs of the project. Repeatable.")
@option("--run", "command", env="RUN", help="The export's command instead of a project file, with {output} in it.")
@option("--name", env="NAME", help="With --run: name of the graph (default model).")
@option("--requirements", env="REQUIREMENTS", help="With --run: what pip installs for it, a requirements file.")
@option("--export-python", "python", env="EXPORT_PYTHON", help="With --run: its Python, such as 3.10.")
@names("--env", "variables", env="ENV", lines=True, help="With --run: NAME=value, or NAME to pass it on. Repeatable.")
@names("--reads", env="READS", lines=True, help="With --run: files or patterns that it reads. Repeatable.")
@option("--reference", env="REFERENCE", help="With --run: a .npz of the original's inputs and outputs that is there.")
@names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@option("--output", env="OUTPUT", help="Folder for everything that is made (default build).")
@option("--fail-on", env="FAIL_ON", type=click.Choice(FAIL_ON), help="What makes it exit with 1 (default error).")
@option("-j", "--jobs", env="JOBS", type=click.IntRange(min=1), help="Graphs at once (default: cores).")
@option("--cache", env="CACHE", type=click.Path(path_type=Path), help="Folder for downloads (QNNCI_CACHE).")
@click.pass_context
def export(
    ctx: click.Context, /, *, jobs: int | None, cache: Path | None, graphs: tuple[str, ...], **flags: Any
) -> None:
    """Run a repository's own export in its own environment, prepare the graphs, and compare them with the original."""
    from qnnci.commands import export as command

    ctx.exit(command.run(graphs, jobs=jobs, cache=cache, **flags))


VERBS = (build, export, matrix, show, init, schema)
