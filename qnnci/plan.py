"""From a project to targets: which graph is compiled for which SoC, and how that is spread over CI jobs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.project import Precision, Project
from qnnci.rules import finding
from qnnci.soc import Soc

MAX_JOBS = 256  # GitHub's limit of one matrix
# A job costs a machine, a checkout and an install of 530 MB before it compiles anything; a compile is often seconds.
# Eight are two rounds on the four cores of GitHub's runners.
CHIPS_PER_JOB = 8


@dataclass(frozen=True, slots=True)
class Target:
    """One graph for one SoC."""

    graph: str
    soc: Soc
    precision: Precision
    group: str = ""  # what it belongs to with others, so that one job must have them all; empty where it stands alone

    @property
    def id(self) -> str:
        return f"{self.graph}-{self.soc.name}"

    @property
    def stem(self) -> str:
        """The binary's name without suffix; it holds the arch, the one fact most often lost."""
        return f"{self.graph}_{self.precision}_{self.soc.name}_{self.soc.dsp_arch}"

    @property
    def binary(self) -> str:
        return f"{self.stem}.bin"

    @property
    def sidecar(self) -> str:
        """The binary's provenance."""
        return f"{self.stem}.json"

    @property
    def context_model(self) -> str:
        """The EPContext model that wraps the binary for ONNX Runtime."""
        return f"{self.stem}_ctx.onnx"

    @property
    def refusal(self) -> Finding | None:
        """Why this target cannot be, whatever the graph is."""
        if self.precision != "fp16" or self.soc.fp16:
            return None
        reason = "v68 has no fp16" if self.soc.arch == 68 else "this chip's HTP has no fp16"  # noqa: PLR2004 - v68 is a name
        return finding("fp16-unsupported", reason, graph=self.graph, soc=self.soc.name)


def plan(project: Project, graphs: Sequence[str] = ()) -> tuple[Target, ...]:
    """Targets of a project in its own order, of some graphs where these are named; also of a context or a cut graph.

    Raises:
        UsageError: a graph that the project has not, with the nearest name.

    """
    for name in graphs:
        if not project.members(name):
            near = difflib.get_close_matches(name, [*project.graphs, *project.contexts], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(f"the project has no graph {name!r}", hint=f"{hint}it has {', '.join(project.graphs)}")
    wanted = {member for name in graphs or project.graphs for member in project.members(name)}
    return tuple(
        Target(
            graph, soc, project.precision_for(graph, soc), group if (group := project.group_of(graph)) != graph else ""
        )
        for graph in project.graphs
        if graph in wanted
        for soc in project.graph_socs(graph)
    )


@dataclass(frozen=True, slots=True)
class Shard:
    """One CI job: some SoCs of one graph, so that the graph is prepared once and travels to its shards.

    `graphs` are those that it compiles: of a graph that is cut, the parts.
    """

    graph: str
    socs: tuple[str, ...]
    index: int
    graphs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Unique and fit for an artifact's name."""
        return f"{self.graph}-{self.index:03d}"


def shards(targets: Sequence[Target], max_jobs: int | None = None) -> tuple[Shard, ...]:
    """Spread targets over as many jobs as `max_jobs` allows; without it, over as few as hold `CHIPS_PER_JOB`.

    Raises:
        UsageError: more graphs than jobs.

    """
    size, max_jobs = (CHIPS_PER_JOB, MAX_JOBS) if max_jobs is None else (1, max_jobs)
    chips: dict[str, dict[str, None]] = {}
    members: dict[str, dict[str, None]] = {}
    for target in targets:
        chips.setdefault(target.group or target.graph, {})[target.soc.name] = None
        members.setdefault(target.group or target.graph, {})[target.graph] = None
    by_graph = {name: list(socs) for name, socs in chips.items()}
    if len(by_graph) > max_jobs:
        raise UsageError(
            f"{len(by_graph)} graphs do not fit into {max_jobs} jobs", hint="split the project into several files"
        )
    while sum(-(-len(names) // size) for names in by_graph.values()) > max_jobs:
        size += 1
    return tuple(
        Shard(graph, tuple(part), index, tuple(members[graph]))
        for graph, names in by_graph.items()
        for index, part in enumerate(_evenly(names, -(-len(names) // size)))
    )


def _evenly(names: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    """Cut into `count` parts, whose sizes differ by one at most, the larger first."""
    size, larger = divmod(len(names), count)
    start = 0
    for index in range(count):
        end = start + size + (index < larger)
        yield names[start:end]
        start = end


def matrix(targets: Sequence[Target], max_jobs: int | None = None) -> dict[str, list[dict[str, str | bool]]]:
    """GitHub matrices: all `graphs`; those to `prepare` in a job of their own; and `shards` to compile.

    A graph with one shard is prepared there: a job of its own would cost a machine and save nothing. The SoCs of a
    shard are joined by commas.
    """
    made = shards(targets, max_jobs)
    several = dict.fromkeys(shard.graph for shard in made if shard.index)
    return {
        "graphs": [{"graph": graph} for graph in dict.fromkeys(shard.graph for shard in made)],
        "prepare": [{"graph": graph} for graph in several],
        "shards": [
            {
                "id": shard.id,
                "graph": shard.graph,
                "socs": ",".join(shard.socs),
                "prepared": shard.graph in several,
                **({"graphs": ",".join(shard.graphs)} if shard.graphs != (shard.graph,) else {}),
            }
            for shard in made
        ],
    }
