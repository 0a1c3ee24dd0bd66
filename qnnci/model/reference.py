"""The original graph on the CPU: the numbers that every binary is held against."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from qnnci.arrays import Arrays
from qnnci.errors import UsageError
from qnnci.model.feeds import Spec

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}
_ERROR = 3


def session_of(path: Path) -> Any:
    """A graph on the CPU as it stands, unoptimised.

    Raises:
        UsageError: ONNX Runtime does not load it.

    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERROR
    # Unoptimised, because this is the original; and ORT 1.32 crashes when it optimises nested, already decided Ifs.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ORT raises pybind types of its own
        raise UsageError(f"onnxruntime does not load it on the CPU: {error}", where=str(path)) from error


def specs(prepared: Path) -> list[Spec]:
    """Inputs of a static graph, in its own order."""
    return [
        Spec(each.name, tuple(each.shape), np.dtype(_DTYPES[each.type])) for each in session_of(prepared).get_inputs()
    ]


class Original:
    """The source graph, fed as the prepared one is: constants are filled in, integers widened to what it wants."""

    def __init__(self, source: Path, constants: Mapping[str, Any]) -> None:
        self._session = session_of(source)
        self._inputs = {each.name: each for each in self._session.get_inputs()}
        self._outputs = [each.name for each in self._session.get_outputs()]
        self.inputs = {
            name: np.dtype(_DTYPES[each.type]) for name, each in self._inputs.items() if each.type in _DTYPES
        }
        self._constants = {
            name: _filled(value, self._inputs[name]) for name, value in constants.items() if name in self._inputs
        }

    def run(self, feed: Arrays) -> Arrays:
        """Run one feed of the prepared graph's inputs.

        Raises:
            UsageError: the graph refuses the feed at run time.

        """
        typed: Arrays = {name: array.astype(_DTYPES[self._inputs[name].type]) for name, array in feed.items()}
        try:
            outputs = self._session.run(self._outputs, {**self._constants, **typed})
        except Exception as error:  # ORT raises pybind types of its own
            raise UsageError(f"the original does not run on the CPU: {error}") from error
        return dict(zip(self._outputs, outputs, strict=True))


def _filled(value: Any, wanted: Any) -> Any:
    array: NDArray[Any] = np.asarray(value, _DTYPES[wanted.type])
    static = all(isinstance(dim, int) for dim in wanted.shape)
    return np.broadcast_to(array, wanted.shape) if static else array
