"""Verbs about one file: a model, a context binary, a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qnnci.cli.options import FAIL_ON, names, option


@click.command()
@click.argument("model", envvar="QNNCI_INPUT_MODEL")
@names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@option(
    "--fail-on",
    env="FAIL_ON",
    default="error",
    type=click.Choice(FAIL_ON),
    help="What makes it exit with 1 (default error).",
)
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
@click.pass_context
def check(ctx: click.Context, /, *, model: str, inputs: tuple[str, ...], fail_on: str, as_json: bool) -> None:
    """Say what stands between a model and the HTP, without compiling. Weights are not read."""
    from qnnci.commands import model as command

    ctx.exit(command.check(model, inputs, fail_on, as_json=as_json))


@click.command()
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("build/prepared"),
    help="Folder to write prepared.onnx to (default build/prepared).",
)
@names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@click.option("--simplify/--no-simplify", default=True, help="Run onnxsim.")
@click.pass_context
def prepare(ctx: click.Context, /, *, model: str, output: Path, inputs: tuple[str, ...], simplify: bool) -> None:
    """Make a static graph that the compiler takes: shapes fixed, constants folded, simplified."""
    from qnnci.commands import model as command

    ctx.exit(command.prepare(model, output, inputs, simplify=simplify))


@click.command()
@click.argument("binary", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_BINARY")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def inspect(*, binary: Path, as_json: bool) -> None:
    """Show what a context binary says of itself."""
    from qnnci.commands import binary as command

    command.inspect(binary, as_json=as_json)


@click.command()
@click.argument("binary", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_BINARY")
@option(
    "--against", "source", env="AGAINST", required=True, help="The original ONNX model: path, https, hf:// or pypi://."
)
@names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@option(
    "--feeds", env="FEEDS", type=click.Path(path_type=Path), help="A .npz, or a folder of .npz, .npy or .raw, to run."
)
@option("--samples", env="SAMPLES", default=4, help="How many feeds at most (default 4).")
@click.option("--seed", default=0, help="Of the random feeds, where none are given (default 0).")
@option("--min-cosine", env="MIN_COSINE", default=0.99, help="Gate (default 0.99).")
@option("--min-snr", env="MIN_SNR", type=float, help="Gate, in dB (default none).")
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
@click.pass_context
def verify(ctx: click.Context, /, *, binary: Path, source: str, inputs: tuple[str, ...], **options: Any) -> None:
    """Run a written binary in the host emulator and compare it with the original on the CPU."""
    from qnnci.commands import binary as command

    ctx.exit(command.verify(binary, source, inputs, **options))


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--tool", help="Which tool wrote it, such as qairt-converter (default: what the log says).")
@click.option("--exit-code", type=int, help="What the tool ended with: 0 may hide a failure, others a success.")
@click.option("--quantized", is_flag=True, help="A quantized model was asked for: a float one is an error.")
@click.option("--format", "form", type=click.Choice(["text", "json", "github"]), default="text", help="Of the report.")
@click.pass_context
def logs(ctx: click.Context, /, *, file: Path, **options: Any) -> None:
    """Read a tool's log (- for stdin): what failed first and what followed from it. Ends with 1 where it failed."""
    from qnnci.commands import logs as command

    ctx.exit(command.run(file, **options))


VERBS = (check, prepare, inspect, verify, logs)
