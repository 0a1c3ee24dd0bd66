"""qnn.yaml: what is compiled, for which chips, and what must hold. Typed, strict, exported as JSON Schema."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, FiniteFloat, model_validator

from qnnci.errors import UsageError
from qnnci.quantization import Calibrating, Quantize
from qnnci.soc import Soc, find_soc, htp_arches
from qnnci.strict import VARIABLE, Command, Model, Pattern, arguments

Precision = Literal["fp16", "w8a8", "w8a16", "w4a16"]
Route = Literal["ort", "model-lib", "dlc"]
LibraryTarget = Literal["x86_64-linux-clang", "aarch64-android"]
FailOn = Literal["error", "warning", "never"]
Layout = Literal["plain", "onnxruntime", "sherpa-onnx"]
Family = Literal[
    "sense-voice",
    "zipformer-ctc",
    "paraformer",
    "parakeet-ctc",
    "parakeet-tdt",
    "nemotron",
    "zipformer-transducer",
    "whisper",
    "moonshine",
]
ArchiveKind = Literal["tar.bz2", "tar.zst", "zip"]
Metric = Literal["cosine", "snr_db", "max_abs", "max_rel"]

# Names become folders, file names and matrix ids, so they keep to what every file system takes.
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
# Of a graph with `each`, whose placeholders are filled in before anything else looks at the name.
GRAPH_NAME = r"^[A-Za-z0-9{][A-Za-z0-9_.{}-]{0,99}$"
SHA256 = r"^[0-9a-f]{64}$"
# Of a repo on the Hugging Face Hub, and of a value in the card of a model.
HUB_REPO = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$"
HUB_WORD = r"^[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,99}$"
METRIC = r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,59}$"


def _constant(value: object) -> object:
    """A number that a tensor can hold, or lists of these; anything else would fail in the middle of a build."""
    if isinstance(value, list):
        for each in value:
            _constant(each)
    elif isinstance(value, str) and re.fullmatch(r"[-+]?\d+e[-+]?\d+", value, re.IGNORECASE):
        raise ValueError(f"YAML takes {value[:40]} for text: write it with a dot and a sign, as in 1.0e-5")
    elif not isinstance(value, (bool, int, float)):
        raise ValueError("a constant is a number, true or false, or lists of these")
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ValueError("a constant has at most 64 bits")
    return value


Shape = tuple[Annotated[int, Field(ge=1, lt=1 << 31)], ...]


class Input(Model):
    """One graph input: fixed to a shape, or folded to a constant. A list is a shape."""

    shape: Shape | None = Field(None, description="Every dimension, fixed.")
    value: Annotated[bool | int | float | list[Any] | None, BeforeValidator(_constant)] = Field(
        None, description="A constant: the input disappears and its value is folded into the graph."
    )
    range: tuple[FiniteFloat, FiniteFloat] | None = Field(
        None, description="Range of the seeded values that verification feeds (default -1 to 1; integers 0 to 1)."
    )

    @model_validator(mode="after")
    def _one_of(self) -> Input:
        if self.value is not None and (self.shape or self.range):
            raise ValueError("give either `value` (a constant) or `shape`/`range`, not both")
        if self.range and self.range[0] > self.range[1]:
            raise ValueError("`range` is the lowest and the highest value, in this order")
        return self


def _input(value: object) -> object:
    return {"shape": value} if isinstance(value, (list, tuple)) else value


class PrecisionMap(Model):
    """A precision for all chips, or a default with exceptions by SoC name or dsp arch (the SoC wins)."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, Annotated[Precision, Field(description="For one chip, or for one dsp arch.")]]
    default: Precision = Field("fp16", description="For every chip that is not named.")

    def for_soc(self, soc: Soc) -> Precision:
        given = {_soc_or_arch(key): value for key, value in (self.__pydantic_extra__ or {}).items()}
        return given.get(soc.name) or given.get(soc.dsp_arch) or self.default

    @model_validator(mode="after")
    def _distinct_keys(self) -> PrecisionMap:
        given: dict[str, str] = {}
        for key in self.__pydantic_extra__ or {}:
            other = given.setdefault(_soc_or_arch(key), key)
            if other != key:
                raise ValueError(f"{other} and {key} are the same chip")
        return self


