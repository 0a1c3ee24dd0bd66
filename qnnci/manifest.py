"""build/manifest.json and the provenance beside each binary: what was built, from what, how, and how good it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from qnnci.errors import UsageError
from qnnci.files import write_text
from qnnci.soc import all_socs, find_soc

MEASUREMENTS = "measurements.json"


def _place(name: str) -> str:
    if "\0" in name:
        raise ValueError("no file has a NUL in its name")
    return name


Place = Annotated[str, AfterValidator(_place)]


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tensor(Record):
    """A graph input or output as the binary has it; `dtype` in QNN's words, scale and offset where quantized."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: float | None = None
    offset: int | None = None


class Figures(Record):
    """One output against what the original gives, over all samples together."""

    cosine: float | None
    snr_db: float | None
    max_abs: float | None
    max_rel: float | None


class Quantization(Record):
    """How the graph was quantized here: widths in bits, on how many samples, and how many nodes stayed float.

    Of an encodings file: how many of its encodings are of tensors of the graph, and how many of none; it says the rest.
    """

    activations: int | None = None
    weights: int | None = None
    per_channel: bool | None = None
    calibrate: str | None = None
    samples: int = 0
    float_nodes: int
    encodings: int = 0
    unmatched: int = 0


class Measured(Record):
    """A task metric, and over how many samples; 0 samples where the command that computed it does not say."""

    value: float
    samples: int = 0


class Parity(Record):
    """`runner` says what ran the binary. The emulator's figures are about numbers, never about speed."""

    runner: Literal["emulator", "device"] = "emulator"
    inputs: str
    samples: int
    outputs: dict[str, Figures]


class Task(Record):
    """What the project's own command measured with the binary, and with the graph on the CPU.

    `samples` is 0 where the command computed the figure itself.
    """

    runner: Literal["emulator"] = "emulator"
    metric: str
    value: float
    cpu: float
    samples: int


class Vitals(Record):
    """Battery and heat of a device at one moment; None is what it does not say.

    `thermal_status` is Android's, 0 (none) to 6 (shutdown); `hottest` names the sensor that has `hottest_c` degrees.
    """

    battery_percent: float | None = None
    battery_uah: int | None = None
    battery_mv: int | None = None
    battery_c: float | None = None
    charging: bool | None = None
    thermal_status: int | None = None
    hottest: str = ""
    hottest_c: float | None = None


class DeviceRun(Record):
    """One run of a task on a device. `cpu_percent` and `threads` are shares of one core, None and {} where too short.

    `asleep_seconds` is the longest time in which the device did not look at the process, beyond what it should.
    """

    processor: Literal["npu", "cpu"]
    seconds: float
    cpu_percent: float | None
    threads: dict[str, float]
    asleep_seconds: float
    before: Vitals
    after: Vitals


class Spread(Record):
    """Of several runs: the middle one, the least and the most."""

    median: float
    low: float
    high: float


class DeviceMeasurement(Record):
    """A fixed task on a device: so many `inferences`, or so many `minutes`, again and again.

    `sha256` is of the binary that was measured, `qairt` the version of the libraries that it ran with. The figures are
    those of whole processes: loading is in them. `cpu_task` says what ran on the CPU, empty where nothing did.
    """

    device: str
    system: str
    soc_model: str
    transport: Literal["adb", "ssh"]
    sha256: str
    qairt: str
    at: str
    inferences: int | None
    minutes: float | None
    cpu_task: str
    runs: tuple[DeviceRun, ...]
    npu_seconds: Spread | None
    npu_cpu_percent: Spread | None
    cpu_seconds: Spread | None
    cpu_cpu_percent: Spread | None


class Measurements(Record):
    """What stands beside a binary in measurements.json, so that builds find it again."""

    measurements: tuple[DeviceMeasurement, ...] = ()


class Entry(Record):
    """One target: its binary, where it comes from, and what the binary itself says. Sizes in bytes.

    `parity` is the binary's against the graph on the CPU, `export_parity` the graph's against the original model.
    `export_metrics`, by their names, is what a command of the repository measured of the graph, `task` what another one
    measured of the binary.
    """

    graph: str
    soc: str
    soc_id: int
    dsp_arch: str
    precision: str
    passed: bool
    binary: Place
    sha256: str
    bytes: int
    context_model: Place
    graph_name: str
    route: str
    qairt: str
    optimization: int | None
    vtcm_bytes: int | None
    spill_fill_bytes: int | None
    const_bytes: int | None
    op_data_bytes: int | None
    io_bytes: int | None
    float_fallback_ops: tuple[str, ...] = ()
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    source: str
    source_sha256: str
    encodings_sha256: str | None = None
    calibration_sha256: str | None = None
    quantization: Quantization | None = None
    license: str | None
    parity: Parity | None
    export_parity: dict[str, Figures] | None = None
    export_metrics: dict[str, Measured] | None = None
    task: Task | None = None
    layout: dict[str, tuple[int, ...]] = {}
    measurements: tuple[DeviceMeasurement, ...] = ()
    compile_seconds: float
    compile_peak_mb: int | None
    built_at: str
    built_by: str


class ChainPart(Record):
    """One part: `graph` names its entries. It takes `takes` of the whole's inputs and of what parts before it give."""

    graph: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]


class Chain(Record):
    """A graph that was cut, on one chip: its parts in the order in which an app runs them.

    A tensor has the same name in the part that gives it and in those that take it. `parity` is that of all of them, one
    after the other, against the whole graph on the CPU.
    """

    graph: str
    soc: str
    passed: bool
    parts: tuple[ChainPart, ...]
    parity: Parity | None = None


