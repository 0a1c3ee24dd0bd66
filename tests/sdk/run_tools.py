"""What looks at binaries or runs them: qnn-net-run, qnn-context-binary-utility, qnn-platform-validator."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.context.info import ContextInfo, TensorInfo
from qnnci.context.read import read_context
from qnnci.errors import QnnciError
from sdk import flags, says
from sdk.binary import emulated, native_lines
from sdk.failures import Failures
from sdk.kit import Kit
from sdk.quantise import listed

NET_RUN, UTILITY, VALIDATOR = "qnn-net-run", "qnn-context-binary-utility", "qnn-platform-validator"
_DTYPES = {
    "FLOAT_32": np.float32,
    "FLOAT_16": np.float16,
    "INT_32": np.int32,
    "UFIXED_POINT_8": np.uint8,
    "UFIXED_POINT_16": np.uint16,
    "SFIXED_POINT_8": np.int8,
    "SFIXED_POINT_16": np.int16,
}


def net_run(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    """Only `--retrieve_context` runs here: what it runs on is the host's emulator."""
    given, end = _given(NET_RUN, kit, arguments, failures)
    if given is None:
        return end
    if "model" in given and "retrieve_context" in given:
        says.plain("Arguments Invalid: --model, --retrieve_context")
        return 1
    says.plain(f"{NET_RUN} pid:{os.getpid()}")
    says.plain(f"{NET_RUN} build version: {kit.build}")
    output = Path(given.get("output_dir", "./output"))
    if (ended := failures.at_work(output / "Result_0" / "output.raw")) is not None:
        return ended
    binary = Path(given.get("retrieve_context", ""))
    says.plain("Processing inference input(s):")
    says.plain(f"Creating context from binary file: {binary}")
    try:
        info = read_context(binary)
    except QnnciError:
        says.native("ERROR", "Failed to create context from binary with err 0x1388")
        says.plain("Could not create context from binary")
        return 1
    says.plain("Executing Graphs")
    _run(info, binary, output, given)
    says.plain("Finished Executing Graphs")
    return failures.at_end(0)


def _run(info: ContextInfo, binary: Path, output: Path, given: dict[str, str]) -> None:
    graph = info.graphs[0]
    with emulated(binary) as emulator:
        for at, items in enumerate(listed(Path(given["input_list"]))):
            named = dict(item.split(":=", 1) for item in items if ":=" in item)
            native = "use_native_input_files" in given
            feed = {
                port.name: _read(Path(named.get(port.name) or items[number]), port, native=native)
                for number, port in enumerate(graph.inputs)
            }
            with native_lines([]):
                made = emulator.run(feed)
            folder = output / f"Result_{at}"
            for port in graph.outputs:
                (folder / port.name).parent.mkdir(parents=True, exist_ok=True)
                if "use_native_output_files" in given:
                    made[port.name].tofile(folder / f"{port.name}_native.raw")
                else:
                    _real(made[port.name], port).tofile(folder / f"{port.name}.raw")


def _read(path: Path, port: TensorInfo, *, native: bool) -> Any:
    dtype: Any = np.dtype(_DTYPES[port.dtype])
    quantization = port.quantization
    if native or port.dtype == "INT_32":
        return np.fromfile(path, dtype).reshape(port.shape)
    data = np.fromfile(path, np.float32).reshape(port.shape)
    if quantization is None or not quantization.scale:
        return data.astype(dtype)
    limits = np.iinfo(dtype)
    steps = np.round(data / quantization.scale) - (quantization.offset or 0)
    return np.clip(steps, limits.min, limits.max).astype(dtype)


def _real(data: Any, port: TensorInfo) -> Any:
    quantization = port.quantization
    if quantization is None or not quantization.scale:
        return data.astype(np.int32 if port.dtype == "INT_32" else np.float32)
    return ((data.astype(np.float64) + (quantization.offset or 0)) * quantization.scale).astype(np.float32)


def utility(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    """Write what a context binary says of itself as JSON."""
    given, end = _given(UTILITY, kit, arguments, failures)
    if given is None:
        return end
    if (ended := failures.at_work(Path(given["json_file"]))) is not None:
        return ended
    try:
        info = read_context(Path(given["context_binary"]))
        Path(given["json_file"]).write_text(json.dumps({"info": _described(info)}, indent=2), encoding="utf-8")
    except (QnnciError, OSError) as error:
        says.native("ERROR", f"Failed to read context binary: {error}")
        return 1
    return failures.at_end(0)


def _described(info: ContextInfo) -> dict[str, Any]:
    def port(tensor: TensorInfo) -> dict[str, Any]:
        dimensions = list(tensor.shape)
        about = {"name": tensor.name, "dimensions": dimensions, "rank": len(dimensions)}
        return {"info": {**about, "dataType": f"QNN_DATATYPE_{tensor.dtype}"}}

    return {
        "backendId": info.backend_id,
        "buildId": info.build_id,
        "coreApiVersion": info.core_api,
        "backendApiVersion": info.backend_api,
        "socModel": info.soc_id,
        "contextBlobVersion": info.blob_version,
        "contextBlobSize": info.blob_bytes,
        "contextMetadata": {"info": {"dspArch": info.dsp_arch}},
        "numGraphs": len(info.graphs),
        "graphs": [
            {
                "info": {
                    "graphName": graph.name,
                    "graphInputs": [port(each) for each in graph.inputs],
                    "graphOutputs": [port(each) for each in graph.outputs],
                    "graphBlobInfo": {
                        "info": {
                            "spillFillBufferSize": graph.spill_fill_bytes,
                            "vtcmSize": graph.vtcm_bytes,
                            "optimizationLevel": graph.optimization,
                            "htpDlbc": graph.dlbc,
                            "numHvxThreads": graph.hvx_threads or 0,
                        }
                    },
                }
            }
            for graph in info.graphs
        ],
    }


def validator(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    """Say that a device passed, or with `error-inside` that it did not."""
    given = flags.parser(VALIDATOR, kit.minor, failures.values("forget")).parse_args(arguments)
    backends = ("GPU", "DSP") if given.backend == "all" else (given.backend.upper(),)
    says.plain("PF_VALIDATOR: DEBUG: Calling PlatformValidator->setBackend")
    for backend in backends:
        says.plain(f"Backend {backend} Prerequisites: Present.")
        passed = not failures.has("error-inside")
        says.plain(f"Unit Test on the backend {backend}: {'Passed' if passed else 'Failed'}.")
        if passed:
            says.plain(f"QNN is supported for backend {backend} on the device.")
    return failures.at_end(0)


def _given(tool: str, kit: Kit, arguments: Sequence[str], failures: Failures) -> tuple[dict[str, str] | None, int]:
    """The flags of a C++ tool, or None and the exit code where it ends with them."""
    forgotten = failures.values("forget")
    try:
        given = flags.native(tool, kit.minor, forgotten, arguments)
    except flags.NativeUsageError as error:
        says.plain(str(error))
        return None, 1
    if "help" in given:
        says.plain(flags.native_help(tool, kit.minor, forgotten))
        return None, 0
    if "version" in given:
        says.plain(f"{tool} build version: {kit.build}")
        return None, 0
    return given, 0
