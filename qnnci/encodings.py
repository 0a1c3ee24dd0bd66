"""AIMET's encodings files, versions 0.6.1, 1.0.0 and 2.0.0, read strictly into one form. Pure.

The forms were read in aimet-onnx 2.42.0 (`_encoding.py`). In 0.6.1 and 1.0.0 an offset counts as if the integers were
unsigned, whatever they are; in 2.0.0 a zero point is that of ONNX.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from qnnci.errors import UsageError

VERSIONS = ("0.6.1", "1.0.0", "2.0.0")
BITS = (4, 8, 16, 32)
_MOST_BYTES = 1 << 30
_TYPE = re.compile(r"(u?)int(\d+)")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one tensor is quantized: real = (q - zero_point) * scale, with one pair, or one for each channel.

    `bits` is 0 of a tensor that stays float. `axis` is the channels' axis; None where the file does not say.
    """

    name: str
    bits: int
    signed: bool = False
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    axis: int | None = None

    @property
    def per_channel(self) -> bool:
        return len(self.scales) > 1


def read(path: Path) -> dict[str, Encoding]:
    """Read a file, by the names of tensors.

    Raises:
        UsageError: it cannot be read, is of no known version, or holds what is not supported, such as blocks.

    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the encodings: {error.strerror}", where=str(path)) from error
    return parse(data, str(path))


def parse(data: bytes, where: str) -> dict[str, Encoding]:
    """Do the same with a file's bytes.

    Raises:
        UsageError: as `read`.

    """
    try:
        found = _parse(data)
    except UsageError as error:
        error.where = error.where or where
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        message = f"no encodings file of AIMET: {type(error).__name__} {str(error)[:200]}"
        raise UsageError(message, where=where, hint=f"known are versions {', '.join(VERSIONS)}") from error
    if not found:
        raise UsageError("it holds no encodings", where=where, hint="export them again")
    return found


def _parse(data: bytes) -> dict[str, Encoding]:
    if len(data) > _MOST_BYTES:
        raise UsageError(f"it has more than {_MOST_BYTES >> 20} MB")
    document = json.loads(data.decode("utf-8-sig"))
    version = document["version"]
    if version not in VERSIONS:
        message = f"it is of version {str(version)[:40]!r}"
        raise UsageError(message, hint=f"known are {', '.join(VERSIONS)}; `encoding_version=` of AIMET's export")
    found: dict[str, Encoding] = {}
    for each in _of_version[version](document):
        if each.name in found and found[each.name] != each:
            raise UsageError(f"it has two encodings of {each.name!r}")
        found[each.name] = each
    return found


def _oldest(document: dict[str, Any]) -> Iterator[Encoding]:
    for section in ("activation_encodings", "param_encodings"):
        for name, rows in document[section].items():
            first = rows[0]
            if str(first.get("dtype", "int")).lower() == "float":
                yield Encoding(str(name), 0)
                continue
            signed = str(first["is_symmetric"]).lower() == "true"
            yield _made(
                name,
                first["bitwidth"],
                (row["scale"] for row in rows),
                (row["offset"] for row in rows),
                signed=signed,
            )


def _old(document: dict[str, Any]) -> Iterator[Encoding]:
    for section in ("activation_encodings", "param_encodings"):
        for row in document[section]:
            name, kind = row["name"], row["enc_type"]
            if str(row["dtype"]).upper() == "FLOAT":
                yield Encoding(str(name), 0)
                continue
            if kind not in ("PER_TENSOR", "PER_CHANNEL"):
                raise _blocks(name, kind)
            if any(row.get("zero_point_shift", ())):
                raise UsageError(f"the encoding of {name!r} shifts its zero point by parts of a step")
            yield _made(name, row["bw"], row["scale"], row["offset"], signed=bool(row["is_sym"]))


def _new(document: dict[str, Any]) -> Iterator[Encoding]:
    for row in document["encodings"]:
        name, dtype = row["name"], str(row["output_dtype"])
        if dtype.startswith(("float", "bfloat")):
            yield Encoding(str(name), 0)
            continue
        if "block_size" in row or "per_block_int_scale" in row:
            raise _blocks(name, "blocks")
        kind = _TYPE.fullmatch(dtype)
        if kind is None:
            raise UsageError(f"the encoding of {name!r} has the type {dtype[:40]!r}")
        scales = _listed(row["y_scale"])
        zeros = _listed(row["y_zero_point"]) if row.get("y_zero_point") is not None else [0] * len(scales)
        yield _checked(str(name), int(kind[2]), scales, zeros, row.get("axis"), signed=not kind[1])


_of_version = {"0.6.1": _oldest, "1.0.0": _old, "2.0.0": _new}


def _made(name: object, bits: object, scales: Iterable[Any], offsets: Iterable[Any], *, signed: bool) -> Encoding:
    """An encoding of the older versions, whose offset counts from the lowest unsigned integer."""
    width = int(cast("int", bits))
    shift = 1 << (width - 1) if signed else 0
    zeros = [-(_whole(name, each) + shift) for each in offsets]
    return _checked(str(name), width, list(scales), zeros, None, signed=signed)


def _checked(name: str, bits: int, scales: list[Any], zeros: list[Any], axis: object, *, signed: bool) -> Encoding:
    if bits not in BITS:
        raise UsageError(f"the encoding of {name!r} has {bits} bits", hint=f"known are {', '.join(map(str, BITS))}")
    if not scales or len(scales) != len(zeros):
        raise UsageError(f"the encoding of {name!r} has {len(scales)} scales and {len(zeros)} zero points")
    steps = tuple(map(float, scales))
    if not all(math.isfinite(step) and step > 0 for step in steps):
        raise UsageError(f"the encoding of {name!r} has a scale that is not above zero")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    points = tuple(_whole(name, each) for each in zeros)
    if not all(low <= point <= high for point in points):
        raise UsageError(f"the encoding of {name!r} has a zero point outside of its {bits} bits")
    return Encoding(name, bits, signed, steps, points, None if axis is None else int(cast("int", axis)))


def _whole(name: object, value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(value):
        raise UsageError(f"the encoding of {str(name)!r} has a zero point that is no whole number: {value}")
    return int(value)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _blocks(name: object, kind: object) -> UsageError:
    message = f"the encoding of {str(name)!r} is of {str(kind)[:40]}: scales for blocks are not taken here"
    return UsageError(message, hint="export per-tensor or per-channel encodings")
