"""Gates: facts of the written binary and the project's thresholds, to findings. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from qnnci.context.info import ContextInfo
from qnnci.findings import SEVERITIES, Finding, worst
from qnnci.manifest import Figures, Measured, Parity
from qnnci.plan import Target
from qnnci.project import Compare, Compile, FailOn, Gates, ParityGate
from qnnci.quantization import Io
from qnnci.rules import finding

_MB = 1 << 20


def judge_binary(info: ContextInfo, size: int, target: Target, gates: Gates, asked: Compile) -> list[Finding]:
    """Right SoC and arch, optimisation level, spill-fill, VTCM and size (bytes), each read out of the binary."""
    return list(_judge_binary(info, size, target, gates, asked))


def _judge_binary(info: ContextInfo, size: int, target: Target, gates: Gates, asked: Compile) -> Iterator[Finding]:
    soc = target.soc
    if info.soc_id is not None and info.soc_id != soc.id:
        yield finding("wrong-soc", f"the binary is for SoC id {info.soc_id}, asked for was {soc.name} ({soc.id})")
    if info.dsp_arch is not None and info.dsp_arch != soc.arch:
        yield finding("wrong-arch", f"the binary is for v{info.dsp_arch}, {soc.name} is {soc.dsp_arch}")
    if gates.binary_mb and size > gates.binary_mb.max * _MB:
        message = f"the binary has {size / _MB:.1f} MB, the gate allows {gates.binary_mb.max}"
        yield finding("binary-size", message, severity=gates.binary_mb.severity)
    spill = sum(graph.spill_fill_bytes or 0 for graph in info.graphs)
    if spill > gates.spill_fill_bytes.max:
        message = f"{spill / _MB:.1f} MB spill from VTCM, the gate allows {gates.spill_fill_bytes.max / _MB:g}"
        yield finding("spill-fill", message, severity=gates.spill_fill_bytes.severity)
    wanted = asked.vtcm_for(soc)
    for graph in info.graphs:
        if graph.vtcm_bytes is not None and graph.vtcm_bytes != wanted * _MB:
            message = f"{graph.vtcm_bytes // _MB} MB of VTCM in the binary, {wanted} were asked for"
            yield finding("wrong-vtcm", message)
        if gates.vtcm_mb and (graph.vtcm_bytes or 0) > gates.vtcm_mb.max * _MB:
            message = (
                f"the binary asks for {(graph.vtcm_bytes or 0) // _MB} MB of VTCM, the gate allows {gates.vtcm_mb.max}"
            )
            yield finding("vtcm", message, severity=gates.vtcm_mb.severity)
        if graph.optimization is not None and graph.optimization != asked.optimization:
            message = f"optimisation level {graph.optimization} in the binary, {asked.optimization} was asked for"
            yield finding("wrong-optimization", message)


def judge_ports(info: ContextInfo, io: Io, *, quantized: bool) -> list[Finding]:
    """Whether the binary's float inputs and outputs became what was asked for; a graph in QDQ form has its own."""
    wrong = {"float32": (), "float16": ("FLOAT_32",), "ufixed16": ("FLOAT_32", "FLOAT_16")}[io]
    ports = [port for graph in info.graphs for port in (*graph.inputs, *graph.outputs)]
    bad = [f"{port.name} is {port.dtype}" for port in ports if port.dtype in wrong and not quantized]
    return [finding("port-type", f"`io: {io}` was asked for: {', '.join(bad)}")] if bad else []


def judge_parity(parity: Parity, gates: Sequence[ParityGate]) -> list[Finding]:
    return judge_figures(parity.outputs, gates, "parity")


def judge_figures(outputs: Mapping[str, Figures], gates: Sequence[ParityGate], rule: str) -> list[Finding]:
    """Each bound against each output; a figure that could not be computed fails its bound."""
    found = []
    for gate in gates:
        bad = []
        for output, figures in outputs.items():
            value: float | None = getattr(figures, gate.metric)
            if value is None:
                bad.append(f"{output} is not finite")
            elif not _within(value, gate.min, gate.max):
                bad.append(f"{output} has {value:.4g}")
        if bad:
            message = f"{gate.metric} must be {_bound(gate.min, gate.max)}: {', '.join(bad)}"
            found.append(finding(rule, message, severity=gate.severity))
    return found


def judge_metric(measured: Measured, metric: str, gate: Compare, rule: str) -> list[Finding]:
    """A task metric against its bound."""
    if _within(measured.value, gate.min, gate.max):
        return []
    over = f" over {measured.samples} samples" if measured.samples else ""
    message = f"{metric} must be {_bound(gate.min, gate.max)}: it is {measured.value:.4g}{over}"
    return [finding(rule, message, severity=gate.severity)]


def _within(value: float, least: float | None, most: float | None) -> bool:
    return value >= least if least is not None else most is None or value <= most


def _bound(least: float | None, most: float | None) -> str:
    return f"at least {least:g}" if least is not None else f"at most {most:g}"


def failed(findings: Sequence[Finding], fail_on: FailOn) -> bool:
    """Whether findings of these severities stop a release."""
    if fail_on == "never":
        return False
    found = worst(findings)
    threshold: Literal["error", "warning"] = fail_on
    return found is not None and SEVERITIES.index(found) <= SEVERITIES.index(threshold)
