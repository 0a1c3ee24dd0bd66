"""A real context binary, compiled by ONNX Runtime, and then named as the stand-in's own.

ONNX Runtime chooses the graph's name and the compiler writes its own build id. Both stand as FlatBuffers strings in
the binary: the name is replaced where it stands, the build id grows to the end of the metadata. The binary still runs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from qnnci.context.info import ContextInfo
from qnnci.context.read import read_context
from qnnci.toolchain.ort import Emulator, compile_context

_START = 40  # of the metadata, behind the file's header
_SIZE_AT, _BLOB_AT = 16, 24


class CompileError(Exception):
    """The compiler refused; `reasons` are its own lines."""

    def __init__(self, message: str, reasons: list[str]) -> None:
        super().__init__(message)
        self.reasons = reasons


@dataclass(frozen=True)
class Settings:
    soc_id: int
    vtcm_mb: int  # 0: the compiler's own default of 4
    optimization: int
    fp16: bool


def compile_to(binary: Path, model: Any, name: str, build: str, settings: Settings) -> tuple[ContextInfo, list[str]]:
    """Write the binary; returns what it says of itself and the compiler's lines.

    Raises:
        CompileError: it refused.

    """
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "graph.onnx", Path(folder) / "made.bin"
        onnx.save(model, str(source))
        lines: list[str] = []
        try:
            with native_lines(lines):
                compile_context(
                    source,
                    Path(folder) / "context.onnx",
                    made,
                    soc_id=settings.soc_id,
                    vtcm_mb=settings.vtcm_mb,
                    optimization=settings.optimization,
                    fp16=settings.fp16,
                )
        except Exception as error:
            raise CompileError(str(error), lines) from error
        if not made.exists():
            raise CompileError("nothing was written", lines)
        data = bytearray(made.read_bytes())
        info = read_context(made)
        _rename_graph(data, info.graphs[0].name, name)
        renamed = _rename_build(data, info, build, made)
        binary.write_bytes(data)
    return renamed, lines


@contextmanager
def native_lines(lines: list[str]) -> Iterator[None]:
    """Collect the compiler's own lines, which native code writes to standard error and output."""
    with tempfile.TemporaryFile() as file:
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in kept:
                os.dup2(file.fileno(), number)
            yield
        finally:
            for number, old in kept:
                os.dup2(old, number)
                os.close(old)
            file.seek(0)
            text = file.read().decode("utf-8", "replace")
            found = (line.partition("QnnLogging]")[2].strip() for line in text.splitlines())
            lines.extend(line for line in found if line)


def _rename_graph(data: bytearray, old: str, new: str) -> None:
    """Replace the name in place, where it fits; else it keeps ONNX Runtime's."""
    for prefix in ("PICKLE/256/", ""):
        before, after = f"{prefix}{old}".encode(), f"{prefix}{new}".encode()
        if len(after) > len(before):
            return
        whole = len(before).to_bytes(4, "little") + before
        shorter = len(after).to_bytes(4, "little") + after
        data[:] = data.replace(whole, shorter.ljust(len(whole), b"\0"))


def _rename_build(data: bytearray, info: ContextInfo, new: str, scratch: Path) -> ContextInfo:
    old = info.build_id
    string = data.index(len(old).to_bytes(4, "little") + old.encode(), _START)
    end = _START + int.from_bytes(data[_SIZE_AT : _SIZE_AT + 8], "little")
    end += -end % 4
    block = len(new).to_bytes(4, "little") + new.encode() + b"\0"
    block += b"\0" * (-len(block) % 4)
    assert end + len(block) <= int.from_bytes(data[_BLOB_AT : _BLOB_AT + 8], "little"), "no room for the build id"
    data[end : end + len(block)] = block
    data[_SIZE_AT : _SIZE_AT + 8] = (end + len(block) - _START).to_bytes(8, "little")
    # A dimension may by chance be a number that would lead to the string: the reference is what the reader follows.
    for at in range(_START, string, 4):
        kept = bytes(data[at : at + 4])
        if at + int.from_bytes(kept, "little") == string:
            data[at : at + 4] = (end - at).to_bytes(4, "little")
            scratch.write_bytes(data)
            if (renamed := read_context(scratch)).build_id == new:
                return renamed
            data[at : at + 4] = kept
    raise AssertionError("nothing refers to the build id")


@contextmanager
def emulated(binary: Path) -> Iterator[Emulator]:
    """The binary in the host's emulator, its ports by their own names and in their own dtypes."""
    info = read_context(binary)
    graph = info.graphs[0]
    attributes = {
        "main_context": 1,
        "embed_mode": 0,
        "ep_cache_context": binary.name,
        "partition_name": graph.name,
        "source": "QNNExecutionProvider",
        "ep_sdk_version": info.build_id,
    }
    ports = [
        [onnx.helper.make_tensor_value_info(port.name, _TYPES[port.dtype], port.shape) for port in side]
        for side in (graph.inputs, graph.outputs)
    ]
    names = [[port.name for port in side] for side in (graph.inputs, graph.outputs)]
    node = onnx.helper.make_node("EPContext", *names, name=graph.name, domain="com.microsoft", **attributes)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    with tempfile.TemporaryDirectory() as folder:
        wrapper = Path(folder) / "context.onnx"
        (Path(folder) / binary.name).symlink_to(binary.absolute())
        onnx.save(
            onnx.helper.make_model(
                onnx.helper.make_graph([node], "context", *ports), opset_imports=opsets, ir_version=10
            ),
            str(wrapper),
        )
        with native_lines([]):
            emulator = Emulator(wrapper, soc_id=info.soc_id or 0)
        yield emulator


_TYPES = {
    "FLOAT_32": onnx.TensorProto.FLOAT,
    "FLOAT_16": onnx.TensorProto.FLOAT16,
    "INT_32": onnx.TensorProto.INT32,
    "UFIXED_POINT_8": onnx.TensorProto.UINT8,
    "UFIXED_POINT_16": onnx.TensorProto.UINT16,
    "SFIXED_POINT_8": onnx.TensorProto.INT8,
    "SFIXED_POINT_16": onnx.TensorProto.INT16,
}
