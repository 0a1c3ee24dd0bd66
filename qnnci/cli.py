"""The verbs: parse, call, print. Everything heavy is imported by the verb that needs it."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

from qnnci import __version__
from qnnci.errors import ExitCode, QnnciError, UsageError, refusal
from qnnci.report.problems import clean

# As `qnnci.project` has them, which takes too long to import here.
PRECISIONS = ("fp16", "w8a8", "w8a16", "w4a16")
ROUTES = ("ort", "model-lib", "dlc")
FAIL_ON = ("error", "warning", "never")
UNTIL = ("prepare",)

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class _Lists(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4, older ones do too
    """Names separated by commas, spaces or newlines, as an action's input gives them; the option may repeat too."""

    name = "names"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(value.replace(",", " ").split())


class _Lines(_Lists):
    """Values separated by newlines: a value may hold commas and spaces."""

    name = "values"
    envvar_list_splitter = "\n"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(line.strip() for line in value.splitlines() if line.strip())


def _joined(_ctx: click.Context, _param: click.Parameter, value: Any) -> tuple[str, ...]:
    return tuple(name for names in value for name in names)


def _option(*names: str, env: str = "", **settings: Any) -> Decorator:
    return click.option(*names, envvar=f"QNNCI_INPUT_{env}" if env else None, **settings)


def _names(*names: str, env: str, lines: bool = False, **settings: Any) -> Decorator:
    kind = _Lines() if lines else _Lists()
    return _option(*names, env=env, multiple=True, type=kind, callback=_joined, **settings)


