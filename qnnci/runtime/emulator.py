"""A context binary in the host emulator, in a child process: a crash of native code ends a run, not its caller."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from qnnci.arrays import Arrays, load_samples, save_samples
from qnnci.build.adapt import from_binary, to_binary
from qnnci.context.ep_context import refuse_other_binary, write_ep_context
from qnnci.context.info import ContextInfo
from qnnci.errors import ToolCrashed, UsageError
from qnnci.runtime.runner import Port, Runner, turned
from qnnci.toolchain.pool import Limit, Worker, machine_mb


class Emulated(Runner):
    """A runner of a context binary: right numbers, meaningless speed."""

    def __init__(
        self, binary: Path, info: ContextInfo, inputs: Sequence[Port], outputs: Sequence[Port], *, seconds: float
    ) -> None:
        super().__init__(binary, "emulator", inputs, outputs)
        self._graph, (self._order, self._axes) = info.graphs[0], turned(binary)
        self._limit = Limit(seconds, machine_mb() * 9 // 10)
        self._folder = tempfile.TemporaryDirectory(prefix="qnnci-run-")
        self._session = {
            "context_model": str(_context_model(binary, info, Path(self._folder.name)).absolute()),
            "soc_id": info.soc_id or 0,
        }
        self._worker = Worker()

    def _run(self, feed: Arrays) -> Arrays:
        folder = Path(self._folder.name)
        given, made, log = folder / "feed.npz", folder / "outputs.npz", folder / "log"
        # An input that nothing reads is in the EPContext model, but not in the binary.
        save_samples(given, [({**feed, **to_binary(feed, self._graph.inputs, self._order, self._axes)}, {})])
        paths = {"feed": str(given), "out": str(made)}
        answer = self._worker.ask("qnnci.runtime.child:run", {**self._session, **paths}, log=log, limit=self._limit)
        if answer.death:
            raise ToolCrashed(f"the emulator ended with {answer.death}", where=str(self.path), hint="`qnnci doctor`")
        if answer.refused:
            raise UsageError(f"the emulator does not run it: {answer.refused}", where=str(self.path))
        shapes = {port.name: np.broadcast_to(np.zeros((), port.dtype), port.sizes) for port in self.outputs}
        ((_, got),) = load_samples(made)
        outputs = from_binary(got, shapes, self._graph.outputs, self._order, self._axes)
        return {name: array.astype(shapes[name].dtype) for name, array in outputs.items()}

    def close(self) -> None:
        self._worker.stop()
        self._folder.cleanup()


def _context_model(binary: Path, info: ContextInfo, folder: Path) -> Path:
    """The EPContext model beside a binary; where there is none, one in `folder`."""
    beside = binary.with_name(f"{binary.stem}_ctx.onnx")
    if beside.is_file():
        refuse_other_binary(beside, binary.name)
        return beside
    (folder / binary.name).symlink_to(binary.absolute())
    write_ep_context(info, binary.name, folder / beside.name)
    return folder / beside.name
