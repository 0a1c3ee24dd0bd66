"""The whole job: every stage of every target, in parallel, each once; then the manifest of all that was found."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from qnnci import gates
from qnnci.build import cache, calibrate, calls, export, task
from qnnci.build.cache import Record
from qnnci.build.calls import Call
from qnnci.build.outcome import MANIFEST, REPORT, Built, finish
from qnnci.build.routes import OrtRoute, route_of
from qnnci.build.shared import Contexts
from qnnci.build.stage import Event, Stages, now, prepare
from qnnci.build.state import UNTIMED, BuildState, Ran
from qnnci.build.whole import Wholes
from qnnci.context.info import ContextInfo
from qnnci.errors import QnnciError, UsageError, refusal
from qnnci.files import disk_errors, remove_leftovers
from qnnci.findings import worst
from qnnci.manifest import Figures, Measured, Parity, Task
from qnnci.model.source import Source, fetch
from qnnci.plan import Target
from qnnci.project import Export, Graph, Precision
from qnnci.project_file import ProjectFile
from qnnci.rules import finding
from qnnci.toolchain.pool import Limit, Worker, machine_mb
from qnnci.toolchain.schedule import Job, Schedule

# The compiler itself is asked about these next: the forecast of `check` is told where it names no node.
FORECASTS = frozenset({"unsupported-op", "high-rank"})

Until = Literal["prepare", "convert"]

_FIRST = 1e9  # seconds: what others wait for


@dataclass(frozen=True, slots=True)
class Options:
    """How to run; what to build is the project's and the plan's."""

    cache: Path
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    keep_going: bool = True
    until: Until | None = None  # the stage after which to stop; None goes to the end


def build(file: ProjectFile, targets: Sequence[Target], options: Options, listen: Callable[[Event], None]) -> Built:
    """Build all targets and write the manifest, also when some fail.

    Raises:
        KeyboardInterrupt: stopped; finished stages stand and are not done again.
        UsageError: another build is writing into the same folder.
        MachineError: the output folder cannot be written.

    """
    output = file.base / file.project.output
    with _locked(output):
        return _Run(file, targets, options, listen, output).run()


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    with disk_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        lock = (output / ".lock").open("w", encoding="utf-8")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            hint = "wait for it, or give another `--output`"
            raise UsageError(f"another build is writing to {output}", hint=hint) from error
        remove_leftovers(output)
        with disk_errors(output):  # until this build has ended, none tells of what stands here
            for name in (MANIFEST, REPORT):
                (output / name).unlink(missing_ok=True)
        yield


class _Stop(Exception):
    """The way out of the schedule where the first failure ends the build."""


class _Run:
    def __init__(
        self,
        file: ProjectFile,
        targets: Sequence[Target],
        options: Options,
        listen: Callable[[Event], None],
        output: Path,
    ) -> None:
        self.state = BuildState(file, targets, output)
        self.file, self.project, self.options, self.output, self.listen = file, file.project, options, output, listen
        limits = self.project.limits
        limit = Limit(limits.seconds, limits.memory_mb or machine_mb() * 9 // 10)
        # Until then no chip comes in, and no SDK.
        self.route = OrtRoute(file) if options.until == "prepare" else route_of(file, options.cache)
        self.stages = Stages(file.base, limit, listen, self.state.ran)
        self.wholes = Wholes(self.state, self.stages, self.route.order)
        self.contexts = Contexts(self.state, self.stages)
        self.workers = [Worker() for _ in range(options.jobs)]
        self.schedule: Schedule[Worker] = Schedule(self.workers, Worker.interrupt)

    def run(self) -> Built:
        if self.options.until != "prepare":
            for target in self.state.targets:
                if refusal := target.refusal:
                    self.state.note(target, [refusal], "plan")
            self.schedule.add(self._job("sdk", "examine", lambda: _FIRST, self._examine))
        self.schedule.add(
            *(
                self._job(graph, "graph", lambda: _FIRST, self._graph, self._after_whole(graph))
                for graph in self.state.graphs
            )
        )
        try:
            self.schedule.run()
        except _Stop:
            pass
        finally:
            for worker in self.workers:
                worker.stop()
        self._distrust()
        return finish(self.state, whole=not self.options.until)

    def _job(
        self,
        what: str | tuple[str, Precision] | Target,
        stage: str,
        cost: Callable[[], float],
        work: Callable[..., None],
        after: tuple[str, ...] = (),
    ) -> Job[Worker]:
        def run(worker: Worker) -> None:
            try:
                work(what, worker)
            except QnnciError as error:  # of this graph or target: the others go on
                self.state.note_error(what, error)
            except OSError as error:
                self.state.note_error(what, refusal(error))
            if not self.options.keep_going and (self.state.errors or worst(self.state.all_findings()) == "error"):
                raise _Stop

        name = what.id if isinstance(what, Target) else what if isinstance(what, str) else " ".join(what)
        return Job(f"{stage} {name}", run, after, cost)

    def _examine(self, what: str, worker: Worker) -> None:
        """Look at the SDK before any of its tools runs: what it lacks would else come out one failure at a time."""
        for call in self.route.examination():
            record = self.stages.run(call, worker)
            self.state.findings += [each.at(stage=what) for each in record.findings]

    # once per graph

    def _after_whole(self, name: str) -> tuple[str, ...]:
        whole = self.project.whole_of(name)
        return (f"graph {whole}",) if whole != name else ()

    def _graph(self, name: str, worker: Worker) -> None:
        graph, state, folder = self.project.graphs[name], self.state.graphs[name], self.output / name
        source = (
            self._exported(name, graph.export, worker)
            if graph.export
            else self.wholes.part(graph.part)
            if graph.part
            else self._fetched(name, graph)
        )
        if source is None:
            return
        whole = self.state.graphs[self.project.whole_of(name)]
        state.source, state.source_sha256 = source.path, whole.source_sha256 or source.sha256
        prepared = prepare(self.stages, name, graph, folder, source, worker)
        self.state.note(name, prepared.findings, "prepare")
        if calls.PREPARED not in prepared.files:
            return
        state.prepared = prepared.files
        if graph.split:
            self._add_whole(name, graph, worker)
            self._hold_export(name, graph, worker)
            return
        checked = self.stages.run(calls.check(name, folder, state.prepared), worker)
        state.forecasts = [each for each in checked.findings if each.rule in FORECASTS]
        self.state.note(name, [each for each in checked.findings if each.rule not in FORECASTS], "check")
        if worst(state.findings) == "error":
            return
        state.nodes, state.quantized = tuple(checked.data["nodes"]), checked.data["quantized"]
        wanted: list[Target] = []
        if self.options.until != "prepare":
            for target in self.state.targets_of(name):
                self.state.note(target, self.route.refusals(target, quantized=state.quantized), "check")
            wanted = [target for target in self.state.targets_of(name) if not self._refused(target)]
        self._add_once(name, wanted)
        if not self.options.until:
            self._add_targets(name, wanted)
        self._hold_export(name, graph, worker)

    def _hold_export(self, name: str, graph: Graph, worker: Worker) -> None:
        state = self.state.graphs[name]
        if state.exported and graph.export:  # gates: they stop no compile
            self._compare(name, state.exported.files, worker)
            self._measure(name, graph.export, state.exported.files, worker)

    def _add_whole(self, name: str, graph: Graph, worker: Worker) -> None:
        """Cut a graph; what is done once for it is what its parts are fed with."""
        if not self.wholes.cut(name, worker):
            return
        first: tuple[str, ...] = ()
        if graph.calibration:
            first = (f"calibrate {name}",)
            self.schedule.add(self._job(name, "calibrate", lambda: _FIRST, self._calibrate))
        if self.project.verify_for(name).enabled:
            self.schedule.add(self._job(name, "reference", lambda: _FIRST, self._reference, first))

    def _refused(self, target: Target) -> bool:
        return worst(self.state.targets[target].findings) == "error"

    def _add_once(self, name: str, wanted: Sequence[Target]) -> None:
        """What is done once for all chips: a conversion for each precision, and what the original gives."""
        precisions, state = dict.fromkeys(target.precision for target in wanted), self.state.graphs[name]
        verified = self.project.verify_for(name).enabled and bool(wanted or self.options.until)
        jobs: list[Job[Worker]] = []
        first: tuple[str, ...] = ()
        if (verified and self._feeds_of_calibration(name)) or any(
            self.route.calibrates(name, each, quantized=state.quantized) for each in precisions
        ):
            first = (f"calibrate {name}",)
            state.precisions = tuple(precisions)
            jobs.append(self._job(name, "calibrate", lambda: _FIRST, self._calibrate, self._given(name, "calibrate")))
        after = ("examine sdk", *first)
        jobs += [self._job((name, each), "convert", lambda: _FIRST, self._convert, after) for each in precisions]
        if verified:
            given = self._given(name, "reference")
            jobs.append(self._job(name, "reference", lambda: _FIRST, self._reference, (*first, *given)))
        self.schedule.add(*jobs)

    def _given(self, name: str, stage: str) -> tuple[str, ...]:
        """The job of the whole that a part's own waits for."""
        part = self.project.graphs[name].part
        return (f"{stage} {part.of}",) if part else ()

    def _feeds_of_calibration(self, name: str) -> bool:
        """Whether binaries are verified on the calibration inputs, which are better than random ones."""
        given = self.project.graphs[name].calibration
        return given is not None and not given.random and not self.project.verify_for(name).inputs

    def _calibrate(self, name: str, worker: Worker) -> None:
        graph, state = self.project.graphs[name], self.state.graphs[name]
        if graph.calibration is None:
            return
        if graph.part:
            state.calibration = self.wholes.samples(name, graph.part, calibrate.CALIBRATION, worker)
            return
        ranges = {key: each.range for key, each in graph.inputs.items() if each.range}
        folder, base = self.output / name, self.file.base
        call = calibrate.calibrate(name, graph.calibration, ranges, folder, base, self.options.cache, state.prepared)
        # Where all that reads it is done, on another machine perhaps, the file itself is not needed.
        state.calibration = cache.load(call.folder, call.stage, call.key, files=False)
        done = (
            not graph.split
            and state.calibration is not None
            and all(
                cache.load(each.folder, each.stage, each.key) is not None
                for each in (
                    self._reference_call(name),
                    *(call for kind in state.precisions for call in self._chain(name, kind)[-1:]),
                )
            )
        )
        record = self.stages.run(call, worker, files=not done)
        self.state.note(name, record.findings, "calibrate")
        state.calibration = record if calibrate.CALIBRATION in record.files else None
        if graph.split:
            self.wholes.pass_on(name, record.files, worker)

    def _chain(self, name: str, precision: Precision) -> list[Call]:
        state = self.state.graphs[name]
        takes = state.calibration and self.route.calibrates(name, precision, quantized=state.quantized)
        files = state.calibration.files if state.calibration and takes else {}
        return self.route.conversions(name, precision, self.output / name, state.prepared, files)

    def _fetched(self, name: str, graph: Graph) -> Source:
        self.listen(Event(name, "source", "start"))
        began, started = now("milliseconds"), time.monotonic()
        source = fetch(graph.source or "", sha256=graph.sha256, base=self.file.base, cache=self.options.cache)
        self.state.ran.append(Ran(name, "source", "done", began, time.monotonic() - started))
        self.listen(Event(name, "source", "done"))
        return source

    def _exported(self, name: str, settings: Export, worker: Worker) -> Source | None:
        """Run the repository's own export."""
        folder = self.output / name
        made = self.stages.run(export.export(name, settings, folder, self.file.base, self.options.cache), worker)
        self.state.note(name, made.findings, "export")
        if export.EXPORTED not in made.files:
            return None
        self.state.graphs[name].exported = made
        return Source(self.project.graphs[name].origin, folder / export.EXPORTED, made.files[export.EXPORTED])

    def _compare(self, name: str, files: dict[str, str], worker: Worker) -> None:
        """Hold an exported graph against the original model, where that left its outputs."""
        state, folder = self.state.graphs[name], self.output / name
        call = export.compare(name, self.project.graphs[name], folder, self.file.base, files)
        if call is None:
            return
        compared = self.stages.run(call, worker)
        self.state.note(name, compared.findings, "compare")
        if compared.data:
            state.export_parity = {key: Figures(**each) for key, each in compared.data["outputs"].items()}
            limits = self.project.gates_for(name).parity
            self.state.note(name, gates.judge_figures(state.export_parity, limits, "export-parity"), "gate")

    def _measure(self, name: str, settings: Export, files: dict[str, str], worker: Worker) -> None:
        """Hold an exported graph against the original model by a command of the repository."""
        call = export.measure(name, settings, self.output / name, self.file.base, self.options.cache, files)
        if call is None or settings.compare is None:
            return
        record = self.stages.run(call, worker)
        self.state.note(name, record.findings, "measure")
        if export.MEASURED in record.files:
            measured = Measured(value=record.data["value"], samples=record.data["samples"])
            metric = settings.compare.metric
            self.state.graphs[name].export_metrics = {metric: measured}
            self.state.note(name, gates.judge_metric(measured, metric, settings.compare, "export-metric"), "gate")

    def _add_targets(self, name: str, wanted: Sequence[Target]) -> None:
        state, verify = self.state.graphs[name], self.project.verify_for(name)
        jobs: list[Job[Worker]] = []
        run_already: dict[tuple[str, str], str] = {}
        for target in wanted:
            converted = (f"convert {name} {target.precision}",)
            jobs.append(self._job(target, "compile", lambda: state.compile_seconds, self._compile, converted))
            stands_for = run_already.setdefault((target.soc.dsp_arch, target.precision), target.soc.name)
            if not verify.enabled:
                self.state.note(target, [finding("not-verified", "verification is off")], "verify")
            elif verify.targets == "one-per-arch" and stands_for != target.soc.name:
                message = f"{stands_for} of the same dsp arch was verified in its place"
                self.state.note(target, [finding("not-verified", message, hint="`verify: {targets: all}`")], "verify")
            else:
                after = (f"compile {target.id}", f"reference {name}")
                jobs.append(self._job(target, "verify", lambda: state.verify_seconds, self._verify, after))
        self.schedule.add(*jobs)

    def _convert(self, what: tuple[str, Precision], worker: Worker) -> None:
        if worst(self.state.findings) == "error":
            return
        name, precision = what
        state = self.state.graphs[name]
        if self.route.calibrates(name, precision, quantized=state.quantized):
            if state.calibration is None:
                return
            state.calibrated[precision] = state.calibration.files[calibrate.CALIBRATION]
        made: dict[str, str] = {}
        chain = state.conversions[precision] = self._chain(name, precision)
        # What only leads to the others need not travel with them.
        ends = [cache.load(call.folder, call.stage, call.key) for call in chain[1:]]
        for call in chain:
            record = self.stages.run(call, worker, files=call is not chain[0] or not ends or None in ends)
            self.state.note(name, record.findings, call.stage)
            if worst(record.findings) == "error":
                self._forget(chain)  # what it was given may have been no more than a part of a file
                return
            made |= record.files
            state.quantized_as[precision] = {**state.quantized_as.get(precision, {}), **record.data}
            state.float_ops[precision] = (
                *state.float_ops.get(precision, ()),
                *record.data["facts"].get("float_ops", ()),
            )
        state.converted[precision] = made

    def _distrust(self) -> None:
        """Have done again what no chip's compile took: a file that a tool wrote only in part looks like any other."""
        for name, graph in self.state.graphs.items():
            for precision, chain in graph.conversions.items():
                states = [
                    self.state.targets[each] for each in self.state.targets_of(name) if each.precision == precision
                ]
                if any(each.compile_failed for each in states) and not any(each.compiled for each in states):
                    self._forget(chain)

    @staticmethod
    def _forget(chain: Sequence[Call]) -> None:
        for call in chain:
            cache.forget(call.folder, call.stage)

    def _reference_call(self, name: str) -> Call:
        state, verify = self.state.graphs[name], self.project.verify_for(name)
        graph, folder = self.project.graphs[name], self.output / name
        given = self.file.base / verify.inputs if verify.inputs else None
        kept = state.calibration.files if state.calibration and self._feeds_of_calibration(name) else {}
        return calls.reference(
            name,
            graph,
            verify,
            folder,
            state.source,
            given=given,
            original=None if given else export.original(graph.export, folder, self.file.base),
            calibration=folder / calibrate.CALIBRATION if kept else None,
            keys={"source": state.source_sha256, "model": state.prepared, "calibration": kept},
        )

    def _reference(self, name: str, worker: Worker) -> None:
        graph, state = self.project.graphs[name], self.state.graphs[name]
        if graph.part:
            state.reference = self.wholes.samples(name, graph.part, calls.REFERENCE, worker)
            return
        state.reference = self.stages.run(self._reference_call(name), worker)
        self.state.note(name, state.reference.findings, "reference")
        if graph.split:
            self.wholes.pass_on(name, state.reference.files, worker)
            return
        state.task = self._task(name, self.output / name, self.output / name / calls.PREPARED, state.prepared, worker)

    def _task(
        self, what: str | Target, folder: Path, model: Path, files: dict[str, str], worker: Worker
    ) -> Record | None:
        """Run the project's own command with a graph or a binary; None where it has none, or that failed."""
        graph, name = (what.graph, what.id) if isinstance(what, Target) else (what, what)
        verify, layout = self.project.verify_for(graph), self.project.graphs[graph].layout
        base, prepared = self.file.base, self.output / graph / calls.PREPARED
        turned = {"route": self.project.route, "layout": {name: list(axes) for name, axes in layout.items()}}
        keys = {"model": files, "graph": self.state.graphs[graph].prepared, **turned}
        call = task.task(
            name, verify, model, folder, base, self.options.cache, graph=prepared, turned=turned, keys=keys
        )
        if call is None:
            return None
        record = self.stages.run(call, worker)
        self.state.note(what, record.findings, "metric")
        return record if "value" in record.data else None

    # once per target

    def _compile(self, target: Target, worker: Worker) -> None:
        state, graph, folder = self.state.targets[target], self.state.graphs[target.graph], self.state.folder(target)
        if target.precision not in graph.converted:
            return
        converted = graph.converted[target.precision]
        call = self.route.compile(target, folder, graph.prepared, converted, graph.nodes)
        if cache.load(call.folder, call.stage, call.key) is None:  # what it says is of a binary that goes now
            (folder / target.sidecar).unlink(missing_ok=True)
        compiled = self.stages.run(call, worker)
        graph.compile_seconds = compiled.seconds
        self.state.note(target, compiled.findings, "compile")
        if target.binary not in compiled.files:
            if not any(each.rule == "cpu-fallback" for each in compiled.findings):
                self.state.note(target, graph.forecasts, "check")  # the compiler named no node: these may be it
            return
        state.compiled = compiled
        inspected = self.stages.run(calls.inspect(target, folder, compiled.files), worker)
        self.state.note(target, inspected.findings, "inspect")
        if not inspected.data:
            return
        state.info = ContextInfo.from_json(inspected.data["info"])
        size = (folder / target.binary).stat().st_size
        limits = self.project.gates_for(target.graph)
        self.state.note(target, gates.judge_binary(state.info, size, target, limits, self.project.compile), "gate")
        if self.project.route == "ort":
            io = self.project.quantize_for(target.graph).io
            self.state.note(target, gates.judge_ports(state.info, io, quantized=graph.quantized), "gate")
        if shared := self.contexts.compiled(target, call):
            job = self._job(target, "share", lambda: UNTIMED, lambda _, worker: self.contexts.run(shared, worker))
            self.schedule.add(job)

    def _verify(self, target: Target, worker: Worker) -> None:
        try:
            self._compared(target, worker)
        finally:
            if chain := self.wholes.ended(target):
                job = self._job(target, "chain", lambda: UNTIMED, lambda _, worker: self.wholes.run(chain, worker))
                self.schedule.add(job)

    def _compared(self, target: Target, worker: Worker) -> None:
        """Run a binary in the emulator, and the project's own command with it."""
        state, graph = self.state.targets[target], self.state.graphs[target.graph]
        if state.compiled is None or state.info is None or graph.reference is None or not graph.reference.files:
            return
        verify = self.project.verify_for(target.graph)
        folder = self.state.folder(target)
        call = calls.verify(
            target.id,
            folder,
            folder / target.context_model,
            folder.parent / calls.REFERENCE,
            info=state.info,
            soc_id=target.soc.id,
            seconds=verify.seconds,
            order=self.route.order,
            grids=graph.quantized_as.get(target.precision, {}).get("grids", {}),
            axes={name: list(axes) for name, axes in self.project.graphs[target.graph].layout.items()},
            keys={"binary": state.compiled.files, "reference": graph.reference.files},
        )
        verified = self.stages.run(call, worker)
        graph.verify_seconds = verified.seconds
        self.state.note(target, verified.findings, "verify")
        if verified.data:
            figures = {key: verified.data[key] for key in ("samples", "outputs")}
            state.parity = Parity(inputs=graph.reference.data["inputs"], **figures)
            self.state.note(
                target, gates.judge_parity(state.parity, self.project.gates_for(target.graph).parity), "gate"
            )
        if graph.task and verify.metric:
            measured = self._task(target, folder, folder / target.binary, state.compiled.files, worker)
            if measured:
                value, cpu = measured.data["value"], graph.task.data["value"]
                state.task = Task(metric=verify.metric, value=value, cpu=cpu, samples=measured.data["samples"])
                self.state.note(target, task.judge(verify.metric, value, cpu, verify), "gate")
