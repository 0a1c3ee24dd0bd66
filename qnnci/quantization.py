"""Settings of fixed point: the inputs that ranges are measured on, and how tensors are quantized."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from qnnci.strict import Command, arguments

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
