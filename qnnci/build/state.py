"""What is known of a build while it runs: each graph, each target, and what was found of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from qnnci.build.cache import Record
from qnnci.build.calls import Call
from qnnci.context.info import ContextInfo
from qnnci.errors import QnnciError, UsageError
from qnnci.findings import Finding
from qnnci.manifest import Figures, Measured, Parity, Task
from qnnci.plan import Target
from qnnci.project import Precision, Project
from qnnci.project_file import ProjectFile
from qnnci.soc import Soc

# What a finding is held against, below the graph's own settings or the project's: there a person changes it.
SETTINGS = {
    "binary-size": ("gates", "binary_mb"),
    "spill-fill": ("gates", "spill_fill_bytes"),
    "vtcm": ("gates", "vtcm_mb"),
    "parity": ("gates", "parity"),
    "chain-parity": ("gates", "parity"),
    "split-differs": ("split",),
    "export-parity": ("gates", "parity"),
    "wrong-vtcm": ("compile", "vtcm_mb"),
    "not-verified": ("verify",),
}


@dataclass(frozen=True, slots=True)
class Ran:
    """A stage of `what`, a graph's name or a target's id: when it began (UTC, ISO 8601), how long, how much memory."""

    what: str
    stage: str
    state: Literal["done", "cached", "failed"]
    began: str
    seconds: float
    peak_mb: int = 0


UNTIMED = 1e6  # seconds: what was not timed yet goes early, so that the rest can be packed well


@dataclass(slots=True)
class GraphState:
    """A graph: `prepared` and `converted` map names of files to their sha256."""

    source: Path = Path()
    source_sha256: str = ""
    prepared: dict[str, str] = field(default_factory=dict)
    converted: dict[Precision, dict[str, str]] = field(default_factory=dict)
    conversions: dict[Precision, list[Call]] = field(default_factory=dict)
    float_ops: dict[Precision, tuple[str, ...]] = field(default_factory=dict)
    quantized_as: dict[Precision, dict[str, Any]] = field(default_factory=dict)  # what its conversions say
    nodes: tuple[str, ...] = ()
    forecasts: list[Finding] = field(default_factory=list)
    quantized: bool = False
    precisions: tuple[Precision, ...] = ()  # that are built
    calibration: Record | None = None
    calibrated: dict[Precision, str] = field(default_factory=dict)  # sha256 of the calibration inputs
    reference: Record | None = None
    cut: Record | None = None  # of a graph with `split`: its parts, what each is fed with, and with what calibrated
    passed: dict[str, Record] = field(default_factory=dict)
    task: Record | None = None
    exported: Record | None = None
    export_parity: dict[str, Figures] | None = None
    export_metrics: dict[str, Measured] | None = None
    compile_seconds: float = UNTIMED
    verify_seconds: float = UNTIMED
    findings: list[Finding] = field(default_factory=list)
    broken: bool = False


@dataclass(slots=True)
class ChainState:
    """All parts of a graph on one chip; `ended` are those that were verified, or are not to be."""

    whole: str
    parts: tuple[Target, ...]
    ended: set[Target] = field(default_factory=set)
    parity: Parity | None = None


@dataclass(slots=True)
class SharedState:
    """A context of several graphs on one chip, beside the binaries of their own. Sizes in bytes."""

    name: str
    targets: tuple[Target, ...]
    made: Record | None = None
    info: ContextInfo | None = None
    separate_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def soc(self) -> Soc:
        return self.targets[0].soc

    @property
    def id(self) -> str:
        return f"{self.name}-{self.soc.name}"

    @property
    def stem(self) -> str:
        return f"{self.name}_{self.soc.name}_{self.soc.dsp_arch}"

    @property
    def binary(self) -> str:
        return f"{self.stem}.bin"

    def context_model(self, target: Target) -> str:
        """The EPContext model of one of its graphs."""
        return f"{self.stem}_{target.graph}_ctx.onnx"


@dataclass(slots=True)
class TargetState:
    compiled: Record | None = None
    info: ContextInfo | None = None
    parity: Parity | None = None
    task: Task | None = None
    findings: list[Finding] = field(default_factory=list)
    broken: bool = False

    @property
    def compile_failed(self) -> bool:
        return self.compiled is None and any(
            each.stage == "compile" and each.severity == "error" for each in self.findings
        )


def _chains(project: Project, targets: Sequence[Target]) -> Iterator[ChainState]:
    """Where all parts of a graph are built for a chip."""
    for soc in dict.fromkeys(target.soc for target in targets):
        by_graph = {target.graph: target for target in targets if target.soc == soc}
        for whole in dict.fromkeys(project.whole_of(graph) for graph in by_graph):
            parts = project.members(whole)
            if project.graphs[whole].split and all(part in by_graph for part in parts):
                yield ChainState(whole, tuple(by_graph[part] for part in parts))


def _shared(project: Project, targets: Sequence[Target]) -> Iterator[SharedState]:
    """Where all graphs of a context are built for a chip."""
    for name in project.contexts:
        for soc in dict.fromkeys(target.soc for target in targets):
            by_graph = {target.graph: target for target in targets if target.soc == soc}
            graphs = project.members(name)
            if all(graph in by_graph for graph in graphs):
                yield SharedState(name, tuple(by_graph[graph] for graph in graphs))


class BuildState:
    """All of it. `findings` are those of the build as a whole, `errors` those that ended a graph or target.

    `ran` is every stage in the order of its end; several threads append to it.
    """

    def __init__(self, file: ProjectFile, targets: Sequence[Target], output: Path) -> None:
        self.file, self.output = file, output
        self.targets = {target: TargetState() for target in targets}
        wholes = (file.project.whole_of(target.graph) for target in targets)
        self.graphs = {name: GraphState() for name in dict.fromkeys((*wholes, *(each.graph for each in targets)))}
        self.chains = {f"{each.whole}-{each.parts[0].soc.name}": each for each in _chains(file.project, targets)}
        self.shared = tuple(_shared(file.project, targets))
        self.findings: list[Finding] = []
        self.errors: list[QnnciError] = []
        self.ran: list[Ran] = []

    @property
    def project(self) -> Project:
        return self.file.project

    def folder(self, target: Target) -> Path:
        return self.output / target.graph / target.soc.name

    def shared_by(self, target: Target) -> SharedState | None:
        """The context that a target is in, where it is built."""
        return next((each for each in self.shared if target in each.targets), None)

    def targets_of(self, graph: str) -> list[Target]:
        return [target for target in self.targets if target.graph == graph]

    def note(self, what: str | Target, findings: Sequence[Finding], stage: str) -> None:
        """Keep findings with their places filled in; where no file is known, their setting's in the project file."""
        graph, soc = (what.graph, what.soc.name) if isinstance(what, Target) else (what, "")
        path = str(self.file.path) if self.file.path else ""
        kept = self.targets[what].findings if isinstance(what, Target) else self.graphs[graph].findings
        for each in findings:
            place = {} if each.file else {"file": path, "line": self._line(graph, each.rule)}
            kept.append(each.at(graph=graph, soc=soc, stage=stage, **place))

    def _line(self, graph: str, rule: str) -> int:
        """The line of the setting that a rule is held against where the file has it, else the graph's."""
        setting = SETTINGS.get(rule, ())
        own = ("graphs", graph, *setting)
        loc = own if own[:3] in self.file.lines or setting not in self.file.lines else setting
        return self.file.line(*loc)

    def note_error(self, what: str | tuple[str, Precision] | Target, error: QnnciError) -> None:
        """Keep an error, and that what it ended was not judged to the end: nothing of it may pass."""
        name = what[0] if isinstance(what, tuple) else what
        if isinstance(name, Target):
            self.targets[name].broken = True
        else:
            for graph in [self.graphs[name]] if name in self.graphs else self.graphs.values():
                graph.broken = True
        if isinstance(error, UsageError) and not error.where:
            error.where = name.id if isinstance(name, Target) else name
        self.errors.append(error)

    def all_findings(self) -> list[Finding]:
        found = [self.findings]
        found += [state.findings for state in self.graphs.values()]
        found += [state.findings for state in self.targets.values()]
        found += [shared.findings for shared in self.shared]
        return [each for findings in found for each in findings]