def _project_options(command: Command) -> Command:
    options = (
        _option("-c", "--config", env="CONFIG", help="Project file (default qnn.yaml)."),
        _option("--model", env="MODEL", help="One model instead of a project file: path, https, hf:// or pypi://."),
        _names("--soc", "socs", env="SOCS", help="Chips, by name or alias, instead of the project file's. Repeatable."),
        _names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable."),
        _option("--precision", env="PRECISION", type=click.Choice(PRECISIONS), help="Of every graph on every chip."),
        _option("--route", env="ROUTE", type=click.Choice(ROUTES), help="How to compile."),
        _option("--output", env="OUTPUT", help="Folder for everything that is made (default build)."),
        _option("--fail-on", env="FAIL_ON", type=click.Choice(FAIL_ON), help="What fails a build (default error)."),
        _option("--verify/--no-verify", env="VERIFY", default=None, help="Run binaries in the emulator."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="qnnci")
@click.option("--debug", is_flag=True, envvar="QNNCI_DEBUG", help="Show tracebacks of errors too.")
@click.pass_context
def cli(ctx: click.Context, /, *, debug: bool) -> None:
    """Compile ONNX graphs into checked, measured Qualcomm HTP context binaries.

    Exit codes: 0 passed, 1 a gate failed, 2 bad usage or input, 3 a tool is missing, 4 a tool crashed,
    5 disk or network failed, 130 interrupted.
    """
    ctx.obj["debug"] = debug


@cli.command()
@_project_options
@_names("--graph", "graphs", env="GRAPH", help="Only these graphs of the project. Repeatable.")
@_option("-j", "--jobs", env="JOBS", type=click.IntRange(min=1), help="Targets at once (default: cores).")
@click.option("--keep-going/--fail-fast", default=True, help="Go on with other targets after a failure (default).")
@_option("--cache", env="CACHE", type=click.Path(path_type=Path), help="Folder for downloads (QNNCI_CACHE).")
@_option(
    "--until", env="UNTIL", type=click.Choice(UNTIL), help="Stop there: a later build finds it done (default end)."
)
@_option(
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
    until: Literal["prepare"] | None,
    report: bool,
    **flags: Any,
) -> None:
    """Prepare, compile, inspect, verify and gate every graph for every SoC."""
    from qnnci.commands import build as command

    ctx.exit(command.run(flags, graphs, report=report, jobs=jobs, keep_going=keep_going, cache=cache, until=until))


@cli.command()
@click.argument("model", envvar="QNNCI_INPUT_MODEL")
@_names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@_option(
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


@cli.command()
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("build/prepared"),
    help="Folder to write prepared.onnx to (default build/prepared).",
)
@_names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@click.option("--simplify/--no-simplify", default=True, help="Run onnxsim.")
@click.pass_context
def prepare(ctx: click.Context, /, *, model: str, output: Path, inputs: tuple[str, ...], simplify: bool) -> None:
    """Make a static graph that the compiler takes: shapes fixed, constants folded, simplified."""
    from qnnci.commands import model as command

    ctx.exit(command.prepare(model, output, inputs, simplify=simplify))


@cli.command()
@click.argument("binary", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_BINARY")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def inspect(*, binary: Path, as_json: bool) -> None:
    """Show what a context binary says of itself."""
    from qnnci.commands import binary as command

    command.inspect(binary, as_json=as_json)


@cli.command()
@click.argument("binary", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_BINARY")
@_option(
    "--against", "source", env="AGAINST", required=True, help="The original ONNX model: path, https, hf:// or pypi://."
)
@_names("--input", "inputs", env="INPUTS", lines=True, help="name=1,3,224,224 or name:=CONSTANT. Repeatable.")
@_option(
    "--feeds", env="FEEDS", type=click.Path(path_type=Path), help="A .npz, or a folder of .npz, .npy or .raw, to run."
)
@_option("--samples", env="SAMPLES", default=4, help="How many feeds at most (default 4).")
@click.option("--seed", default=0, help="Of the random feeds, where none are given (default 0).")
@_option("--min-cosine", env="MIN_COSINE", default=0.99, help="Gate (default 0.99).")
@_option("--min-snr", env="MIN_SNR", type=float, help="Gate, in dB (default none).")
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
@click.pass_context
def verify(ctx: click.Context, /, *, binary: Path, source: str, inputs: tuple[str, ...], **options: Any) -> None:
    """Run a written binary in the host emulator and compare it with the original on the CPU."""
    from qnnci.commands import binary as command

    ctx.exit(command.verify(binary, source, inputs, **options))


@cli.command()
@_project_options
@_names("--graph", "graphs", env="GRAPH", help="Only these graphs of the project. Repeatable.")
@_option("--max-jobs", env="MAX_JOBS", default=256, type=click.IntRange(1, 256), help="Jobs to spread the SoCs over.")
def matrix(*, graphs: tuple[str, ...], max_jobs: int, **flags: Any) -> None:
    """Print the graph × SoC matrix as JSON for GitHub's fromJSON; on GitHub, set it as a step's outputs too."""
    from qnnci.commands import project as command

    command.matrix(flags, graphs, max_jobs)


_FOLDERS = _Lines()


@cli.group()
def manifest() -> None:
    """Work with the manifests that builds write."""


@manifest.command("join")
@click.argument("folders", nargs=-1, type=_FOLDERS, envvar="QNNCI_INPUT_FOLDERS", callback=_joined, required=True)
@_option(
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


@cli.command()
@click.argument("where", type=click.Path(path_type=Path), envvar="QNNCI_INPUT_MANIFEST")
@_option("--plan", env="PLAN", help="What `qnnci matrix` printed: a target of it that nothing tells of fails.")
@_option("--fail-on", env="FAIL_ON", type=click.Choice(FAIL_ON), help="Fail on more than the builds themselves did.")
@_option("-o", "--output", env="OUTPUT", type=click.Path(path_type=Path), help="Write what was judged as one manifest.")
@click.pass_context
def gate(ctx: click.Context, /, *, where: Path, plan: str | None, fail_on: str | None, output: Path | None) -> None:
    """Judge a manifest, or a folder of builds: ends with 1 where a gate failed or a planned target is missing."""
    from qnnci.commands import manifest as command

    ctx.exit(command.gate(where, plan, fail_on, output))


@cli.command()
@_project_options
def show(**flags: Any) -> None:
    """Print the effective settings: what won of flags, file and defaults."""
    from qnnci.commands import project as command

    command.show(flags)


@cli.command()
@click.argument("model")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("qnn.yaml"),
    help="File to write (default qnn.yaml).",
)
@_names("--soc", "socs", env="SOCS", help="Chips (default: a common few).")
@click.option("--force", is_flag=True, help="Overwrite the file.")
def init(*, model: str, output: Path, socs: tuple[str, ...], force: bool) -> None:
    """Write a starter project file from a model's own inputs."""
    from qnnci.commands import project as command

    command.init(model, output, socs, force=force)


@cli.command()
def schema() -> None:
    """Print the JSON Schema of the project file."""
    from qnnci.commands import project as command

    command.schema()


@cli.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Chips without HTP too.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def socs(*, names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """List the chips that can be compiled for, or look some up by name or alias."""
    from qnnci.report import chips

    chips.show(names, everything=everything, as_json=as_json)


@cli.command()
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


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def doctor(ctx: click.Context, /, *, as_json: bool) -> None:
    """Prove the toolchain by compiling a tiny graph, and print every version."""
    from qnnci.commands import doctor as command

    ctx.exit(command.run(as_json=as_json))


@cli.group()
def sdk() -> None:
    """Bring, find and examine the QAIRT SDK, which the routes model-lib and dlc need."""


def _sdk_options(command: Command) -> Command:
    command = click.option("--root", help="Folder of the SDK (default QNN_SDK_ROOT, else what is installed).")(command)
    return _option("--version", env="SDK_VERSION", help="As in 2.40.0.251030, or cut short at a dot.")(command)


@sdk.command("install")
@click.argument("version", required=False, envvar="QNNCI_INPUT_SDK_VERSION")
@_option(
    "--from",
    "source",
    env="SDK_SOURCE",
    default="mirror",
    help="mirror (default), vendor, hf://org/repo, https://…/v{version}.zip, a zip, or an unpacked folder.",
)
@_names("--for", "needs", env="SDK_FOR", help="Unpack only what ort, model-lib or dlc need (default model-lib,dlc).")
@_option(
    "--accept-license",
    "accepted",
    env="ACCEPT_QAIRT_LICENSE",
    is_flag=True,
    help="You accept Qualcomm's licence of the SDK, LICENSE.pdf in it.",
)
@click.option("--python/--no-python", default=True, help="Make the Python environment of its tools (default).")
@_option("--cache", env="CACHE", type=click.Path(path_type=Path), help="Folder to install into (QNNCI_CACHE).")
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
@_names("--soc", "socs", env="SOCS", help="Chips that there must be run-time libraries for. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def sdk_doctor(ctx: click.Context, /, *, version: str | None, root: str | None, **options: Any) -> None:
    """Examine an SDK: its libraries, Python, NDK, every flag that is used, and folders of dsp arches."""
    from qnnci.commands import sdk as command

    ctx.exit(command.doctor(version, root, **options))


def _terminate(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; on GitHub, so that nothing in what is printed is taken for a workflow command."""
    _mend_streams()
    if os.environ.get("GITHUB_ACTIONS") != "true":
        sys.exit(_main())
    from qnnci.report import github

    with github.stopped_commands():
        code = _main()
    sys.exit(code)


def _mend_streams() -> None:
    """Closed ones go nowhere, for the next file opened would come to stand for them; and no character is too odd."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _main() -> int:
    """Run the command line; errors become one message and the exit code of their kind."""
    said = {"debug": False}
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = cli.main(standalone_mode=False, obj=said)
    except QnnciError as error:
        code = _fail(error, debug=said["debug"])
    except click.ClickException as error:
        error.show()
        _tell_github(UsageError(error.format_message()))
        code = ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nstopped; finished stages stand, run it again to go on", err=True)
        code = ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click's way to end where the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = ExitCode.INTERRUPTED
    except OSError as error:
        code = _fail(refusal(error), debug=said["debug"])
    except Exception as error:  # noqa: BLE001 - else Python's exit code 1 would say that a gate failed
        bug = QnnciError(
            f"qnnci itself failed: {type(error).__name__}: {error}", hint="this is a bug: please report it"
        )
        bug.__cause__ = error
        code = _fail(bug, debug=True)
    return int(code or 0)


def _fail(error: QnnciError, *, debug: bool) -> ExitCode:
    if debug:
        import traceback

        traceback.print_exception(error)
    click.echo(f"error: {clean(str(error))}", err=True)
    _tell_github(error)
    return error.code


def _tell_github(error: QnnciError) -> None:
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from qnnci.report import github

        github.report_failure(error)


if __name__ == "__main__":
    main()
