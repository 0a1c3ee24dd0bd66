"""Settings of fixed point: the inputs that ranges are measured on, and how tensors are quantized."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, FiniteFloat, model_validator

from qnnci.strict import Command, Model, arguments

Io = Literal["float32", "float16", "ufixed16"]
FEW = 8  # samples: with fewer, ranges are guesses


def _writing(command: str) -> str:
    if "{output}" not in arguments(command):
        raise ValueError("say with `{output}` into which folder the command is to write the samples")
    return command


class Calibration(Command):
    """Inputs on which the ranges of a graph's tensors are measured: files, or a command that writes them."""

    files: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="A .npz, a folder of .npz, .npy or .raw files, or a list of .raw files in the SDK's form "
        "(`input_list.txt`: a sample a line).",
    )
    run: Annotated[str, AfterValidator(_writing)] | None = Field(
        None, description="A command that writes such files; `{output}` is the folder for them."
    )
    random: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, description="So many random samples, where nothing real is at hand: to try what compiles."
    )
    samples: Annotated[int, Field(ge=1, le=10_000)] = Field(200, description="How many at most.")
    native: bool = Field(default=True, description="The .raw files of a list have the inputs' own types. Else float32.")
    constant: tuple[str, ...] = Field((), description="Inputs that are the same in every sample, and meant to be.")

    @model_validator(mode="after")
    def _one_origin(self) -> Calibration:
        if sum(each is not None for each in (self.files, self.run, self.random)) != 1:
            raise ValueError("give `files`, or `run` (a command that writes them), or `random` (a number of samples)")
        if self.run is None and (self.requirements or self.python or self.env or self.inputs):
            raise ValueError("`requirements`, `python`, `env` and `inputs` are of a `run`, which is missing")
        return self


def _files(value: object) -> object:
    return {"files": value} if isinstance(value, str) else value


Calibrating = Annotated[Calibration, BeforeValidator(_files, json_schema_input_type=str | Calibration)]


class Override(Model):
    """How one tensor is quantized, over what was measured of it."""

    bits: Literal[4, 8, 16] | None = Field(None, description="Width; 4 of weights only. Default: the precision's.")
    symmetric: bool | None = Field(None, description="As much below zero as above.")
    min: FiniteFloat | None = Field(None, description="Lowest value, instead of the measured one.")
    max: FiniteFloat | None = Field(None, description="Highest value, instead of the measured one.")
    scale: Annotated[FiniteFloat, Field(gt=0)] | None = Field(None, description="One step, with a `zero_point`.")
    zero_point: Annotated[int, Field(ge=-(1 << 15), lt=1 << 16)] | None = Field(
        None, description="What stands for zero, with a `scale`."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Override:
        if (self.scale is None) != (self.zero_point is None):
            raise ValueError("give `scale` and `zero_point` together")
        if (self.min is None) != (self.max is None):
            raise ValueError("give `min` and `max` together")
        if self.min is not None and self.max is not None and not self.min < self.max:
            raise ValueError("`min` is below `max`")
        if self.scale is not None and (self.min is not None or self.symmetric is not None):
            raise ValueError("a `scale` leaves nothing to `min`, `max` and `symmetric`")
        return self


class Keep(Model):
    """What is not quantized."""

    fp16: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        (), description="Nodes, by their names or by tensors that they make; * and ? stand for any text."
    )


class Quantize(Model):
    """How a float graph becomes fixed point; a graph's own over the project's. On the SDK routes only `encodings`."""

    encodings: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="A file of AIMET's (0.6.1, 1.0.0 or 2.0.0): exactly these scales, instead of calibration."
    )
    per_channel: bool = Field(
        default=True, description="One scale for each channel of the weights of Conv, Gemm and MatMul."
    )
    calibrate: Literal["minmax", "entropy", "percentile"] = Field(
        "minmax", description="Which of the values that a tensor had are its range."
    )
    percentile: Annotated[FiniteFloat, Field(gt=50, le=100)] = Field(
        99.999, description="With `calibrate: percentile`: how many of a hundred values the range holds."
    )
    tensors: dict[str, Override] = Field({}, description="Tensors that are quantized in another way, by their names.")
    keep: Keep = Field(Keep(), description="What stays float, where the chip has fp16.")
    io: Io = Field(
        "float32",
        description="Type of the binary's float inputs and outputs: as they are, halved, or 16-bit fixed point.",
    )
