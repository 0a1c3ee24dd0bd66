"""A context binary on a phone or board."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from qnnci.arrays import Arrays
from qnnci.build.adapt import from_binary, to_binary
from qnnci.context.info import ContextInfo
from qnnci.device import about, room, run
from qnnci.device.link import connect
from qnnci.errors import UsageError
from qnnci.runtime.runner import Port, Runner, turned


class OnDevice(Runner):
    """A runner whose files stay on the device until it is closed; each run starts qnn-net-run there anew."""

    def __init__(
        self,
        binary: Path,
        info: ContextInfo,
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        *,
        on: str,
        libs: Path,
        seconds: float,
    ) -> None:
        link = connect(on)
        super().__init__(binary, link.address, inputs, outputs)
        said = about.read(link)
        chip = about.chip(said)
        if info.soc_id not in {None, chip.id}:
            raise UsageError(
                f"the binary is for SoC id {info.soc_id}, {on} is {chip.name} ({chip.id})", where=str(binary)
            )
        self._kit, self._seconds = run.kit(libs, arch=chip.arch), seconds
        self._graph, (self._order, self._axes) = info.graphs[0], turned(binary)
        folder = about.folder_for(said, room.space({**self._kit, "binary": binary}))
        self._stack = ExitStack()
        self._room = self._stack.enter_context(room.opened(link, folder, (sorted(self._kit), str(binary))))

    def _run(self, feed: Arrays) -> Arrays:
        given = to_binary(feed, self._graph.inputs, self._order, self._axes)
        ran = run.once(
            self._room, self.path, self._graph, [given], self._kit, timeout=self._seconds, say=lambda _: None
        )
        (got,) = run.outputs(ran, self._room.link)
        shapes = {port.name: np.broadcast_to(np.zeros((), port.dtype), port.sizes) for port in self.outputs}
        outputs = from_binary(got, shapes, self._graph.outputs, self._order, self._axes)
        return {name: array.astype(shapes[name].dtype) for name, array in outputs.items()}

    def close(self) -> None:
        self._stack.close()
