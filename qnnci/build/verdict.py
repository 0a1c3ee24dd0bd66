"""How a program of the SDK ended: its files first, then its log, and its exit code last. Pure."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qnnci.build.calls import Call
from qnnci.findings import Finding, worst
from qnnci.logs.story import LogReport
from qnnci.rules import finding

# Composing a graph with a very large last MatMul overflows the stack; a library over 2 GiB cannot be linked.
_COMPOSE_HINT = "try `ulimit -s unlimited`, or route `dlc`, which composes no model library"
_NO_SUCH_PROGRAM = 127


def shell_code(code: int) -> int:
    """A return code as a shell says it: 139 for a segfault, where Python says -11."""
    return 128 - code if code < 0 else code


def tool_findings(call: Call, result: dict[str, Any], report: LogReport) -> list[Finding]:
    """Return what there is to say of a tool call; an error where it did not do its work, whatever its exit code is."""
    found = list(report.findings)
    code, missing = result["exit_code"], result["missing"]
    if code < 0:  # the log's own finding knows less of the tool
        found = [_crash(call, -code), *(each for each in found if each.rule != "stage-crashed")]
    if not missing:  # all is written: an exit code that the log does not explain is told, and believed no further
        found = [replace(each, severity="warning") if each.rule == "silent-failure" else each for each in found]
    elif worst(found) != "error":
        found.append(_nothing(call, code, missing, result["cut"]))
    return found


def _crash(call: Call, number: int) -> Finding:
    name = signal.Signals(number).name
    composing = call.tool in {"qnn-context-binary-generator", "qnn-model-lib-generator"}
    hint = _COMPOSE_HINT if number == signal.SIGSEGV and composing else ""
    return finding("stage-crashed", f"{call.tool} ended with {name} ({128 + number})", hint=hint)


def _nothing(call: Call, code: int, missing: Sequence[str], cut: Sequence[str]) -> Finding:
    ended = f"exit code {shell_code(code)}"
    if code == _NO_SUCH_PROGRAM:
        ended += ", as where a library of the system is missing: `qnnci sdk doctor` looks for it"
    wrote = f"wrote only a part of {', '.join(cut)}" if cut else f"did not write {', '.join(missing)}"
    message = f"{call.tool} {wrote} ({ended})"
    return finding("nothing-written", message, hint=f"see logs/{call.stage}.log")
