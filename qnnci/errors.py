"""What can go wrong for a user, and the exit code of each kind. The only place that knows exit codes."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every `qnnci` verb; README's table is made from the comments here."""

    OK = 0  # everything asked for was done, and every gate passed
    GATE = 1  # a gate failed: the findings say which and why
    USAGE = 2  # bad usage, project file or input file
    TOOL_MISSING = 3  # a compiler, SDK or library that the work needs is not installed
    TOOL_CRASHED = 4  # a native tool crashed, hung, ran out of memory or wrote nothing
    MACHINE = 5  # the machine or network failed: disk full, download broken, no permission
    INTERRUPTED = 130  # stopped by Ctrl-C or SIGTERM; finished stages stand


class QnnciError(Exception):
    """An error for people: what happened, where, what to do next. Printed without a traceback."""

    code = ExitCode.TOOL_CRASHED

    def __init__(self, message: str, *, hint: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message, self.hint, self.where = message, hint, where

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  → {self.hint}" if self.hint else head

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.hint, self.where))


def _rebuild(kind: type[QnnciError], message: str, hint: str, where: str) -> QnnciError:
    return kind(message, hint=hint, where=where)


class UsageError(QnnciError):
    code = ExitCode.USAGE


class ToolMissing(QnnciError):
    code = ExitCode.TOOL_MISSING


class ToolCrashed(QnnciError):
    code = ExitCode.TOOL_CRASHED


class MachineError(QnnciError):
    code = ExitCode.MACHINE


def refusal(error: OSError) -> MachineError:
    """What the machine refused, with the file that it is about."""
    return MachineError(f"{error.strerror}: {error.filename}" if error.filename else str(error))
