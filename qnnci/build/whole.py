"""Graphs that are cut, in a build: their parts, what these are fed with, and the chains that they make on each chip."""

from __future__ import annotations

import threading
from pathlib import Path

from qnnci import gates
from qnnci.build import calls, parts
from qnnci.build.adapt import Order
from qnnci.build.cache import Record
from qnnci.build.stage import Stages
from qnnci.build.state import BuildState, ChainState
from qnnci.errors import UsageError
from qnnci.manifest import Parity
from qnnci.model.source import Source
from qnnci.plan import Target
from qnnci.project import Part
from qnnci.toolchain.pool import Worker


class Wholes:
    """All of them. Methods are called from the threads of a build, each with its worker."""

    def __init__(self, state: BuildState, stages: Stages, order: Order) -> None:
        self._state, self._stages, self._order = state, stages, order
        self._lock = threading.Lock()

    def _folder(self, name: str) -> Path:
        return self._state.output / name

    def cut(self, name: str, worker: Worker) -> bool:
        """Cut a prepared graph.

        Raises:
            UsageError: not at these tensors.

        """
        state, settings, file = self._state.graphs[name], self._state.project.graphs[name].split, self._state.file
        if settings is None:
            return False
        try:
            made = self._stages.run(parts.split(name, settings, self._folder(name), state.prepared), worker)
        except UsageError as error:
            error.where = f"{file.path}:{file.line('graphs', name, 'split')}" if file.path else name
            raise
        self._state.note(name, made.findings, "split")
        state.cut = made if made.files else None
        return state.cut is not None

    def part(self, part: Part) -> Source | None:
        """The graph of a part, where the whole could be cut."""
        cut, file = self._state.graphs[part.of].cut, parts.part_file(part.index)
        return Source(file, self._folder(part.of) / file, cut.files[file]) if cut else None

    def pass_on(self, name: str, samples: dict[str, str], worker: Worker) -> None:
        """Run the parts of a graph on the CPU, one after the other, from samples of the graph (a file, its sha256)."""
        state = self._state.graphs[name]
        if state.cut is None or not samples:
            return
        call = parts.passing(name, self._folder(name), state.cut.data["parts"], state.cut.files, samples)
        passed = self._stages.run(call, worker)
        self._state.note(name, passed.findings, call.stage)
        if passed.files:
            (kept,) = samples
            state.passed[kept] = passed

    def samples(self, name: str, part: Part, kept: str, worker: Worker) -> Record | None:
        """What was passed to a part, as its reference or calibration inputs; None where the whole gave none."""
        whole, state = self._state.graphs[part.of], self._state.graphs[name]
        if kept not in whole.passed:
            return None
        told = whole.reference.data["inputs"] if kept == calls.REFERENCE and whole.reference else "calibration inputs"
        return self._stages.run(
            parts.samples_of(
                name,
                part.index,
                self._folder(part.of),
                self._folder(name),
                kept,
                passed=whole.passed[kept],
                prepared=state.prepared,
                told=told,
            ),
            worker,
        )

    def ended(self, target: Target) -> ChainState | None:
        """Note that a target was verified, or could not be; returns the chain of which it was the last."""
        chain = self._state.chains.get(f"{self._state.project.whole_of(target.graph)}-{target.soc.name}")
        if chain is None:
            return None
        with self._lock:
            chain.ended.add(target)
            return chain if len(chain.ended) == len(chain.parts) else None

    def run(self, chain: ChainState, worker: Worker) -> None:
        """Run the binaries of a chain, where each was good enough to be run by itself."""
        name, whole, project = chain.whole, self._state.graphs[chain.whole], self._state.project
        links = [link for target in chain.parts if (link := self._link(target))]
        if whole.reference is None or len(links) < len(chain.parts):
            return
        seconds = project.verify_for(name).seconds
        files = whole.reference.files
        call = parts.chain(name, links, self._folder(name), files, seconds=seconds, order=self._order)
        record = self._stages.run(call, worker)
        found = list(record.findings)
        if record.data:
            figures = {key: record.data[key] for key in ("samples", "outputs")}
            chain.parity = Parity(inputs=whole.reference.data["inputs"], **figures)
            found += gates.judge_figures(chain.parity.outputs, project.gates_for(name).parity, "chain-parity")
        self._state.note(name, [each.at(soc=chain.parts[0].soc.name) for each in found], "chain")

    def _link(self, target: Target) -> parts.Link | None:
        state = self._state.targets[target]
        if state.compiled is None or state.info is None or state.parity is None:
            return None
        return parts.Link(target, self._state.folder(target), state.info, state.compiled.files)
