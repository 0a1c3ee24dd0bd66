"""Between a graph's inputs and outputs and those of its binary: renamed, transposed, fixed point. Pure numpy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qnnci.arrays import Arrays
from qnnci.context.info import TensorInfo
from qnnci.errors import UsageError

Order = Literal["same", "channel-last"]

CHANNEL_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
Axes = Mapping[str, Sequence[int]]
_AS_THEY_ARE: Axes = MappingProxyType({})
_BITS = re.compile(r"(?P<sign>[SU])FIXED_POINT_(?P<bits>\d+)")


def to_binary(feed: Arrays, tensors: Sequence[TensorInfo], order: Order, axes: Axes = _AS_THEY_ARE) -> Arrays:
    """Return a feed of the graph as the binary takes it. `order` is what the converter does to axes when both fit.

    `axes` has those ports, by the graph's names, whose axes are known to be in another order.

    Raises:
        UsageError: an input of the binary that the graph does not have, or no order of axes that fits.

    """
    turned = {name: feed[name].transpose(axes[name]) if name in axes else feed[name] for name in feed}
    fixed = {_plain(name) for name in axes}
    return {
        tensor.name: _quantized(
            _reordered(_find(turned, tensor), tensor, "same" if _plain(tensor.name) in fixed else order), tensor
        )
        for tensor in tensors
    }


def from_binary(
    got: Arrays, want: Arrays, tensors: Sequence[TensorInfo], order: Order, axes: Axes = _AS_THEY_ARE
) -> Arrays:
    """Return the binary's outputs under the graph's names, axes and as real numbers, for each of `want`.

    Raises:
        UsageError: as `to_binary`.

    """
    by_name = {_plain(tensor.name): tensor for tensor in tensors}
    outputs: Arrays = {}
    for name, array in want.items():
        tensor = by_name.get(_plain(name))
        if tensor is None:
            known = ", ".join(tensor.name for tensor in tensors)
            raise UsageError(f"the binary has no output {name!r}; it has {known}")
        real = _dequantized(got[tensor.name], tensor)
        turned = axes.get(name) or permutation(array.shape, tensor.shape, order)
        outputs[name] = real if turned is None else real.reshape(tensor.shape).transpose(np.argsort(turned))
    return outputs


def permutation(shape: Sequence[int], wanted: Sequence[int], order: Order) -> tuple[int, ...] | None:
    """Axes that turn `shape` into `wanted`; None where nothing is to be done.

    Where several orders fit, the converter's habit decides; where only others fit, the first of them.
    """
    rank = len(shape)
    if len(wanted) != rank or rank not in CHANNEL_LAST:
        return None
    same = tuple(range(rank))
    habit = CHANNEL_LAST[rank] if order == "channel-last" else same
    for axes in (habit, same, *itertools.permutations(range(rank))):
        if [shape[axis] for axis in axes] == list(wanted):
            return None if axes == same else axes
    return None


def _find(feed: Arrays, tensor: TensorInfo) -> NDArray[Any]:
    for name, array in feed.items():
        if _plain(name) == _plain(tensor.name):
            return array
    raise UsageError(f"the graph has no input for the binary's {tensor.name!r}; it has {', '.join(feed)}")


def _reordered(array: NDArray[Any], tensor: TensorInfo, order: Order) -> NDArray[Any]:
    axes = permutation(array.shape, tensor.shape, order)
    turned = array if axes is None else array.transpose(axes)
    if turned.size != int(np.prod(tensor.shape)):
        message = f"{tensor.name} is {list(tensor.shape)} in the binary and {list(array.shape)} in the graph"
        raise UsageError(message)
    return np.ascontiguousarray(turned.reshape(tensor.shape))


def _quantized(array: NDArray[Any], tensor: TensorInfo) -> NDArray[Any]:
    bounds = _bounds(tensor)
    if bounds is None or not np.issubdtype(array.dtype, np.floating):
        return array.astype(np.float16) if tensor.dtype == "FLOAT_16" else array
    scale, offset = _scale(tensor)
    low, high, dtype = bounds
    quantized: NDArray[Any] = np.clip(np.rint(array.astype(np.float64) / scale) - offset, low, high).astype(dtype)
    return quantized


def _dequantized(array: NDArray[Any], tensor: TensorInfo) -> NDArray[Any]:
    if _bounds(tensor) is None:
        return array
    scale, offset = _scale(tensor)
    return ((array.astype(np.float64) + offset) * scale).astype(np.float32)


def _bounds(tensor: TensorInfo) -> tuple[int, int, Any] | None:
    match = _BITS.fullmatch(tensor.dtype)
    if match is None or tensor.quantization is None or tensor.quantization.scale is None:
        return None
    bits = int(match["bits"])
    if match["sign"] == "U":
        return 0, (1 << bits) - 1, np.dtype(f"uint{bits}")
    return -(1 << bits - 1), (1 << bits - 1) - 1, np.dtype(f"int{bits}")


def _scale(tensor: TensorInfo) -> tuple[float, int]:
    quantization = tensor.quantization
    if quantization is None or not quantization.scale:
        raise UsageError(f"{tensor.name} is {tensor.dtype} without one scale for the whole tensor")
    return quantization.scale, quantization.offset or 0


def _plain(name: str) -> str:
    """Converters turn what is no identifier into underscores and may put one in front."""
    return re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_")