def _soc_or_arch(key: str) -> str:
    if key.lower() in htp_arches():
        return key.lower()
    try:
        return find_soc(key).name
    except UsageError as error:
        known = f"neither `default`, nor a dsp arch ({', '.join(htp_arches())}), nor a SoC that can be compiled for"
        raise ValueError(f"{key[:40]!r} is {known}: {error.hint}") from error


def _precision(value: object) -> object:
    return {"default": value} if isinstance(value, str) else value


def _soc(name: object) -> str:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise ValueError("a SoC is a name such as SM8750")  # noqa: TRY004 - pydantic's way
    try:
        return find_soc(str(name)).name
    except UsageError as error:
        raise ValueError(f"{error.message}; {error.hint}") from error


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


# What a file may say in short is in the JSON Schema too, so that editors take it.
SocName = Annotated[str, BeforeValidator(_soc, json_schema_input_type=str | int), Field(examples=["SM8750"])]
SocNames = Annotated[tuple[SocName, ...], Field(min_length=1), AfterValidator(_distinct)]
Inputs = dict[str, Annotated[Input, BeforeValidator(_input, json_schema_input_type=Shape | Input)]]
Precisions = Annotated[PrecisionMap, BeforeValidator(_precision, json_schema_input_type=Precision | PrecisionMap)]


class ParityGate(Model):
    """A bound on one figure of the comparison with the original on the CPU."""

    metric: Metric = Field("cosine", description="Which figure, of each output over all samples.")
    min: FiniteFloat | None = Field(None, description="Lower bound.")
    max: FiniteFloat | None = Field(None, description="Upper bound, instead of a lower one.")
    severity: FailSeverity = Field("error", description="How bad it is to miss it.")

    @model_validator(mode="after")
    def _bounded(self) -> ParityGate:
        _one_bound(self.min, self.max)
        return self


def _one_bound(least: float | None, most: float | None) -> None:
    if (least is None) == (most is None):
        raise ValueError("give `min` or `max`")


FailSeverity = Literal["error", "warning", "notice"]


class MaxGate(Model):
    """An upper bound, and how bad it is to exceed it."""

    max: Annotated[int, Field(ge=0, lt=1 << 53)] = Field(description="Upper bound.")
    severity: FailSeverity = Field("error", description="How bad it is to exceed it.")


def _gate_list(value: object) -> object:
    return value if isinstance(value, (list, tuple)) else [value]


ParityGates = Annotated[
    tuple[ParityGate, ...],
    BeforeValidator(_gate_list, json_schema_input_type=ParityGate | tuple[ParityGate, ...]),
]


class Gates(Model):
    """What must hold of every binary. Right SoC and arch, and no CPU fallback, are always demanded."""

    parity: ParityGates = Field(
        (
            ParityGate(metric="cosine", min=0.99),
            # The cosine does not see scale: a value that fp16 clips may have the right direction and a wrong size.
            ParityGate(metric="snr_db", min=20, severity="warning"),
        ),
        description="Bounds on the distance from the original: one, or a list.",
    )
    spill_fill_bytes: MaxGate = Field(
        MaxGate(max=0, severity="warning"), description="What may travel between VTCM and DDR, in bytes."
    )
    vtcm_mb: MaxGate | None = Field(None, description="VTCM that the binary asks for. Default: what the chip has.")
    binary_mb: MaxGate | None = Field(None, description="Size of the binary. Default: any.")


class Compile(Model):
    """Options of the compiler."""

    optimization: Literal[1, 2, 3] = Field(3, description="How hard the compiler tries.")
    vtcm_mb: Annotated[int, Field(ge=1, le=64)] | None = Field(None, description="Default: all that the chip has.")
    htp: dict[str, Any] = Field({}, description="SDK routes: further graph options of the HTP config, by name.")

    def vtcm_for(self, soc: Soc) -> int:
        """VTCM to ask for, in MB: never more than the chip has."""
        return min(self.vtcm_mb or soc.vtcm_mb, soc.vtcm_mb)


