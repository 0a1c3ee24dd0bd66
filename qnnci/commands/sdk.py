"""`qnnci sdk`: bring a QAIRT SDK here, say where it is, and examine it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path

import click

from qnnci.errors import ExitCode
from qnnci.files import default_cache
from qnnci.findings import worst
from qnnci.report import github
from qnnci.report.terminal import console, show_findings
from qnnci.soc import find_soc
from qnnci.toolchain import sdk_archive, sdk_doctor, sdk_venv
from qnnci.toolchain.sdk import find
from qnnci.toolchain.sdk_install import Installed
from qnnci.toolchain.sdk_install import install as bring

_TRUST = {
    "pinned": "as the table of qnnci has it",
    "known": "as at its first use here",
    "new": "not in the table of qnnci: recorded now, and demanded from now on",
}


def install(
    version: str | None,
    source: str,
    needs: Collection[str],
    *,
    accepted: bool,
    python: bool,
    cache: Path | None,
) -> None:
    """Install an SDK and the Python environment of its tools, and say what stands where."""
    cache = cache or default_cache()

    def say(text: str) -> None:
        click.echo(text, err=True)

    needs = needs or sdk_archive.DEFAULT_NEEDS
    done = bring(version, source=source, needs=needs, accepted=accepted, cache=cache, say=say)
    # Route `ort` runs none of its tools, and only they need Python.
    made = sdk_venv.make(done.sdk.version, cache, say=say) if python and set(needs) - {"ort"} else None
    for name, value in _facts(done, made).items():
        click.echo(f"{name.ljust(8)}  {value}")
    github.write_outputs({"root": str(done.sdk.root), "version": done.sdk.version, "python": str(made or "")})


def _facts(done: Installed, python: Path | None) -> dict[str, str]:
    facts = {"version": done.sdk.version, "root": str(done.sdk.root)}
    if done.sha256:
        facts["sha256"] = f"{done.sha256} ({_TRUST[done.trust]})"
    if python:
        facts["python"] = str(python)
    licence = next(iter(sorted(done.sdk.root.glob("LICENSE*"))), None)
    return {**facts, "licence": str(licence)} if licence else facts


def path(version: str | None, root: str | None, *, python: bool) -> None:
    """Print the SDK's folder, or the interpreter of its tools, and nothing else."""
    sdk = find(version, root)
    click.echo(sdk.interpreter() if python else sdk.root)


def doctor(
    version: str | None,
    root: str | None,
    routes: Collection[str],
    socs: Collection[str],
    *,
    as_json: bool,
) -> ExitCode:
    """Examine an SDK for the routes and chips that are meant; 3 where anything would end a build."""
    chips = [find_soc(name) for name in socs]
    cache = default_cache()
    sdk = find(version, root, cache=cache)
    found = sdk_doctor.examine(sdk, routes=routes or tuple(sdk_doctor.ROUTE_TOOLS), socs=chips, cache=cache)
    arches = ", ".join(f"v{arch}" for arch in sdk.arches())
    facts = {
        "version": sdk.version,
        "root": str(sdk.root),
        "python": str(sdk.tools_python(cache) or "missing"),
        "ndk": str(sdk_doctor.ndk_build(os.environ) or "missing"),
        "arches": arches or "none",
    }
    if as_json:
        click.echo(json.dumps({**facts, "findings": [each.to_json() for each in found]}, indent=2))
    else:
        for name, value in facts.items():
            click.echo(f"{name.ljust(8)}  {value}")
        show_findings(found, console())
    return ExitCode.TOOL_MISSING if worst(found) == "error" else ExitCode.OK
