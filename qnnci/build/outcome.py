"""The end of a build: its manifest, the provenance beside each binary, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci import gates
from qnnci.build.cache import tool_versions
from qnnci.build.calls import PREPARED
from qnnci.build.provenance import entry_of, settings_of
from qnnci.build.state import BuildState
from qnnci.errors import ExitCode, QnnciError
from qnnci.files import sha256, write_json
from qnnci.findings import Finding
from qnnci.manifest import (
    Chain,
    ChainPart,
    ContextGraph,
    Entry,
    Figures,
    FindingRecord,
    Manifest,
    Measured,
    SharedContext,
    StageTime,
    Wanted,
    devices,
    measured_beside,
    save,
)
from qnnci.plan import Target

MANIFEST = "manifest.json"
REPORT = "report.html"  # made of the manifest by whoever shows it
# Findings that say that the work itself broke, not that the model was judged.
BROKEN = frozenset(
    {
        "stage-crashed",
        "stage-timeout",
        "stage-memory",
        "nothing-written",
        "export-failed",
        "compare-failed",
        "metric-failed",
        "calibration-failed",
    }
)
# Findings that say that something which the work needs is not there.
MISSING = frozenset({"python-import", "missing-lib", "sdk-missing-library", "sdk-python", "sdk-tool", "sdk-compiler"})
# Findings that say that the machine has not what the work needs.
REFUSED = frozenset({"disk-full"})


@dataclass(frozen=True, slots=True)
class Exported:
    """A graph that the project exported: its prepared form, and what was measured of it on the CPU."""

    graph: str
    prepared: Path
    sha256: str
    parity: dict[str, Figures] | None
    metrics: dict[str, Measured] | None


@dataclass(frozen=True, slots=True)
class Built:
    """What came out. `errors` are those of one graph or target that did not stop the others.

    `path` is where the manifest stands; a build that stopped before it compiled has written none. `exports` are the
    graphs that were exported and prepared.
    """

    manifest: Manifest
    path: Path
    findings: tuple[Finding, ...]
    errors: tuple[QnnciError, ...]
    exports: tuple[Exported, ...] = ()

    @property
    def code(self) -> ExitCode:
        if self.errors:
            return self.errors[0].code
        rules = {each.rule for each in self.findings if each.severity == "error"}
        if rules & REFUSED:
            return ExitCode.MACHINE
        if rules & MISSING:
            return ExitCode.TOOL_MISSING
        if rules & BROKEN:
            return ExitCode.TOOL_CRASHED
        return ExitCode.OK if self.manifest.passed else ExitCode.GATE


def finish(build: BuildState, *, whole: bool = True) -> Built:
    """Write the sidecars and the manifest of all that was built; of a build that is not whole, there is none."""
    targets = tuple(build.targets) if whole else ()
    entries = tuple(entry for target in targets if (entry := _entry(build, target)))
    findings = tuple(build.all_findings())
    complete = len(entries) == len(targets) and not build.errors
    manifest = Manifest(
        name=build.project.name,
        license=build.project.license,
        passed=complete and not gates.failed(findings, build.project.fail_on),
        tools=tool_versions(),
        targets=tuple(Wanted(graph=target.graph, soc=target.soc.name) for target in targets),
        entries=entries,
        devices=devices(entries),
        contexts=tuple(_contexts(build, entries)) if whole else (),
        chains=tuple(_chains(build, entries)) if whole else (),
        findings=tuple(FindingRecord.model_validate(each.to_json()) for each in findings),
        stages=tuple(_times(build)),
        settings=settings_of(build.project, tuple(build.graphs)),
    )
    path = build.output / MANIFEST
    if whole:
        save(path, manifest)
    return Built(manifest, path, findings, tuple(build.errors), tuple(_exports(build)))


def _chains(build: BuildState, entries: Sequence[Entry]) -> Iterator[Chain]:
    """Of each chip for which every part has a binary."""
    there = {(entry.graph, entry.soc): entry for entry in entries}
    for chain in build.chains.values():
        soc, cut = chain.parts[0].soc.name, build.graphs[chain.whole].cut
        made = [there[target.graph, soc] for target in chain.parts if (target.graph, soc) in there]
        if cut and len(made) == len(chain.parts):
            said = zip(made, cut.data["parts"], strict=True)
            links = tuple(ChainPart(graph=entry.graph, **part) for entry, part in said)
            passed = all(entry.passed for entry in made)
            yield Chain(graph=chain.whole, soc=soc, passed=passed, parts=links, parity=chain.parity)


def _contexts(build: BuildState, entries: Sequence[Entry]) -> Iterator[SharedContext]:
    """Of each context that was compiled; it is as good as the worst of its graphs by itself."""
    passed = {(entry.graph, entry.soc) for entry in entries if entry.passed}
    for shared in build.shared:
        if shared.made is None or shared.info is None:
            continue
        folder = build.output / shared.name / shared.soc.name
        good = all((target.graph, target.soc.name) in passed for target in shared.targets)
        yield SharedContext(
            name=shared.name,
            soc=shared.soc.name,
            passed=good and not gates.failed(shared.findings, build.project.fail_on),
            binary=os.path.relpath(folder / shared.binary, build.output),
            sha256=shared.made.files[shared.binary],
            bytes=(folder / shared.binary).stat().st_size,
            separate_bytes=shared.separate_bytes,
            shared_weights_bytes=max((graph.shared_weights_bytes or 0 for graph in shared.info.graphs), default=None),
            qairt=shared.info.build_id,
            graphs=tuple(
                ContextGraph(
                    graph=target.graph,
                    graph_name=name,
                    context_model=os.path.relpath(folder / shared.context_model(target), build.output),
                )
                for target, name in zip(shared.targets, shared.made.data["names"], strict=True)
            ),
        )


def _exports(build: BuildState) -> Iterator[Exported]:
    for name, graph in build.graphs.items():
        if graph.exported and PREPARED in graph.prepared:
            path = build.output / name / PREPARED
            yield Exported(name, path, graph.prepared[PREPARED], graph.export_parity, graph.export_metrics)


def _times(build: BuildState) -> Iterator[StageTime]:
    """Each stage in the order of its beginning; of a target the chip, of what the whole build needs no graph."""
    targets = {target.id: target for target in build.targets}
    graphs = {f"{target.graph}-{target.precision}": target.graph for target in build.targets}  # of a conversion
    graphs |= {name: name for name in build.graphs}
    several = {name: (each.whole, each.parts[0].soc.name) for name, each in build.chains.items() if name not in targets}
    several |= {each.id: (each.name, each.soc.name) for each in build.shared if each.id not in targets}
    for ran in sorted(build.ran, key=lambda each: each.began):
        target = None if ran.what in graphs else targets.get(ran.what)
        name, soc = (target.graph, target.soc.name) if target else several.get(ran.what, (graphs.get(ran.what, ""), ""))
        yield StageTime(
            graph=name,
            soc=soc,
            stage=ran.stage,
            state=ran.state,
            began=ran.began,
            seconds=round(ran.seconds, 3),
            peak_mb=ran.peak_mb or None,
        )


def _entry(build: BuildState, target: Target) -> Entry | None:
    state, graph, folder = build.targets[target], build.graphs[target.graph], build.folder(target)
    if state.compiled is None or state.info is None:
        return None
    above = build.graphs[build.project.whole_of(target.graph)]
    whole = [each for each in above.findings if each.soc in {"", target.soc.name}]
    found = [*build.findings, *whole, *graph.findings, *state.findings]
    entry = entry_of(
        target,
        build.project,
        state.info,
        folder=folder,
        output=build.output,
        compiled=state.compiled,
        source_sha256=graph.source_sha256,
        parity=state.parity,
        export_parity=graph.export_parity,
        export_metrics=graph.export_metrics,
        task=state.task,
        float_ops=graph.float_ops.get(target.precision, ()),
        calibration_sha256=graph.calibrated.get(target.precision),
        encodings_sha256=_encodings(build, target),
        quantized_as=graph.quantized_as.get(target.precision, {}).get("quantization"),
        passed=not (above.broken or graph.broken or state.broken or gates.failed(found, build.project.fail_on)),
    )
    if made := measured_beside(folder / target.binary, entry.sha256):
        entry = entry.model_copy(update={"measurements": made})
    sidecar = folder / target.sidecar
    for stale in set(folder.glob(f"{target.graph}_*.json")) - {sidecar}:
        stale.unlink()  # of another precision, whose binary is gone too
    write_json(sidecar, entry.model_dump(mode="json"))
    return entry


def _encodings(build: BuildState, target: Target) -> str | None:
    """The digest of the encodings file that a fixed-point target was made with."""
    if target.precision == "fp16":
        return None
    name = build.project.convert_for(target.graph).quantization_overrides
    path = build.file.base / name if name else None
    return sha256(path) if path and path.is_file() else None