class Sdk(Model):
    """Which QAIRT SDK the routes `model-lib` and `dlc` use. Default: QNN_SDK_ROOT, or the newest that is installed."""

    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+\.\d+(-[A-Za-z0-9]+)?$")] | None = Field(
        None, description="Such as 2.40.0.251030; `qnnci sdk install` fetches it."
    )
    root: str | None = Field(None, description="An unpacked SDK.")


class Convert(Model):
    """What the SDK's converters and quantizer are told; a graph's own over the project's. Unset: the tool's default."""

    act_bitwidth: Literal[8, 16] | None = Field(None, description="Activations. Default: what the precision says.")
    weights_bitwidth: Literal[2, 4, 8, 16] | None = Field(None, description="Weights. Default: by the precision.")
    bias_bitwidth: Literal[8, 32] | None = Field(None, description="Biases. Default: 32 with 16-bit activations.")
    float_bitwidth: Literal[16, 32] | None = Field(None, description="What stays float. Default: the tool's, 32.")
    input_list: str | None = Field(None, description="Calibration inputs in the SDK's form; makes a quantized graph.")
    native_inputs: bool = Field(default=True, description="The listed files have the inputs' own types.")
    graph_name: Annotated[str, Field(pattern=GRAPH_NAME)] | None = Field(
        None, description="Name inside the library and the binary, odd characters as `_`. Default: the graph's."
    )
    out_nodes: tuple[str, ...] = Field((), description="Output tensors. Default: the graph's.")
    input_dtypes: dict[str, str] = Field({}, description="Type of each input, such as float32 or int32.")
    input_layouts: dict[str, str] = Field({}, description="Axes of each input, such as NTF or NCHW.")
    quantization_overrides: str | None = Field(None, description="An encodings file.")
    float_fallback: bool = Field(default=False, description="Ops without encodings may stay float; never on v68.")
    per_channel: bool = Field(default=False, description="One scale for each channel of the weights.")
    libraries: tuple[LibraryTarget, ...] = Field(
        ("x86_64-linux-clang",), description="Route model-lib: for which systems the model library is made."
    )
    extra: tuple[str, ...] = Field((), description="Further arguments of the converter, word for word.")


class Limits(Model):
    """Limits of one stage of one target, enforced from outside the native compiler."""

    seconds: Annotated[int, Field(ge=1, le=1_000_000)] = Field(1800, description="Wall time.")
    memory_mb: Annotated[int, Field(ge=64, lt=1 << 31)] | None = Field(
        None, description="Resident memory. Default: nine tenths of the machine's."
    )


def _measuring(command: str) -> str:
    words = arguments(command)
    for place, what in (("{model}", "which model it is to run"), ("{report}", "where it is to write its report")):
        if place not in words:
            raise ValueError(f"say with `{place}` {what}")
    return command


class Verify(Model):
    """How binaries are compared with the original. The host emulator checks numbers, not speed.

    With a `command` also by what the model is for: it is run with the graph on the CPU and with each binary.
    """

    enabled: bool = Field(default=True, description="Whether binaries are run at all.")
    targets: Literal["all", "one-per-arch"] = Field("all", description="Which SoCs of a graph are run.")
    inputs: str | None = Field(
        None, description="A .npz, or a folder of .npz, .npy or .raw files, instead of seeded inputs."
    )
    samples: Annotated[int, Field(ge=1, le=1000)] = Field(4, description="How many feeds at most.")
    seconds: Annotated[FiniteFloat, Field(gt=0)] = Field(20, description="No further feed is begun after this time.")
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = Field(0, description="Of the inputs, where none are given.")
    command: Annotated[str, AfterValidator(_measuring)] | None = Field(
        None,
        description="A command of yours that runs `{model}`, the graph and then each binary, on real data and writes "
        "`{report}`: JSON with `value`, or with `reference` and `hypothesis`, lists of texts or labels. `{graph}` is "
        "always the graph. It runs in qnnci's own Python.",
    )
    reads: tuple[Pattern, ...] = Field(
        (), description="Files, or patterns, that the command reads beside those in it: a change runs it anew."
    )
    metric: Annotated[str, Field(pattern=METRIC)] | None = Field(
        None, description="What the command measures: wer, cer or top1, computed here, or a name for its `value`."
    )
    max: FiniteFloat | None = Field(None, description="Upper bound of a binary's metric.")
    min: FiniteFloat | None = Field(None, description="Lower bound of a binary's metric.")
    max_increase: Annotated[FiniteFloat, Field(ge=0)] | None = Field(
        None, description="How much more than the CPU's a binary's metric may be, in its own unit."
    )
    max_decrease: Annotated[FiniteFloat, Field(ge=0)] | None = Field(
        None, description="How much less than the CPU's a binary's metric may be, in its own unit."
    )
    severity: FailSeverity = Field("error", description="How bad it is to miss a bound of the metric.")

    @model_validator(mode="after")
    def _whole_task(self) -> Verify:
        bounds = (self.max, self.min, self.max_increase, self.max_decrease)
        if self.command is None and (self.metric or self.reads or any(bound is not None for bound in bounds)):
            raise ValueError("`metric` and its bounds are of a `command`, which is missing")
        if self.command and not self.metric:
            raise ValueError("name the `metric` that the command measures, such as wer, cer or top1")
        return self


