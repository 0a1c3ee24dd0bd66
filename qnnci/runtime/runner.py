"""What runs a model, as its user sees it."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import Self

from qnnci.arrays import Arrays
from qnnci.build.adapt import Order
from qnnci.build.task import TURNED
from qnnci.context.info import TensorInfo
from qnnci.errors import UsageError
from qnnci.model import graph
from qnnci.model.feeds import pick, typed

Feed = Mapping[str, ArrayLike]

_DTYPES = {
    "INT_8": np.int8, "INT_16": np.int16, "INT_32": np.int32, "INT_64": np.int64, "BOOL_8": np.bool_,
    "UINT_8": np.uint8, "UINT_16": np.uint16, "UINT_32": np.uint32, "UINT_64": np.uint64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its name, its shape (a name or "" where a size is open) and its numpy dtype."""

    name: str
    shape: tuple[int | str, ...]
    dtype: np.dtype[Any]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape where all of it is known.

        Raises:
            UsageError: a size is open.

        """
        known = tuple(size for size in self.shape if isinstance(size, int))
        if len(known) < len(self.shape):
            raise UsageError(f"{self.name} has open sizes: {list(self.shape)}")
        return known


class Runner(ABC):
    """A model that can be run. Names, shapes and dtypes are the graph's own, also where the binary has others.

    `place` says where it runs: `cpu`, `emulator`, `adb:SERIAL`, `ssh:HOST`. Inputs and outputs are real numbers: a
    binary of fixed point or float16 is fed and read as its graph is. One thread uses a runner at a time.
    """

    def __init__(self, path: Path, place: str, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        self.path, self.place, self.inputs, self.outputs = path, place, tuple(inputs), tuple(outputs)

    def run(self, feed: Feed) -> Arrays:
        """Run once. What the feed holds beside the inputs is ignored.

        Raises:
            UsageError: an input is missing, or has another shape or kind.
            ToolCrashed: the runtime crashed or took too long.

        """
        given = {name: np.asarray(array) for name, array in feed.items()}
        return self._run({port.name: _fit(given, port, self.path) for port in self.inputs})

    @abstractmethod
    def _run(self, feed: Arrays) -> Arrays: ...

    @abstractmethod
    def close(self) -> None:
        """End what runs it. A runner is not used after that."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def ports(given: Sequence[graph.Port]) -> list[Port]:
    """Inputs or outputs of an ONNX graph.

    Raises:
        UsageError: one is no array of numbers, or not even its rank is known.

    """
    made = []
    for each in given:
        if each.dims is None:
            raise UsageError(f"the graph does not say how many dimensions {each.name} has")
        try:
            dtype = np.dtype(each.dtype)
        except TypeError as error:
            raise UsageError(f"{each.name} is {each.dtype}, which is no array of numbers") from error
        made.append(Port(each.name, tuple("" if size is None else size for size in each.dims), dtype))
    return made


def binary_ports(tensors: Sequence[TensorInfo]) -> list[Port]:
    """Inputs or outputs of a context binary, as real numbers: what is fixed point inside is float32 here."""
    return [Port(each.name, each.shape, np.dtype(_DTYPES.get(each.dtype, np.float32))) for each in tensors]


def turned(binary: Path) -> tuple[Order, dict[str, tuple[int, ...]]]:
    """What was done to the binary's axes, as the build or the sidecar says: the route's habit, and ports by name."""
    try:
        given = os.environ.get(TURNED) or binary.with_suffix(".json").read_text(encoding="utf-8")
        told = json.loads(given)
        layout = {str(name): tuple(map(int, axes)) for name, axes in told.get("layout", {}).items()}
        return ("same" if told["route"] == "ort" else "channel-last"), layout
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no sidecar, or another file of that name
        return "same", {}


def _fit(given: Arrays, port: Port, where: Path) -> Any:
    array = pick(given, port.name, where)
    fits = len(array.shape) == len(port.shape) and all(
        isinstance(want, str) or size == want for size, want in zip(array.shape, port.shape, strict=True)
    )
    if not fits:
        message = f"{port.name} has shape {list(array.shape)}, the graph wants {list(port.shape)}"
        raise UsageError(message, where=str(where))
    return typed(array, port.name, port.dtype, where)
