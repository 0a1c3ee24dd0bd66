"""The task metric: a command of the user's, run with the graph on the CPU and with each binary in the emulator."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from qnnci.build.cache import key_of
from qnnci.build.calls import Call
from qnnci.build.export import digest, files_read, filled
from qnnci.errors import UsageError
from qnnci.files import SCRATCH
from qnnci.findings import Finding
from qnnci.metric import read_report
from qnnci.project import Verify
from qnnci.rules import finding
from qnnci.toolchain import export_venv

_TINY = 1e-9  # 0.55 - 0.5 is more than 0.05 by the last bit
TURNED = "QNNCI_TURNED"  # tells the runner what was done to a binary's axes: JSON with `route` and `layout`


def task(
    what: str,
    verify: Verify,
    model: Path,
    folder: Path,
    base: Path,
    cache: Path,
    *,
    graph: Path,
    turned: dict[str, Any],
    keys: dict[str, Any],
) -> Call | None:
    """Run the project's command with a model; None where it has none.

    Raises:
        UsageError: a file that it names cannot be read, or a pattern fits none.

    """
    if verify.command is None:
        return None
    base, report = base.absolute(), folder.absolute() / f"{SCRATCH}report.json"
    places = {"{model}": str(model.absolute()), "{graph}": str(graph.absolute()), "{report}": str(report)}
    arguments = {
        "argv": [filled(word, places) for word in shlex.split(verify.command)],
        "base": str(base),
        "report": str(report),
        "metric": verify.metric,
        "turned": turned,
    }
    files = files_read(verify.command, verify.reads, base, "metric")
    read = {os.path.relpath(path, base): digest(path, cache) for path in files}
    return Call(what, "metric", folder, arguments, key_of(**keys, run=verify.command, metric=verify.metric, read=read))


def measure(argv: list[str], base: Path, report: Path, metric: str, turned: dict[str, Any]) -> dict[str, Any]:
    """Run the command, in workers only; what it measured, or why it did not."""
    report.unlink(missing_ok=True)
    own = str(Path(sys.executable).parent)
    kept = export_venv.environment()
    environment = {**kept, "PATH": f"{own}{os.pathsep}{kept.get('PATH', os.defpath)}", TURNED: json.dumps(turned)}
    if "PYTHONPATH" in os.environ:  # the command runs in our own Python, so what we import it may
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    try:
        ended = export_venv.run(argv, cwd=base, env=environment)
        if ended.code:
            return _failed(f"the command ended with exit code {ended.code}: {ended.said}")
        score = read_report(report, metric)
    except UsageError as error:
        return _failed(error.message)
    finally:
        report.unlink(missing_ok=True)
    return {"value": score.value, "samples": score.samples, "findings": []}


def _failed(message: str) -> dict[str, Any]:
    return {"findings": [finding("metric-failed", message).to_json()]}


def judge(metric: str, value: float, cpu: float, verify: Verify) -> list[Finding]:
    """Hold a binary's figure against its bounds and against the CPU's. Pure."""
    bounds = [
        (verify.max is not None and value > verify.max, f"at most {verify.max}"),
        (verify.min is not None and value < verify.min, f"at least {verify.min}"),
        (
            verify.max_increase is not None and value - cpu > verify.max_increase + _TINY,
            f"at most {verify.max_increase} above the CPU's",
        ),
        (
            verify.max_decrease is not None and cpu - value > verify.max_decrease + _TINY,
            f"at most {verify.max_decrease} below the CPU's",
        ),
    ]
    told = f"{metric} is {value:.4g} on the binary and {cpu:.4g} on the CPU"
    return [
        finding("task-metric", f"{told}; it must be {bound}", severity=verify.severity) for bad, bound in bounds if bad
    ]