def _exporting(command: str) -> str:
    if "{output}" not in arguments(command):
        raise ValueError("say with `{output}` where the command is to write the .onnx file")
    return command


class Compare(Model):
    """What the exported graph does, against what the original model does: a command of the repository measures it."""

    command: Annotated[str, AfterValidator(_measuring)] = Field(
        description="The command. `{model}` is the exported .onnx file, `{report}` the JSON file to write: "
        "`{reference: […], hypothesis: […]}` or `{value: …}`."
    )
    metric: Annotated[str, Field(pattern=METRIC)] = Field(
        description="`wer`, `cer` or `top1`, computed from texts or labels; or any name of a value in the report."
    )
    min: FiniteFloat | None = Field(None, description="Lower bound.")
    max: FiniteFloat | None = Field(None, description="Upper bound, instead of a lower one.")
    severity: FailSeverity = Field("error", description="How bad it is to miss it.")

    @model_validator(mode="after")
    def _bounded(self) -> Compare:
        _one_bound(self.min, self.max)
        return self


class Export(Command):
    """The model repository's own export, run in a virtual environment of its own. No shell: only words and quotes."""

    run: Annotated[str, AfterValidator(_exporting)] = Field(
        description="The command. `{output}` is the .onnx file to write, `{reference}` the .npz with the model's own "
        "inputs and outputs, where it writes one."
    )
    reference: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="A .npz in the repository, where the command does not write `{reference}` itself."
    )
    compare: Compare | None = Field(None, description="A task metric of the exported graph, such as of its texts.")

    @property
    def writes_reference(self) -> bool:
        return "{reference}" in self.run

    @model_validator(mode="after")
    def _one_reference(self) -> Export:
        if self.reference and self.writes_reference:
            raise ValueError("give either `reference` (a file that is there) or `{reference}` in `run`, not both")
        return self


def _listed(value: object) -> object:
    """One text is a list of one."""
    return [value] if isinstance(value, str) else value


def _line(value: object) -> object:
    if len(str(value).splitlines()) > 1:
        raise ValueError("one line")
    return value


class Bundle(Model):
    """What `qnnci bundle` packs: an archive for each chip, with files beside the binaries."""

    layout: Layout = Field("plain", description="For whom: what the files are called, and what is checked.")
    family: Family | None = Field(None, description="Layout sherpa-onnx: which of its models this is.")
    name: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="Of the archive, without its ending: `{project}-{soc}-{precision}`. Default: the layout's."
    )
    groups: str | None = Field(
        None, description="What the graphs' names are made of, such as `{size}-{t}s`: `name` may use the parts."
    )
    add: tuple[Pattern, ...] = Field(
        (), description="Files and folders, or patterns such as LICENSE*, from the project file's folder."
    )
    archive: ArchiveKind = Field("tar.bz2", description="The archive's form.")
    info: dict[Annotated[str, Field(pattern=VARIABLE)], Annotated[str | int | float, AfterValidator(_line)]] = Field(
        {}, description="Layout sherpa-onnx: further lines of info.txt, such as `chunk_size: 32`."
    )


