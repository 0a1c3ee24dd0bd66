"""Verbs that look for the cause of what others found."""

from __future__ import annotations

from typing import Any

import click

from qnnci.cli.options import option, project_options


@click.group()
def debug() -> None:
    """Find out why a binary is not as it should be."""


@debug.command("graph")
@project_options
@option("--graph", "name", env="GRAPH", help="The graph of the project; needed where it has several.")
@click.option("--simulate", is_flag=True, help="Round to fp16 on the CPU instead of compiling: a quick, rough look.")
@option("--samples", env="SAMPLES", default=4, type=click.IntRange(min=1), help="How many feeds at most (default 4).")
@click.option("--top", default=10, type=click.IntRange(min=1), help="How many layers to print (default 10).")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def debug_graph(
    ctx: click.Context, /, *, name: str | None, simulate: bool, samples: int, top: int, as_json: bool, **flags: Any
) -> None:
    """Name the first layers whose error jumps, of one graph on the first of its chips, and what to do."""
    from qnnci.commands import debug as command

    ctx.exit(command.graph(flags, name, simulate=simulate, samples=samples, top=top, as_json=as_json))


VERBS = (debug,)
