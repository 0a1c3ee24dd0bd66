"""From libQnnSystem's structures in memory to plain data. Everything is copied; no count is believed unchecked."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, TypeVar

from qnnci.context import abi
from qnnci.context.info import ContextInfo, GraphInfo, Quantization, TensorInfo
from qnnci.errors import UsageError

_MAX_RANK = 32  # HTP has 5; a garbage rank is in the millions
_MAX_MB = 65536  # VTCM sizes below it are in MB (older SDKs), above in bytes
# Two graphs of version 1 lie 48 bytes apart in memory of the oldest SDKs, whose union had nothing longer.
_V1, _V2, _V3 = 1, 2, 3
_GRAPH_STRIDES = {_V1: (48, 64, 88), _V2: (64, 88), _V3: (88,)}

_S = TypeVar("_S", bound=ctypes.Structure)


def walk(info: abi.BinaryInfo, file_size: int) -> ContextInfo:
    """Copy everything out of a binary info that libQnnSystem returned for a file of `file_size` bytes.

    Raises:
        UsageError: counts, versions or pointers that cannot be.

    """
    if info.version in (_V1, _V2):
        return _Walk(file_size).old(info.version, info.body.v1)
    if info.version == _V3:
        return _Walk(file_size).new(info.body.v3)
    raise UsageError(
        f"its information is of version {info.version}; qnnci knows versions 1 to 3",
        hint="update qnnci, or set QNN_SDK_ROOT to an older SDK",
    )


class _Walk:
    """Holds the one bound that all counts share: nothing can be more numerous than the file's own bytes."""

    def __init__(self, file_size: int) -> None:
        self._most = file_size

    def old(self, version: int, body: abi.BinaryV1) -> ContextInfo:
        htp = body.backend_id == abi.BACKEND_HTP
        spill = self._hw_blobs(body) if htp else {}
        return ContextInfo(
            info_version=version,
            soc_id=None,
            dsp_arch=None,
            graphs=self._graphs(body, spill, htp=htp),
            **self._common(body),
        )

    def new(self, body: abi.BinaryV3) -> ContextInfo:
        htp = body.backend_id == abi.BACKEND_HTP
        arch = None
        if htp and body.metadata and body.metadata_size >= ctypes.sizeof(abi.ContextBlob):
            blob = abi.ContextBlob.from_address(body.metadata)
            arch = blob.dsp_arch if blob.version == _V1 else None
        return ContextInfo(
            info_version=_V3,
            soc_id=body.soc_model,
            dsp_arch=arch,
            graphs=self._graphs(body, {}, htp=htp),
            **self._common(body),
        )

    def _common(self, body: Any) -> dict[str, Any]:
        return {
            "build_id": _text(body.build_id),
            "backend_id": body.backend_id,
            "core_api": str(body.core_api),
            "backend_api": str(body.backend_api),
            "blob_version": str(body.blob_version),
            "blob_bytes": body.blob_size,
            "tensors": self._tensors(body.context_tensors, body.num_context_tensors),
        }

    def _hw_blobs(self, body: abi.BinaryV1) -> dict[int, int]:
        """Spill-fill bytes by the graph's index."""
        if not body.hw_info:
            return {}
        count = self._bounded(body.hw_info_size, "bytes of hardware info") // ctypes.sizeof(abi.HwBlob)
        blobs = _array(abi.HwBlob, body.hw_info, count)
        return {blob.graph: blob.spill_fill for blob in blobs if blob.version == _V1}

    def _graphs(self, body: Any, spill: dict[int, int], *, htp: bool) -> tuple[GraphInfo, ...]:
        count = self._bounded(body.num_graphs, "graphs", body.graphs)
        if not count:
            raise UsageError("it holds no graph")
        stride = _graph_stride(body.graphs, count)
        return tuple(
            self._graph(abi.Graph.from_address(body.graphs + i * stride), spill.get(i), htp=htp) for i in range(count)
        )

    def _graph(self, graph: abi.Graph, spill: int | None, *, htp: bool) -> GraphInfo:
        if graph.version not in _GRAPH_STRIDES:
            raise UsageError(f"it holds a graph of version {graph.version}; qnnci knows versions 1 to 3")
        body = graph.body
        known: dict[str, Any] = {"spill_fill_bytes": spill}
        # What lies behind the end of an older version is not ours to read.
        if graph.version >= _V2:
            known["updateable"] = self._tensors(body.updateable, body.num_updateable)
        if graph.version >= _V3 and htp and body.blob:
            known |= _graph_blob(body.blob, self._bounded(body.blob_size, "bytes of graph info"))
        return GraphInfo(
            name=_text(body.name),
            inputs=self._tensors(body.inputs, body.num_inputs),
            outputs=self._tensors(body.outputs, body.num_outputs),
            **known,
        )

    def _tensors(self, address: int | None, count: int) -> tuple[TensorInfo, ...]:
        count = self._bounded(count, "tensors", address)
        return tuple(_tensor(tensor) for tensor in _array(abi.Tensor, address, count))

    def _bounded(self, count: int, what: str, address: int | None = 1) -> int:
        if count > self._most or (count and not address):
            raise UsageError(f"it announces {count} {what}, which a file of {self._most} bytes cannot hold")
        return count


