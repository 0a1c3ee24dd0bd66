"""Feeds and outputs as qnn-net-run has them: raw files in the binary's own dtypes, all in one tar."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.arrays import Arrays
from qnnci.context.info import GraphInfo, TensorInfo
from qnnci.errors import ToolCrashed, UsageError

IN, LIST = "in", "list.txt"
OUT = "out"
_CARRIED = re.compile(r"(?P<sign>[SU]?)(?:INT|FIXED_POINT)_(?P<bits>8|16|32|64)")
_RESULT = re.compile(rf"(?:\./)?{OUT}/Result_(?P<number>\d{{1,9}})/(?P<name>.+?)(?P<native>_native)?\.raw")


def carrier(tensor: TensorInfo) -> np.dtype[Any]:
    """The numpy dtype that a tensor of a binary is in memory; fixed point is the integer that carries it.

    Raises:
        UsageError: it is of a type that has no whole bytes, or of none that is known.

    """
    if match := re.fullmatch(r"FLOAT_(16|32|64)", tensor.dtype):
        return np.dtype(f"float{match[1]}")
    if tensor.dtype == "BOOL_8":
        return np.dtype(np.uint8)
    if match := _CARRIED.fullmatch(tensor.dtype):
        return np.dtype(f"{'u' if match['sign'] == 'U' else ''}int{match['bits']}")
    raise UsageError(f"{tensor.name} is {tensor.dtype}, which is not run here")


def pack(feeds: Sequence[Arrays], graph: GraphInfo, path: Path, folder: str = IN) -> None:
    """Write feeds to a tar, in a folder with the input list that names them.

    Raises:
        UsageError: a feed lacks an input of the binary, or has another shape or kind.

    """
    lines = []
    with tarfile.open(path, "w") as tar:
        for number, feed in enumerate(feeds):
            words = []
            for index, tensor in enumerate(graph.inputs):
                name = f"{folder}/{number}_{index}.raw"
                _add(tar, name, _bytes(feed, tensor))
                words.append(f"{tensor.name}:={name}" if len(graph.inputs) > 1 else name)
            lines.append(" ".join(words))
        _add(tar, f"{folder}/{LIST}", "".join(f"{line}\n" for line in lines).encode())


def _bytes(feed: Arrays, tensor: TensorInfo) -> bytes:
    if tensor.name not in feed:
        raise UsageError(f"the feed has nothing for {tensor.name!r}; it has {', '.join(feed) or 'nothing'}")
    array, dtype = feed[tensor.name], carrier(tensor)
    if array.size != int(np.prod(tensor.shape)):
        raise UsageError(f"{tensor.name} is {list(tensor.shape)} in the binary, {list(array.shape)} in the feed")
    if array.dtype != dtype and not (array.dtype.kind == "b" or np.can_cast(array.dtype, dtype, "same_kind")):
        raise UsageError(f"{tensor.name} is {tensor.dtype} in the binary, {array.dtype} in the feed")
    if re.search(r"\s", tensor.name):
        raise UsageError(f"the name {tensor.name!r} holds a space, at which qnn-net-run splits its list")
    return np.ascontiguousarray(array.astype(dtype)).tobytes()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def unpack(path: Path, graph: GraphInfo, count: int) -> list[Arrays]:
    """Read the outputs of `count` feeds from the tar that a device made, in the binary's own dtypes and shapes.

    Raises:
        ToolCrashed: an output is missing, or has another size.

    """
    found: dict[tuple[int, str], bytes] = {}
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                match = _RESULT.fullmatch(member.name)
                file = tar.extractfile(member) if match and member.isreg() else None
                if match and file:
                    found[int(match["number"]), _plain(match["name"])] = file.read()
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise ToolCrashed(f"what came back from the device is no tar: {error}") from error
    return [{tensor.name: _array(found, number, tensor) for tensor in graph.outputs} for number in range(count)]


def _array(found: dict[tuple[int, str], bytes], number: int, tensor: TensorInfo) -> Any:
    data, dtype = found.get((number, _plain(tensor.name))), carrier(tensor)
    if data is None:
        raise ToolCrashed(f"the device wrote no output {tensor.name} for feed {number}")
    wanted = int(np.prod(tensor.shape)) * dtype.itemsize
    if len(data) != wanted:
        raise ToolCrashed(f"the device wrote {len(data)} bytes of {tensor.name}, {wanted} were expected")
    return np.frombuffer(data, dtype).reshape(tensor.shape)


def _plain(name: str) -> str:
    """A tensor's name as it may stand in a file name; where it has slashes, these may have become folders."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)
