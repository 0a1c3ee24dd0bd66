"""The verb `device measure`: what a binary costs on a device, beside what the same task costs on its CPU."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import click

from qnnci.build.adapt import to_binary
from qnnci.commands import device_kit
from qnnci.commands.device_kit import Case, Reached
from qnnci.context.info import GraphInfo, TensorInfo
from qnnci.device import measure, raw, room, run
from qnnci.device.about import folder_for
from qnnci.device.measure import Task, Took, spread
from qnnci.device.room import Room
from qnnci.errors import ExitCode, ToolCrashed, UsageError
from qnnci.findings import Finding
from qnnci.manifest import DeviceMeasurement, Manifest, keep_measurements, load, measured_beside, save
from qnnci.model.feeds import plain
from qnnci.report import github
from qnnci.report.devices import show_measurement
from qnnci.report.terminal import console, show_findings
from qnnci.shards import NAME

_CPU = "libQnnCpu.so"
_CPU_FEEDS, _FEEDS = "in_cpu", "in"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The task: so many inferences or minutes, of binary and CPU in turn, and what the CPU runs, if anything."""

    inferences: int | None
    minutes: float | None
    repeat: int
    rest: float
    cpu_command: str
    cpu_library: Path | None
    push: tuple[Path, ...]


def measured(
    address: str,
    ssh_options: Sequence[str],
    where: Path,
    wanted: Wanted,
    *,
    soc: str,
    graphs: Sequence[str],
    libs: Path | None,
    root: str | None,
    source: str,
    feeds: Path | None,
    folder: str,
    seconds: float | None,
    record: bool,
    keep: bool,
    as_json: bool,
) -> ExitCode:
    """Measure one binary, print the figures, and write them beside its entry in the manifest.

    Raises:
        UsageError: no binary is for this device, several graphs and none named, or several manifests.
        ToolCrashed: a task failed on the device, or took too long.
        QnnciError: the device, its libraries or the tool are not there.

    """
    path = where / NAME if where.is_dir() else where
    manifest = load(path)
    reached = device_kit.reach(address, ssh_options, soc)
    entries = device_kit.entries_for(manifest, reached.soc, graphs)
    if len(entries) != 1:
        raise UsageError("one graph is measured at a time", hint=f"`--graph` {entries[0].graph}, for one")
    case = device_kit.case(entries[0], path.parent, source, feeds, 8)
    limit = seconds or (wanted.minutes or 0) * 120 + 3600
    with device_kit.libraries(reached, case.entry.qairt, libs, root) as local:
        kit = device_kit.kit(reached, case.entry.qairt, local, root)
        if wanted.cpu_library:
            cpu = next(iter(sorted(local.rglob(_CPU))), None)
            kit[_CPU] = cpu or device_kit.tool(reached, case.entry.qairt, root, _CPU, place="lib")
        took = _on_device(reached, case, kit, wanted, folder, limit, keep=keep)
    made = _measurement(reached, case, wanted, took)
    found = [each.at(graph=case.entry.graph, soc=case.entry.soc, stage="device") for each in measure.doubts(made.runs)]
    if record:
        _record(path, manifest, case, made)
    _report(made, found, as_json=as_json)
    return ExitCode.OK


def _on_device(
    reached: Reached, case: Case, kit: dict[str, Path], wanted: Wanted, folder: str, limit: float, *, keep: bool
) -> list[Took]:
    took: list[Took] = []
    with tempfile.TemporaryDirectory(prefix="qnnci-device-") as name:
        files, tasks = _prepared(case, wanted, Path(name))
        files = {**kit, **files}
        place = folder_for(reached.about, room.space(files), folder)
        with room.opened(reached.link, place, (sorted(files), case.entry.sha256), keep=keep) as at:
            at.put(files, device_kit.say)
            tars = " && ".join(f"tar -xf {each}" for each in files if each.endswith(".tar"))
            at.link.tell(f"cd {at.path} && rm -rf {_FEEDS} {_CPU_FEEDS} && {tars}", timeout=300)
            for number in range(wanted.repeat):
                for task in tasks:
                    if took and wanted.rest:
                        device_kit.say(f"resting {wanted.rest:g} s")
                        time.sleep(wanted.rest)
                    device_kit.say(f"run {number + 1} of {wanted.repeat} on the {task.processor.upper()}")
                    took.append(_once(at, case, task, limit))
    return took


def _once(at: Room, case: Case, task: Task, limit: float) -> Took:
    at.link.tell(f"cd {at.path} && rm -rf {raw.OUT}")
    took = measure.once(at, task, limit=limit)
    if _failed(at, task, took):
        first = next(iter(took.report.findings), None)
        last = took.log.strip().splitlines()[-1:] or ["it said nothing"]
        told = first.message if first else f"it ended with {took.code}: {last[0][:200]}"
        what = f"the task on the {task.processor.upper()} failed"
        raise ToolCrashed(f"{what}: {told}", where=case.entry.graph, hint=first.hint if first else "")
    return took


