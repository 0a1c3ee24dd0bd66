"""The layouts against the sizes and offsets that g++ gives for the public headers on x86_64."""

from __future__ import annotations

import ctypes

import pytest

from qnnci.context import abi


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        (abi.BinaryInfo, 144),
        (abi.BinaryV1, 136),
        (abi.BinaryV3, 136),
        (abi.Graph, 88),
        (abi.Tensor, 144),
        (abi.QuantizeParams, 40),
        (abi.HwBlob, 24),
        (abi.GraphBlobV1, 40),
        (abi.GraphBlobV2, 72),
        (abi.ContextBlob, 8),
    ],
)
def test_sizes(structure: type[ctypes.Structure], size: int) -> None:
    assert ctypes.sizeof(structure) == size


@pytest.mark.parametrize(
    ("structure", "field", "offset"),
    [
        (abi.Interface, "system_api", 16),
        (abi.Interface, "functions", 32),
        (abi.BinaryInfo, "body", 8),
        (abi.BinaryV1, "soc_version", 40),
        (abi.BinaryV1, "blob_version", 60),
        (abi.BinaryV1, "hw_info", 80),
        (abi.BinaryV1, "blob_size", 88),
        (abi.BinaryV1, "context_tensors", 104),
        (abi.BinaryV1, "graphs", 120),
        (abi.BinaryV3, "blob_version", 48),
        (abi.BinaryV3, "blob_size", 64),
        (abi.BinaryV3, "graphs", 96),
        (abi.BinaryV3, "metadata", 120),
        (abi.BinaryV3, "soc_model", 128),
        (abi.Graph, "body", 8),
        (abi.GraphBody, "outputs", 32),
        (abi.GraphBody, "updateable", 48),
        (abi.GraphBody, "blob", 64),
        (abi.Tensor, "body", 8),
        (abi.TensorBody, "data_type", 24),
        (abi.TensorBody, "quantization", 32),
        (abi.TensorBody, "rank", 72),
        (abi.TensorBody, "dimensions", 80),
        (abi.TensorBody, "dynamic", 112),
        (abi.TensorBody, "produced", 132),
        (abi.QuantizeParams, "values", 8),
        (abi.BwAxisScaleOffset, "scales", 16),
        (abi.BwAxisScaleOffset, "offsets", 24),
        (abi.HwBlob, "graph", 8),
        (abi.HwBlob, "spill_fill", 16),
        (abi.GraphBlobV1, "vtcm", 16),
        (abi.GraphBlobV1, "hvx_threads", 32),
        (abi.GraphBlobV2, "io", 32),
        (abi.GraphBlobV2, "shared_weights", 64),
    ],
)
def test_offsets(structure: type[ctypes.Structure], field: str, offset: int) -> None:
    assert getattr(structure, field).offset == offset


def test_unknown_enum_values_keep_their_number() -> None:
    assert abi.name_of(abi.DATA_TYPES, 0x416) == "UFIXED_POINT_16"
    assert abi.name_of(abi.DATA_TYPES, 0x999) == "0x999"
