"""`qnnci doctor`: the handshake of compiler and runtime, proven by compiling a tiny graph."""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from qnnci.build.cache import tool_versions
from qnnci.errors import ExitCode, QnnciError, ToolMissing
from qnnci.soc import find_soc
from qnnci.toolchain.pool import Limit, Worker

_SOC = "SM8550"


def run(*, as_json: bool) -> ExitCode:
    """Print versions and what a tiny compile said; 3 where there is no compiler that works."""
    facts = {"python": sys.version.split()[0], "system": platform.platform(), **tool_versions()}
    problem: QnnciError | None = None
    try:
        facts |= _handshake()
    except QnnciError as error:
        problem = error
        facts["handshake"] = "failed"
    if as_json:
        click.echo(json.dumps({**facts, "problem": str(problem) if problem else None}, indent=2))
    else:
        width = max(map(len, facts))
        for name, value in facts.items():
            click.echo(f"{name.ljust(width)}  {value}")
    if problem:
        raise problem
    return ExitCode.OK


def _handshake() -> dict[str, Any]:
    """Compile, read back and run one tiny graph.

    Raises:
        ToolMissing: any of it does not work.

    """
    soc = find_soc(_SOC)
    worker = Worker()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "doctor.log"
        try:
            answer = worker.ask(
                "qnnci.build.work:doctor_stage",
                {"folder": name, "soc_id": soc.id, "vtcm_mb": soc.vtcm_mb},
                log=log,
                limit=Limit(120, 8192),
            )
        finally:
            worker.stop()
        if answer.result is None:
            tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            reason = answer.refused or answer.death
            raise ToolMissing(f"the compiler does not work: {reason}", hint=" ".join(tail))
    info = answer.result
    if info["soc_id"] != soc.id or info["dsp_arch"] != soc.arch:
        raise ToolMissing(f"a binary for {_SOC} came out for SoC {info['soc_id']}, v{info['dsp_arch']}")
    return {
        "qairt": info["build_id"],
        "handshake": f"compiled, read back and ran a graph for {_SOC} ({soc.dsp_arch}) in {answer.seconds:.1f} s",
    }
