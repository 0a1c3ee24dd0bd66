"""An ONNX graph on the CPU, unoptimised: the original that binaries are held against."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qnnci.arrays import Arrays
from qnnci.errors import UsageError
from qnnci.model.graph import describe
from qnnci.model.reference import session_of
from qnnci.runtime.runner import Runner, ports


class Cpu(Runner):
    """A runner of an ONNX file, whose graph may have open sizes."""

    def __init__(self, path: Path) -> None:
        graph = describe(path)
        super().__init__(path, "cpu", ports(graph.inputs), ports(graph.outputs))
        self._session = session_of(path)

    def _run(self, feed: Arrays) -> Arrays:
        try:
            got = self._session.run([port.name for port in self.outputs], feed)
        except Exception as error:  # ORT raises pybind types of its own
            raise UsageError(f"it does not run on the CPU: {error}", where=str(self.path)) from error
        return {port.name: np.asarray(array) for port, array in zip(self.outputs, got, strict=True)}

    def close(self) -> None:
        self._session = None