def _graph_stride(address: int, count: int) -> int:
    """Distance in bytes between two graphs of an array, which the SDK's age decides."""
    version = abi.U32.from_address(address).value
    strides = _GRAPH_STRIDES.get(version, (ctypes.sizeof(abi.Graph),))
    if count == 1:
        return strides[-1]
    # A graph begins with its version: the first distance at which that stands again is it.
    return next((s for s in strides if abi.U32.from_address(address + s).value == version), strides[-1])


def _graph_blob(address: int, size: int) -> dict[str, Any]:
    """What the blocks of an HTP graph's blob say; a block of unknown version ends the reading."""
    known: dict[str, Any] = {}
    while size >= ctypes.sizeof(abi.U32):
        version = abi.U32.from_address(address).value
        if version == _V1 and size >= ctypes.sizeof(abi.GraphBlobV1):
            first = abi.GraphBlobV1.from_address(address)
            known |= {
                "spill_fill_bytes": first.spill_fill,
                "vtcm_bytes": first.vtcm << 20 if first.vtcm < _MAX_MB else first.vtcm,
                "optimization": first.optimization,
                "hvx_threads": first.hvx_threads or None,
                "dlbc": bool(first.dlbc),
            }
            step = ctypes.sizeof(first)
        elif version == _V2 and size >= ctypes.sizeof(abi.GraphBlobV2):
            second = abi.GraphBlobV2.from_address(address)
            known |= {
                "io_bytes": second.io,
                "op_data_bytes": second.op_data,
                "const_bytes": second.const,
                "ddr_tensor_bytes": second.ddr_tensor,
                "shared_weights_bytes": second.shared_weights,
                "safe_share_io": bool(second.safe_share_io),
            }
            step = ctypes.sizeof(second)
        else:
            break
        address, size = address + step, size - step
    return known


def _tensor(tensor: abi.Tensor) -> TensorInfo:
    if tensor.version not in (_V1, _V2):
        raise UsageError(f"it holds a tensor of version {tensor.version}; qnnci knows versions 1 and 2")
    body = tensor.body
    rank = body.rank
    if rank > _MAX_RANK or (rank and not body.dimensions):
        raise UsageError(f"its tensor {_text(body.name)!r} has rank {rank}, which cannot be")
    dynamic = body.dynamic if tensor.version >= _V2 else None
    return TensorInfo(
        name=_text(body.name),
        dtype=abi.name_of(abi.DATA_TYPES, body.data_type),
        shape=tuple((abi.U32 * rank).from_address(body.dimensions)) if rank else (),
        quantization=_quantization(body.quantization),
        kind=abi.name_of(abi.KINDS, body.kind),
        data_format=abi.name_of(abi.DATA_FORMATS, body.data_format),
        dynamic=tuple(i for i, on in enumerate((abi.U8 * rank).from_address(dynamic)) if on) if dynamic else (),
    )


def _quantization(params: abi.QuantizeParams) -> Quantization | None:
    """Scales of whole tensors in full, of axes and blocks by their number only; None where there is no encoding."""
    if params.definition != abi.DEFINED:
        return None
    name = abi.name_of(abi.ENCODINGS, params.encoding)
    return Quantization(name, **_encoding(name, params.values))


def _encoding(name: str, values: abi.Encoding) -> dict[str, Any]:
    known: Any
    if name == "SCALE_OFFSET":
        known = values.scale_offset
    elif name == "BW_SCALE_OFFSET":
        known = values.bw_scale_offset
    elif name == "AXIS_SCALE_OFFSET":
        known = values.axis_scale_offset
    elif name == "BW_AXIS_SCALE_OFFSET":
        known = values.bw_axis_scale_offset
    elif name == "BW_FLOAT_BLOCK":
        known = values.bw_float_block
    elif name == "BLOCKWISE_EXPANSION" and values.pointer:
        known = abi.BlockwiseExpansion.from_address(values.pointer)
    else:
        return {}
    names = ("scale", "offset", "bits", "axis", "count")
    return {field: getattr(known, field) for field in names if hasattr(known, field)}


def _array(kind: type[_S], address: int | None, count: int) -> Iterator[_S]:
    size = ctypes.sizeof(kind)
    return (kind.from_address(address + i * size) for i in range(count)) if address else iter(())


def _text(address: int | None) -> str:
    return ctypes.string_at(address).decode("utf-8", "replace") if address else ""
