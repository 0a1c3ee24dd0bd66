"""Weights that an ONNX file keeps in other files beside it: found, checked, read in, written out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import onnx

from qnnci.errors import UsageError
from qnnci.files import disk_errors
from qnnci.model.graph import load, tensor_bytes, tensors

# A protobuf message cannot reach 2 GiB; the rest is room for nodes and for onnxsim's folded constants.
INLINE_LIMIT = 2**31 - 2**26
SMALL = 1024  # bytes: shapes and scalars, which are no weights even where they are kept outside
_ALIGN = 4096
_CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class Slice:
    """Where a tensor's bytes are: `bytes` from `offset` of a file."""

    path: Path
    offset: int
    bytes: int


def outside(model: Any) -> list[Any]:
    """Tensors whose bytes are in another file."""
    return [tensor for tensor in tensors(model) if tensor.data_location == onnx.TensorProto.EXTERNAL]


def total_bytes(model: Any) -> int:
    """What the whole model weighs: the file itself and what it keeps outside."""
    return int(model.ByteSize()) + sum(tensor_bytes(tensor) for tensor in outside(model))


def missing(model: Any, source: Path) -> Iterator[str]:
    """Say what is wrong with a model's external data files, one sentence a file. Reads at most a few bytes of each."""
    told: set[str] = set()
    for tensor in outside(model):
        location = _fields(tensor).get("location", "")
        if location not in told and (problem := _problem(tensor, source)):
            told.add(location)
            yield problem


def files_beside(source: Path) -> list[Path]:
    """Files in which a model keeps weights, there or not. A large model without any is not parsed for it.

    Raises:
        UsageError: as `load`, or a place outside of the model's folder.

    """
    with contextlib.suppress(OSError):
        if b"location" not in source.read_bytes():  # the key that every tensor kept outside has
            return []
    return sorted({_slice(tensor, source.parent).path for tensor in outside(load(source))})


def _problem(tensor: Any, source: Path) -> str | None:
    folder = source.parent
    try:
        where = _slice(tensor, folder)
    except UsageError as error:
        return error.message
    name = where.path.relative_to(folder).as_posix()
    if not where.path.is_file():
        return f"the graph keeps weights in {name!r}, which is not beside it"
    # Links are followed as ONNX Runtime does: within the folder, or (the Hub's cache) beside the model's own file.
    allowed = (folder.resolve(), source.resolve().parent)
    if not any(where.path.resolve().is_relative_to(each) for each in allowed):
        return f"the graph keeps weights in {name!r}, which is a link to outside of its folder"
    size = where.path.stat().st_size
    if where.offset + where.bytes <= size:
        return None
    with where.path.open("rb") as file:
        pointer = file.read(23) == b"version https://git-lfs"
    if pointer:
        return f"the weights file {name!r} is a Git LFS pointer: run `git lfs pull`"
    return f"the weights file {name!r} is too short: {size:,} bytes, {where.offset + where.bytes:,} or more are needed"


def _fields(tensor: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _slice(tensor: Any, folder: Path) -> Slice:
    fields = _fields(tensor)
    location = PurePosixPath(fields.get("location", ""))
    # A model may come from anyone: its weights must not name this machine's other files.
    if not location.name or location.is_absolute() or ".." in location.parts:
        raise UsageError(f"the graph keeps weights in {str(location)!r}, outside of its folder")
    needed = tensor_bytes(tensor)
    try:
        offset, length = int(fields.get("offset", "0")), int(fields.get("length", needed))
    except ValueError as error:
        raise UsageError(f"the weights of {tensor.name!r} have no readable place: {fields}") from error
    if offset < 0 or length != needed:
        raise UsageError(
            f"the weights of {tensor.name!r} are {length:,} bytes at {offset:,}, its shape needs {needed:,}"
        )
    return Slice(folder / location, offset, needed)


def take_in(model: Any, folder: Path, *, at_most: int = INLINE_LIMIT) -> None:
    """Read external tensors of up to `at_most` bytes into the model itself."""
    for tensor in outside(model):
        where = _slice(tensor, folder)
        if where.bytes > at_most:
            continue
        with where.path.open("rb") as file:
            file.seek(where.offset)
            tensor.raw_data = file.read(where.bytes)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def copy_out(model: Any, folder: Path, part: Path, name: str) -> None:
    """Copy external weights into the one file `part`, and make the model name it `name`. Memory stays small."""
    done: dict[Slice, int] = {}
    with disk_errors(part), part.open("wb") as target:
        for tensor in outside(model):
            where = _slice(tensor, folder)
            if where not in done:
                target.seek(-(-target.tell() // _ALIGN) * _ALIGN)
                done[where] = target.tell()
                _copy(where, target)
            place = {"location": name, "offset": str(done[where]), "length": str(where.bytes)}
            del tensor.external_data[:]
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)


def _copy(where: Slice, target: Any) -> None:
    left = where.bytes
    with where.path.open("rb") as source:
        source.seek(where.offset)
        while left and (chunk := source.read(min(left, _CHUNK))):
            target.write(chunk)
            left -= len(chunk)