class HuggingFace(Model):
    """The model's page on the Hugging Face Hub, and its card."""

    repo: Annotated[str, Field(pattern=HUB_REPO)] | None = Field(None, description="org/name.")
    base_model: Annotated[tuple[Annotated[str, Field(pattern=HUB_REPO)], ...], BeforeValidator(_listed)] = Field(
        (), description="The repo, or repos, of the model that this was made of."
    )
    pipeline_tag: Annotated[str, Field(pattern=HUB_WORD)] | None = Field(
        None, description="What the model is for, in the Hub's words: automatic-speech-recognition."
    )
    language: Annotated[tuple[Annotated[str, Field(pattern=HUB_WORD)], ...], BeforeValidator(_listed)] = Field(
        (), description="ISO 639 codes, in quotes: en."
    )
    tags: tuple[Annotated[str, Field(pattern=HUB_WORD)], ...] = Field((), description="Beside those of every card.")
    library_name: Annotated[str, Field(pattern=HUB_WORD)] | None = Field(
        None, description="Default: onnxruntime, of layout sherpa-onnx sherpa-onnx."
    )
    license_name: Annotated[str, Field(pattern=HUB_WORD)] | None = Field(
        None, description="Of a licence that the Hub has no id for. Default: made of `license`."
    )
    license_link: Annotated[str, Field(min_length=1), AfterValidator(_line)] | None = Field(
        None, description="Where the licence stands. Default: a LICENSE among the files."
    )


class Publish(Model):
    """Where `qnnci publish` puts what was built."""

    huggingface: HuggingFace = HuggingFace()


class Split(Model):
    """Where a graph is cut into parts, which are compiled one by one and run one after the other."""

    at: Annotated[
        tuple[Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_listed)], ...], Field(min_length=1)
    ] = Field(description="Tensors of prepared.onnx, in order; a list where one cut goes through several of them.")
    names: tuple[Annotated[str, Field(pattern=NAME)], ...] = Field(
        (), description="Of the parts, one more than there are cuts. Default: the graph's name with -0, -1 and so on."
    )

    @model_validator(mode="after")
    def _one_name_each(self) -> Split:
        if self.names and len(self.names) != len(self.at) + 1:
            raise ValueError(f"{len(self.at)} cuts make {len(self.at) + 1} parts, there are {len(self.names)} names")
        return self


class Part(Model):
    """Which part of which graph; qnnci writes it where a graph has `split`."""

    of: str = Field(description="The graph that is cut.")
    index: Annotated[int, Field(ge=0, lt=1 << 20)] = Field(description="Which of its parts, from 0 on.")


_LAST = {"NTF": (0, 2, 1), "NFC": (0, 2, 1), "NHWC": (0, 2, 3, 1), "NDHWC": (0, 2, 3, 4, 1)}


def _axes(value: object) -> object:
    if isinstance(value, str):
        if value not in _LAST:
            raise ValueError(f"{value[:20]!r} is no layout: {', '.join(_LAST)}, or the axes, such as [0, 2, 1]")
        return _LAST[value]
    return value


def _permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    if sorted(axes) != list(range(len(axes))):
        raise ValueError(f"{list(axes)} does not name each axis once, from 0 on")
    return axes


# What a person writes in a word is what the SDK's converter makes of a graph with channels before the rest.
PortAxes = Annotated[
    tuple[int, ...],
    BeforeValidator(_axes, json_schema_input_type=Literal["NTF", "NFC", "NHWC", "NDHWC"] | tuple[int, ...]),
    AfterValidator(_permutation),
]


