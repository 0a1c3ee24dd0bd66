"""From a path to what runs it."""

from __future__ import annotations

from pathlib import Path

from qnnci.build.calls import PREPARED
from qnnci.context.read import inspect
from qnnci.errors import UsageError
from qnnci.model.graph import describe
from qnnci.runtime.cpu import Cpu
from qnnci.runtime.device import OnDevice
from qnnci.runtime.emulator import Emulated
from qnnci.runtime.runner import Runner, binary_ports, ports

SECONDS = 600.0


def load(
    path: str | Path,
    *,
    like: str | Path | None = None,
    seconds: float = SECONDS,
    on: str = "",
    libs: str | Path | None = None,
) -> Runner:
    """Load an ONNX graph (`.onnx`) to run on the CPU, or a context binary (`.bin`, `_ctx.onnx`) for the emulator.

    `like` is the graph whose names, axes and dtypes the runner of a binary has; without it, the prepared.onnx of the
    build that the binary stands in, else they are its own. `seconds` is the longest time that one run may take.

    With `on`, a binary is run on a device, `adb:SERIAL` or `ssh:user@host`: then `libs` is a folder with the run-time
    libraries of its QAIRT and with qnn-net-run.

    Raises:
        UsageError: there is no such file, or it is neither; or it is for another chip than the device's.
        ToolMissing: no emulator, or no libQnnSystem, on this machine; or no adb or ssh.
        MachineError: the device is not there.

    """
    if on and (libs is None or str(path).endswith(".onnx")):
        raise UsageError(f"on {on}, a binary (.bin) is run, with `libs`", where=str(path))
    path = Path(path)
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path), hint="a graph (.onnx) or a binary of `qnnci build`")
    if path.name.endswith("_ctx.onnx"):
        path = path.with_name(path.name.removesuffix("_ctx.onnx") + ".bin")
    elif path.suffix == ".onnx":
        return Cpu(path)
    info = inspect(path)
    if len(info.graphs) != 1:
        raise UsageError(f"it holds {len(info.graphs)} graphs; one is run here", where=str(path))
    graph = _graph_of(path, like)
    if graph is None:
        inputs, outputs = binary_ports(info.graphs[0].inputs), binary_ports(info.graphs[0].outputs)
    else:
        wanted = describe(graph)
        inputs, outputs = ports(wanted.inputs), ports(wanted.outputs)
    if on:
        return OnDevice(path, info, inputs, outputs, on=on, libs=Path(libs or ""), seconds=seconds)
    return Emulated(path, info, inputs, outputs, seconds=seconds)


def _graph_of(binary: Path, like: str | Path | None) -> Path | None:
    beside = binary.absolute().parent.parent / PREPARED
    return Path(like) if like else beside if beside.is_file() else None