class ContextGraph(Record):
    """A graph of a context, by its name in the project and in the binary, with the EPContext model that runs it."""

    graph: str
    graph_name: str
    context_model: Place


class SharedContext(Record):
    """One binary with several graphs, for one chip. Sizes in bytes; `separate_bytes` is that of their own binaries.

    `shared_weights_bytes` is what the graphs have in common. Figures of parity are those of the graphs' own entries.
    """

    name: str
    soc: str
    passed: bool
    binary: Place
    sha256: str
    bytes: int
    separate_bytes: int
    shared_weights_bytes: int | None
    qairt: str
    graphs: tuple[ContextGraph, ...]


class Device(Record):
    """A row of the device-selection table: `ro.soc.model` of a phone to the binary of each graph.

    `stub` goes into the app, `skel` to where ADSP_LIBRARY_PATH leads; both of QAIRT `min_runtime` or newer.
    """

    soc_model: str
    soc: str
    dsp_arch: str
    min_runtime: str
    stub: str
    skel: str
    binaries: dict[str, str]


class FindingRecord(Record):
    rule: str
    severity: Literal["error", "warning", "notice"]
    message: str
    hint: str = ""
    graph: str = ""
    soc: str = ""
    stage: str = ""
    node: str = ""
    file: str = ""
    line: int = 0


class StageTime(Record):
    """One stage: of a target, of a graph (no `soc`), or of the build (no `graph`). `began` is UTC, `seconds` wall time.

    A `cached` stage was done by an earlier build or job, then and in that time.
    """

    graph: str = ""
    soc: str = ""
    stage: str
    state: Literal["done", "cached", "failed"]
    began: str
    seconds: float
    peak_mb: int | None = None


class Wanted(Record):
    """A target that the build was asked for, whatever became of it."""

    graph: str
    soc: str


class PublishedFile(Record):
    """A file that was put on the Hugging Face Hub with a manifest; `git_sha1` is its name in git, outside of LFS."""

    path: str
    sha256: str
    git_sha1: str


class Manifest(Record):
    """The whole build. A device that is not in `devices` runs the original on its CPU: `fallback` says so.

    `settings` are those of the project that decided what was built and how it was judged. `published`, of a manifest
    on the Hub, are all files that came with it: the next publish removes those of them that it does not have.
    """

    version: Literal[1] = 1
    name: str
    license: str | None
    passed: bool
    tools: dict[str, str]
    targets: tuple[Wanted, ...] = ()
    entries: tuple[Entry, ...]
    devices: tuple[Device, ...]
    chains: tuple[Chain, ...] = ()
    contexts: tuple[SharedContext, ...] = ()
    fallback: Literal["cpu"] = "cpu"
    findings: tuple[FindingRecord, ...]
    stages: tuple[StageTime, ...] = ()
    settings: dict[str, Any] = {}
    published: tuple[PublishedFile, ...] = ()


def devices(entries: tuple[Entry, ...]) -> tuple[Device, ...]:
    """The device-selection table of what passed: one row for each name and alias of each SoC."""
    rows = []
    for soc in all_socs():
        passed = [entry for entry in entries if entry.soc == soc.name and entry.passed]
        if not passed:
            continue
        binaries = {entry.graph: entry.binary for entry in passed}
        runtime = newest(entry.qairt for entry in passed)
        rows += [
            Device(
                soc_model=name,
                soc=soc.name,
                dsp_arch=soc.dsp_arch,
                min_runtime=runtime,
                stub=f"libQnnHtpV{soc.arch}Stub.so",
                skel=f"libQnnHtpV{soc.arch}Skel.so",
                binaries=binaries,
            )
            for name in (soc.name, *soc.aliases)
        ]
    return tuple(rows)


def newest(builds: Iterable[str]) -> str:
    """The newest of some QAIRT builds, empty where there are none."""
    return max(builds, key=_version, default="")


def _version(build: str) -> tuple[int, ...]:
    return tuple(int(part) for part in build.lstrip("v").split("-")[0].split(".") if part.isdigit())


def device_for(manifest: Manifest, soc_model: str) -> Device | None:
    """The row for a phone's `ro.soc.model`, binning letters included; None means the CPU."""
    table = {device.soc_model: device for device in manifest.devices}
    if soc_model in table:
        return table[soc_model]
    try:
        return table.get(find_soc(soc_model).name)
    except UsageError:
        return None


def measured_beside(binary: Path, sha256: str) -> tuple[DeviceMeasurement, ...]:
    """What was measured on devices with this very binary, as measurements.json beside it has it."""
    try:
        kept = Measurements.model_validate_json((binary.parent / MEASUREMENTS).read_bytes())
    except (OSError, ValidationError):  # there is none, or one of another version
        return ()
    return tuple(each for each in kept.measurements if each.sha256 == sha256)


def keep_measurements(binary: Path, measurements: tuple[DeviceMeasurement, ...]) -> None:
    write_text(binary.parent / MEASUREMENTS, Measurements(measurements=measurements).model_dump_json(indent=2) + "\n")


def schema_text() -> str:
    """JSON Schema of manifest.json, as it is published beside the project file's."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Manifest.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def save(path: Path, manifest: Manifest) -> None:
    write_text(path, manifest.model_dump_json(indent=2) + "\n")


def load(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        UsageError: not there, or not a manifest of this version.

    """
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        said = f"{place}: {first['msg']}" if place else first["msg"]
        raise UsageError(
            f"{path} is not a manifest of version 1: {said}",
            hint="make it again with `qnnci build`",
        ) from error
