"""The command line: one group of all verbs, and how any of them ends."""

from __future__ import annotations

import io
import os
import signal
import sys

import click

from qnnci import __version__
from qnnci.cli import build, debug, device, file, machine, manifest, ship
from qnnci.errors import ExitCode, QnnciError, UsageError, refusal
from qnnci.report.problems import clean


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


for _verb in (
    *build.VERBS,
    *file.VERBS,
    *manifest.VERBS,
    *debug.VERBS,
    *ship.VERBS,
    *device.VERBS,
    *machine.VERBS,
):
    cli.add_command(_verb)


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