def _failed(at: Room, task: Task, took: Took) -> bool:
    """Of a user's own command the exit code says it; that of the SDK's tool misleads, so its outputs count too."""
    if not task.command.startswith(f"./{run.NET_RUN} "):
        return took.code != 0
    made = "Result_" in at.link.ask(f"ls {at.path}/{raw.OUT}").output
    return not made or (took.code != 0 and took.report.outcome == "failed")


def _prepared(case: Case, wanted: Wanted, scratch: Path) -> tuple[dict[str, Path], list[Task]]:
    """Files for the room, and the tasks in the order of a round."""
    own = plain(case.binary.name)
    if wanted.minutes:
        much = f"--duration {wanted.minutes * 60:.0f} --keep_num_outputs 1"
    else:
        much = f"--num_inferences {wanted.inferences} --keep_num_outputs 1"
    raw.pack(case.feeds(), case.graph, scratch / "in.tar", _FEEDS)
    files = {own: case.binary, "in.tar": scratch / "in.tar", **{plain(each.name): each for each in wanted.push}}
    tasks = [Task("npu", run.command(f"--retrieve_context {own}", much))]
    if wanted.cpu_library:
        library, graph = plain(wanted.cpu_library.name), _float(case.graph)
        real = [to_binary(feed, graph.inputs, case.order) for feed, _ in case.samples]
        raw.pack(real, graph, scratch / "in_cpu.tar", _CPU_FEEDS)
        files |= {library: wanted.cpu_library, "in_cpu.tar": scratch / "in_cpu.tar"}
        inputs = f"--input_list {_CPU_FEEDS}/{raw.LIST} --output_dir {raw.OUT}"
        tasks.append(Task("cpu", f"./{run.NET_RUN} --backend {_CPU} --model {library} {inputs} {much}"))
    elif wanted.cpu_command:
        tasks.append(Task("cpu", wanted.cpu_command))
    if missing := [each for each in files.values() if not each.is_file()]:
        raise UsageError("there is no such file", where=str(missing[0]))
    return files, tasks


def _float(graph: GraphInfo) -> GraphInfo:
    """The same graph before it became fixed point or float16: what a CPU is fed."""

    def real(tensor: TensorInfo) -> TensorInfo:
        whole = tensor.quantization is None and not tensor.dtype.startswith("FLOAT")
        return tensor if whole else replace(tensor, dtype="FLOAT_32", quantization=None)

    return replace(graph, inputs=tuple(map(real, graph.inputs)))


def _measurement(reached: Reached, case: Case, wanted: Wanted, took: Sequence[Took]) -> DeviceMeasurement:
    runs = tuple(each.run for each in took)
    npu, cpu = ([run for run in runs if run.processor == name] for name in ("npu", "cpu"))
    about = reached.about
    return DeviceMeasurement(
        device=" ".join(filter(None, (about.maker, about.model))),
        system=about.system,
        soc_model=about.chips[0] if about.chips else "",
        transport=about.kind,
        sha256=case.entry.sha256,
        qairt=case.entry.qairt,
        at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        inferences=wanted.inferences,
        minutes=wanted.minutes,
        cpu_task=wanted.cpu_library.name if wanted.cpu_library else wanted.cpu_command,
        runs=runs,
        npu_seconds=spread(run.seconds for run in npu),
        npu_cpu_percent=spread(run.cpu_percent for run in npu),
        cpu_seconds=spread(run.seconds for run in cpu),
        cpu_cpu_percent=spread(run.cpu_percent for run in cpu),
    )


def _record(path: Path, manifest: Manifest, case: Case, made: DeviceMeasurement) -> None:
    """One measurement more in the manifest, and beside the binary; those of an earlier binary of this target go."""
    kept = [each for each in case.entry.measurements if each.sha256 == case.entry.sha256]
    kept += [each for each in measured_beside(case.binary, case.entry.sha256) if each not in kept]
    every = (*kept, made)
    keep_measurements(case.binary, every)
    new = case.entry.model_copy(update={"measurements": every})
    entries = tuple(new if each is case.entry else each for each in manifest.entries)
    save(path, manifest.model_copy(update={"entries": entries}))


def _report(made: DeviceMeasurement, found: list[Finding], *, as_json: bool) -> None:
    if as_json:
        click.echo(made.model_dump_json(indent=2))
    else:
        show_measurement(made, console())
    show_findings(found, console(error=as_json))
    if github.on_github():
        github.report_findings("device", found, passed=True)