class Graph(Model):
    """One ONNX file to compile: `source` says where it is, or `export` how it is made."""

    source: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="A path, https://…, hf://org/repo/file@revision or pypi://name==version/path/in/wheel."
    )
    export: Export | None = Field(None, description="How the repository makes the file, in place of `source`.")
    sha256: Annotated[str, Field(pattern=SHA256)] | None = Field(None, description="What the file must be.")
    each: dict[str, tuple[str | int | float, ...]] | None = Field(
        None, description="Lists of values: one graph for each combination; `{key}` in name and texts is its value."
    )
    inputs: Inputs = Field({}, description="Shapes and constants by the name of the graph's input.")
    precision: Precisions | None = Field(None, description="Default: the project's.")
    socs: SocNames | None = Field(None, description="Default: the project's.")
    simplify: bool = Field(default=True, description="Run onnxsim.")
    split: Split | None = Field(None, description="Cut it into several graphs: `{at: [t1, t2]}`.")
    part: Part | None = Field(None, description="Set by qnnci: this graph is a part of one that has `split`.")
    layout: dict[str, PortAxes] = Field(
        {},
        description="Route ort: axes of inputs and outputs in the binary, by name: NTF, NFC, NHWC or NDHWC for "
        "channels last, as the SDK's converter makes them, or the graph's axes in their new order, such as [0, 2, 1].",
    )
    calibration: Calibrating | None = Field(
        None, description="Inputs on which ranges are measured, for fixed-point precisions: where they are, or more."
    )
    quantize: Quantize | None = Field(None, description="Route ort: over the project's.")
    convert: Convert | None = Field(None, description="SDK routes: over the project's.")
    gates: Gates | None = Field(None, description="Default: the project's.")
    verify: Verify | None = Field(None, description="Default: the project's.")

    @property
    def origin(self) -> str:
        """Where the file comes from, in one line."""
        return self.source or (f"export: {self.export.run}" if self.export else "")

    @model_validator(mode="after")
    def _one_origin(self) -> Graph:
        if self.part:
            if self.source or self.export or self.split:
                raise ValueError("a part has no `source`, `export` or `split`: it comes from the graph that is cut")
            return self
        if (self.source is None) == (self.export is None):
            raise ValueError("give either `source` (a file) or `export` (how it is made)")
        if self.export and self.sha256:
            raise ValueError("`sha256` is of a `source`; exports are seldom the same to the byte")
        if self.split and self.layout:
            raise ValueError("`layout` is of graphs that are compiled whole, without `split`")
        return self


