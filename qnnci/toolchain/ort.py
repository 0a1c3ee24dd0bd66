"""Route `ort`: ONNX Runtime's QNN provider compiles ahead of time and emulates what it wrote. Child processes only.

Provider options and their pitfalls were measured on onnxruntime 1.32.0 with onnxruntime-qnn 2.7.0 (QAIRT 2.51.0).
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.arrays import Arrays
from qnnci.errors import ToolMissing
from qnnci.files import SCRATCH, commit, disk_errors

PROVIDER = "QNNExecutionProvider"
_VERBOSE, _WARNING = 0, 2
_PROBE_BYTES = 1 << 20


@cache
def _runtime() -> Any:
    """Return onnxruntime with the QNN provider registered.

    Raises:
        ToolMissing: no embedded compiler on this Python or machine.

    """
    try:
        ort = importlib.import_module("onnxruntime")
        qnn = importlib.import_module("onnxruntime_qnn")
    except ImportError as error:
        raise ToolMissing(f"the embedded compiler is not installed ({error})", hint=way_out()) from error
    # Before registering: the provider keeps the logger it finds, and only a verbose one carries the compiler's own
    # reasons. Measured on PP-OCRv4: 115 KB of log a compile, and no time.
    ort.set_default_logger_severity(_VERBOSE)
    try:
        ort.register_execution_provider_library(PROVIDER, qnn.get_library_path())
    except Exception as error:  # ORT raises its own pybind types; any of them means no handshake
        raise ToolMissing(
            f"onnxruntime {ort.__version__} does not load the QNN provider: {error}", hint=way_out()
        ) from error
    return ort


def way_out() -> str:
    """What to do on a machine that cannot run the embedded compiler."""
    libc, version = platform.libc_ver()
    return (
        "route `ort` needs x86_64 Linux, Python 3.11 or newer and glibc 2.35 or newer; this is "
        f"{platform.system()} {platform.machine()}, Python {sys.version_info.major}.{sys.version_info.minor}, "
        f"{libc or 'libc'} {version}. Use Ubuntu 22.04 or Debian 12 with Python 3.11, and "
        "install qnnci there again"
    )


def _session(model: Path, entries: Mapping[str, str], options: Mapping[str, str]) -> Any:
    ort = _runtime()
    settings = ort.SessionOptions()
    settings.log_severity_level = _WARNING  # which nodes are refused is said in warnings
    # One core a session: the parallelism is several targets at once.
    settings.intra_op_num_threads = 1
    for key, value in {"session.disable_cpu_ep_fallback": "1", **entries}.items():
        settings.add_session_config_entry(key, value)
    devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    settings.add_provider_for_devices(devices[:1], {"backend_path": _backend(), **options})
    return ort.InferenceSession(str(model), settings)


def _backend() -> str:
    return str(importlib.import_module("onnxruntime_qnn").get_qnn_htp_path())


def compile_context(
    model: Path,
    context_model: Path,
    binary: Path,
    *,
    soc_id: int,
    vtcm_mb: int,
    optimization: int,
    fp16: bool,
) -> None:
    """Compile a static graph into `binary` and an EPContext model that points at it by relative name.

    Both appear whole or not at all, the binary first. The graph's name inside the binary is the provider's own and
    cannot be chosen: `ep.context_node_name_prefix` changes nothing (measured on onnxruntime-qnn 2.7.0).

    Raises:
        ToolMissing: no embedded compiler.
        Exception: whatever ONNX Runtime says; the reasons are on standard error.

    """
    with disk_errors(binary):
        binary.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=binary.parent) as name:
            made = Path(name) / "context.onnx"
            try:
                _ahead_of_time(model, made, {}, soc_id=soc_id, vtcm_mb=vtcm_mb, optimization=optimization, fp16=fp16)
            except Exception as error:
                if "Failed to write" in str(error) or "Failed to open" in str(error):  # why, writing again does say
                    (Path(name) / "probe").write_bytes(bytes(_PROBE_BYTES))
                raise
            made_binary = made.with_name("context_qnn.bin")
            if not made_binary.exists() or not made_binary.stat().st_size:
                return  # the caller judges by the files, never by this function's return
            _point_at(made, binary.name)
            commit(made_binary, binary)
            commit(made, context_model)


def _ahead_of_time(
    model: Path, made: Path, entries: Mapping[str, str], *, soc_id: int, vtcm_mb: int, optimization: int, fp16: bool
) -> Any:
    """The session that writes the EPContext model `made` and, unless others are to follow, the binary beside it."""
    return _session(
        model,
        {
            "ep.context_enable": "1",
            "ep.context_embed_mode": "0",
            "ep.context_file_path": str(made),
            **entries,
        },
        {
            "soc_model": str(soc_id),
            "vtcm_mb": str(vtcm_mb),
            "htp_graph_finalization_optimization_mode": str(optimization),
            "enable_htp_fp16_precision": "1" if fp16 else "0",
        },
    )


@dataclass(frozen=True, slots=True)
class Member:
    """One graph of a context: its static graph, the EPContext model to write, and whether float ops may run in it."""

    model: Path
    context_model: Path
    fp16: bool


def share_context(
    members: Sequence[Member], binary: Path, *, soc_id: int, vtcm_mb: int, optimization: int
) -> list[str]:
    """Compile several graphs into one `binary` with weights in common; returns their names in it, in order.

    The provider keeps what it has until the last session says stop: a process in which this failed has graphs left
    over that the next context would get, so that it must end (measured on onnxruntime-qnn 2.7.0).

    Raises:
        ToolMissing: no embedded compiler.
        Exception: whatever ONNX Runtime says; the reasons are on standard error.

    """
    with disk_errors(binary):
        binary.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=binary.parent) as name:
            made = [Path(name) / f"{number}.onnx" for number in range(len(members))]
            sessions = []  # alive until the last has written
            for member, path in zip(members, made, strict=True):
                stop = {"ep.stop_share_ep_contexts": "1"} if path is made[-1] else {}
                entries = {"ep.share_ep_contexts": "1", **stop}
                options = {"soc_id": soc_id, "vtcm_mb": vtcm_mb, "optimization": optimization}
                sessions.append(_ahead_of_time(member.model, path, entries, **options, fp16=member.fp16))
            del sessions
            made_binary = made[0].with_name("0_qnn.bin")  # the first gives it its name
            if not made_binary.exists() or not made_binary.stat().st_size:
                return []  # the caller judges by the files, never by this function's return
            names = [_point_at(path, binary.name) for path in made]
            commit(made_binary, binary)
            for member, path in zip(members, made, strict=True):
                commit(path, member.context_model)
            return names


def _point_at(context_model: Path, binary_name: str) -> str:
    """Have an EPContext model name this binary; returns the name of its graph there."""
    onnx = importlib.import_module("onnx")
    model = onnx.load(os.fspath(context_model))
    graph = ""
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "ep_cache_context":
                attribute.s = binary_name.encode()
            if attribute.name == "partition_name":
                graph = attribute.s.decode()
    onnx.save(model, os.fspath(context_model))
    return graph


class Emulator:
    """A written binary, loaded into the host emulator: right numbers, meaningless speed."""

    def __init__(self, context_model: Path, *, soc_id: int) -> None:
        self._session = _session(context_model, {}, {"soc_model": str(soc_id)})
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, feed: Arrays) -> Arrays:
        """Run one feed, which may hold more; names, shapes and dtypes are those of the graph's own ports."""
        given = {name: feed[name] for name in self._inputs if name in feed}
        return dict(zip(self._outputs, self._session.run(None, given), strict=True))


def versions() -> dict[str, str]:
    """Versions of onnxruntime, its QNN provider and QAIRT, as loaded.

    Raises:
        ToolMissing: no embedded compiler.

    """
    ort = _runtime()
    info = importlib.import_module("onnxruntime_qnn.build_and_package_info")
    return {
        "onnxruntime": str(ort.__version__),
        "onnxruntime-qnn": str(importlib.import_module("importlib.metadata").version("onnxruntime-qnn")),
        "qairt": str(info.qnn_version),
        "numpy": np.__version__,
    }
