"""What a context binary says of itself, as plain data. Filled by `qnnci.context.read`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Quantization:
    """real = (q + offset) * scale. Per-axis and block encodings have their axis and no single scale."""

    encoding: str
    scale: float | None = None
    offset: int | None = None
    bits: int | None = None
    axis: int | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor in QNN's words: `dtype` FLOAT_32, UFIXED_POINT_16, INT_32; `kind` APP_WRITE, APP_READ.

    `dynamic` holds the axes whose size may change at run time.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    quantization: Quantization | None = None
    kind: str = ""
    data_format: str = "DENSE"
    dynamic: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """One graph of a binary. All sizes in bytes; None where this binary's version does not say."""

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    spill_fill_bytes: int | None = None
    vtcm_bytes: int | None = None
    optimization: int | None = None
    hvx_threads: int | None = None
    const_bytes: int | None = None
    op_data_bytes: int | None = None
    io_bytes: int | None = None
    ddr_tensor_bytes: int | None = None
    shared_weights_bytes: int | None = None
    dlbc: bool | None = None
    safe_share_io: bool | None = None
    updateable: tuple[TensorInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """A whole context binary. `soc_id` and `dsp_arch` are None where its version does not carry them."""

    info_version: int
    build_id: str
    backend_id: int
    core_api: str
    backend_api: str
    blob_version: str
    blob_bytes: int
    soc_id: int | None
    dsp_arch: int | None
    graphs: tuple[GraphInfo, ...]
    tensors: tuple[TensorInfo, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ContextInfo:
        graphs = tuple(_graph(graph) for graph in data["graphs"])
        return cls(**{**data, "graphs": graphs, "tensors": _tensors(data["tensors"])})


def _graph(data: dict[str, Any]) -> GraphInfo:
    return GraphInfo(**{**data, **{side: _tensors(data[side]) for side in ("inputs", "outputs", "updateable")}})


def _tensors(data: list[dict[str, Any]]) -> tuple[TensorInfo, ...]:
    return tuple(_tensor(tensor) for tensor in data)


def _tensor(data: dict[str, Any]) -> TensorInfo:
    quantization = Quantization(**data["quantization"]) if data["quantization"] else None
    lists = {"shape": tuple(data["shape"]), "dynamic": tuple(data["dynamic"])}
    return TensorInfo(**{**data, **lists, "quantization": quantization})