class Project(Model):
    """A whole project file."""

    name: Annotated[str, Field(pattern=NAME)] = Field(description="Name of the whole, in reports and the manifest.")
    license: str | None = Field(None, description="Licence of the model: a compiled model is the model.")
    route: Route = Field("ort", description="How graphs are compiled.")
    socs: SocNames = Field(description="Chips, by name, alias or id: `qnnci socs` lists them.")
    graphs: Annotated[dict[Annotated[str, Field(pattern=GRAPH_NAME)], Graph], Field(min_length=1)] = Field(
        description="The ONNX files, by a name that becomes a folder and part of file names."
    )
    contexts: dict[
        Annotated[str, Field(pattern=NAME)], Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_distinct)]
    ] = Field(
        {}, description="Route ort: graphs that are also put into one context, by its name, and share weights there."
    )
    precision: Precisions = PrecisionMap()
    quantize: Quantize = Quantize()
    sdk: Sdk = Sdk()
    convert: Convert = Convert()
    compile: Compile = Compile()
    verify: Verify = Verify()
    gates: Gates = Gates()
    fail_on: FailOn = Field("error", description="From which severity on a finding fails the build.")
    limits: Limits = Limits()
    bundle: Bundle = Bundle()
    publish: Publish = Publish()
    output: Annotated[str, Field(min_length=1)] = Field(
        "build", description="Folder for everything that is made, from the file's folder."
    )

    def graph_socs(self, graph: str) -> tuple[Soc, ...]:
        return tuple(find_soc(name) for name in self.graphs[graph].socs or self.socs)

    def precision_for(self, graph: str, soc: Soc) -> Precision:
        return (self.graphs[graph].precision or self.precision).for_soc(soc)

    def convert_for(self, graph: str) -> Convert:
        """The project's settings with what the graph sets itself over them."""
        own = self.graphs[graph].convert
        made = self.convert.model_copy(update=own.model_dump(exclude_unset=True)) if own else self.convert
        encodings = self.quantize_for(graph).encodings
        if encodings is None or made.quantization_overrides:
            return made
        return made.model_copy(update={"quantization_overrides": encodings})

    def quantize_for(self, graph: str) -> Quantize:
        """The project's settings with what the graph sets itself over them."""
        own = self.graphs[graph].quantize
        return (
            self.quantize.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})
            if own
            else self.quantize
        )

    @model_validator(mode="after")
    def _one_layout(self) -> Project:
        for name, graph in self.graphs.items():
            if graph.layout and self.route != "ort":
                raise ValueError(
                    f"graphs.{name}.layout is of route ort: say `convert: {{input_layouts: …}}` on {self.route}"
                )
        return self

    @model_validator(mode="after")
    def _one_calibration(self) -> Project:
        for name, graph in self.graphs.items():
            if graph.calibration and self.convert_for(name).input_list and self.route != "ort":
                raise ValueError(f"{name} has a `calibration`, and an `input_list` under `convert`: give one of them")
        return self

    def whole_of(self, graph: str) -> str:
        """The graph that this one is a part of, else itself."""
        part = self.graphs[graph].part
        return part.of if part else graph

    def members(self, name: str) -> tuple[str, ...]:
        """The graphs to compile that a name stands for: itself, the parts of a cut graph, or those of a context."""
        if name in self.contexts:
            return tuple(each for graph in self.contexts[name] for each in self.members(graph))
        parts = {graph.part.index: each for each, graph in self.graphs.items() if graph.part and graph.part.of == name}
        return tuple(parts[index] for index in sorted(parts)) or ((name,) if name in self.graphs else ())

    def group_of(self, graph: str) -> str:
        """What a graph is built together with others for: a context, a graph that is cut, else only itself."""
        return next((name for name in self.contexts if graph in self.members(name)), self.whole_of(graph))

    @model_validator(mode="after")
    def _contexts(self) -> Project:
        taken: dict[str, str] = {}
        for name, graphs in self.contexts.items():
            if name in self.graphs:
                raise ValueError(f"contexts.{name} has the name of a graph")
            for graph in graphs:
                if graph not in self.graphs:
                    raise ValueError(f"contexts.{name} names {graph!r}; there are {', '.join(self.graphs)}")
                if self.graphs[graph].part:
                    whole = self.whole_of(graph)
                    raise ValueError(f"contexts.{name} names a part: name {whole!r}, which is all of them")
                if other := taken.get(graph):
                    raise ValueError(f"{graph} is in two contexts, {other} and {name}")
                taken[graph] = name
            if len(self.members(name)) == 1:
                raise ValueError(f"contexts.{name} has one graph, which shares nothing")
            if len({self.graph_socs(graph) for graph in graphs}) > 1:
                raise ValueError(f"contexts.{name}: its graphs are for different chips; give them the same `socs`")
            if self.route != "ort":
                raise ValueError(
                    f"contexts.{name}: graphs share a context on route ort, this is {self.route}; on the SDK routes "
                    "qnn-context-binary-generator would be given several models, which qnnci does not"
                )
        return self

    @model_validator(mode="after")
    def _whole_parts(self) -> Project:
        for name, graph in self.graphs.items():
            of = self.graphs.get(graph.part.of) if graph.part else graph
            if of is None or (graph.part and of.split is None):
                raise ValueError(f"graphs.{name}.part: there is no graph {self.whole_of(name)!r} with `split`")
            if graph.split and len(self.members(name)) != len(graph.split.at) + 1:
                raise ValueError(f"graphs.{name}: {len(graph.split.at) + 1} parts are needed; leave `part` to qnnci")
            if graph.split and self.verify_for(name).command:
                raise ValueError(
                    f"graphs.{name}: a chain of parts runs no `verify: {{command: …}}`; give it a `verify` without"
                )
        return self

    def gates_for(self, graph: str) -> Gates:
        return self.graphs[graph].gates or self.gates

    def verify_for(self, graph: str) -> Verify:
        return self.graphs[graph].verify or self.verify


ParityGate.model_rebuild()
