"""What all settings are made of: strict models, and a command of the repository."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PYTHON = r"^3\.\d{1,2}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"


class Model(BaseModel):
    """Strict and frozen: an unknown key is an error, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def arguments(command: str) -> str:
    """All words of a command after the program, in one line."""
    try:
        return " ".join(shlex.split(command)[1:])
    except ValueError as error:
        raise ValueError(f"not a command: {error}") from error


def _pattern(pattern: str) -> str:
    if not pattern or PurePosixPath(pattern).is_absolute():
        raise ValueError("a file or a pattern such as *.py, from the project file's folder")
    return pattern


Pattern = Annotated[str, AfterValidator(_pattern)]


class Command(Model):
    """A command of the repository, run in a virtual environment of its own. No shell: only words and quotes."""

    requirements: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="What pip installs before: a requirements file. Default: nothing."
    )
    python: Annotated[str, Field(pattern=PYTHON)] | None = Field(
        None, description="Which Python, such as 3.10. Default: the one that runs qnnci."
    )
    env: dict[Annotated[str, Field(pattern=VARIABLE)], str | None] = Field(
        {}, description="Environment of the command; `null` takes a value, such as a token, from that of qnnci."
    )
    inputs: tuple[Pattern, ...] = Field(
        (), description="Files, or patterns, that the command reads beside those in `run`: a change runs it anew."
    )
