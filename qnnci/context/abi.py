"""Memory layout of what libQnnSystem returns (LP64 Linux), and its enums as data.

Offsets are those of the public QNN headers 2.43 (system API 1.7), proven against binaries of QAIRT 2.51. Every
C union of versions is laid out here as its longest member, for the versions share their beginnings.
"""

from __future__ import annotations

import ctypes

U8, U32, U64, F32, I32 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_float, ctypes.c_int32
POINTER = ctypes.c_void_p

BACKEND_HTP = 6


class Version(ctypes.Structure):
    _fields_ = (("major", U32), ("minor", U32), ("patch", U32))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class Functions(ctypes.Structure):
    """The first four of the function table: the only ones that all SDK versions agree on."""

    _fields_ = (
        ("create", POINTER),
        ("get_binary_info", POINTER),
        ("get_metadata", POINTER),
        ("free", POINTER),
    )


class Interface(ctypes.Structure):
    _fields_ = (
        ("backend_id", U32),
        ("provider_name", POINTER),
        ("system_api", Version),
        ("functions", Functions),
    )


class BinaryV1(ctypes.Structure):
    """Body of binary-info versions 1 and 2; `platform` is there in version 2 only."""

    _fields_ = (
        ("backend_id", U32),
        ("build_id", POINTER),
        ("core_api", Version),
        ("backend_api", Version),
        ("soc_version", POINTER),
        ("hw_info_version", Version),
        ("blob_version", Version),
        ("hw_info_size", U32),
        ("hw_info", POINTER),
        ("blob_size", U64),
        ("num_context_tensors", U32),
        ("context_tensors", POINTER),
        ("num_graphs", U32),
        ("graphs", POINTER),
        ("platform", POINTER),
    )


class BinaryV3(ctypes.Structure):
    """Body of binary-info version 3."""

    _fields_ = (
        ("backend_id", U32),
        ("build_id", POINTER),
        ("core_api", Version),
        ("backend_api", Version),
        ("soc_version", POINTER),
        ("blob_version", Version),
        ("blob_size", U64),
        ("num_context_tensors", U32),
        ("context_tensors", POINTER),
        ("num_graphs", U32),
        ("graphs", POINTER),
        ("platform", POINTER),
        ("metadata_size", U32),
        ("metadata", POINTER),
        ("soc_model", U32),
    )


class _BinaryBody(ctypes.Union):
    _fields_ = (("v1", BinaryV1), ("v3", BinaryV3))


class BinaryInfo(ctypes.Structure):
    _fields_ = (("version", U32), ("body", _BinaryBody))


class GraphBody(ctypes.Structure):
    """Version 1 ends before the updateable tensors, version 2 before the blob."""

    _fields_ = (
        ("name", POINTER),
        ("num_inputs", U32),
        ("inputs", POINTER),
        ("num_outputs", U32),
        ("outputs", POINTER),
        ("num_updateable", U32),
        ("updateable", POINTER),
        ("blob_size", U32),
        ("blob", POINTER),
        ("start_op", U32),
        ("end_op", U32),
    )


class Graph(ctypes.Structure):
    _fields_ = (("version", U32), ("body", GraphBody))


class ScaleOffset(ctypes.Structure):
    _fields_ = (("scale", F32), ("offset", I32))


class AxisScaleOffset(ctypes.Structure):
    _fields_ = (("axis", I32), ("count", U32), ("values", POINTER))


class BwScaleOffset(ctypes.Structure):
    _fields_ = (("bits", U32), ("scale", F32), ("offset", I32))


class BwAxisScaleOffset(ctypes.Structure):
    _fields_ = (("bits", U32), ("axis", I32), ("count", U32), ("scales", POINTER), ("offsets", POINTER))


class BwFloatBlock(ctypes.Structure):
    _fields_ = (("bits", U32), ("block_size", POINTER), ("values", POINTER))


class BlockwiseExpansion(ctypes.Structure):
    """Begins so; `count` is blocks along the axis, `bits` of a block's scale. Encodings hold a pointer to it."""

    _fields_ = (("axis", I32), ("values", POINTER), ("count", U32), ("bits", U32))


class Encoding(ctypes.Union):
    """Encodings that are not here are arrays of the tensor's size, and only their names are of interest."""

    _fields_ = (
        ("scale_offset", ScaleOffset),
        ("axis_scale_offset", AxisScaleOffset),
        ("bw_scale_offset", BwScaleOffset),
        ("bw_axis_scale_offset", BwAxisScaleOffset),
        ("bw_float_block", BwFloatBlock),
        ("pointer", POINTER),
    )


class QuantizeParams(ctypes.Structure):
    _fields_ = (("definition", U32), ("encoding", U32), ("values", Encoding))


class _ClientBuffer(ctypes.Structure):
    _fields_ = (("data", POINTER), ("size", U32))


class TensorBody(ctypes.Structure):
    """Version 1 ends before `dynamic`."""

    _fields_ = (
        ("id", U32),
        ("name", POINTER),
        ("kind", U32),
        ("data_format", U32),
        ("data_type", U32),
        ("quantization", QuantizeParams),
        ("rank", U32),
        ("dimensions", POINTER),
        ("memory", U32),
        ("buffer", _ClientBuffer),
        ("dynamic", POINTER),
        ("sparse", U32 * 3),
        ("produced", U8),
    )


class Tensor(ctypes.Structure):
    _fields_ = (("version", U32), ("body", TensorBody))


class HwBlob(ctypes.Structure):
    """One for each graph in `hw_info` of HTP binaries of versions 1 and 2."""

    _fields_ = (("version", U32), ("_union", U32), ("graph", U32), ("spill_fill", U64))


class GraphBlobV1(ctypes.Structure):
    """First block of an HTP graph's blob. `vtcm` is in MB in older binaries and in bytes in newer ones."""

    _fields_ = (
        ("version", U32),
        ("spill_fill", U64),
        ("vtcm", U32),
        ("optimization", U32),
        ("dlbc", U8),
        ("hvx_threads", U64),
    )


class GraphBlobV2(ctypes.Structure):
    """Second block of an HTP graph's blob; sizes in bytes."""

    _fields_ = (
        ("version", U32),
        ("k_channel", U64),
        ("v_channel", U64),
        ("safe_share_io", U32),
        ("io", U64),
        ("op_data", U64),
        ("const", U64),
        ("ddr_tensor", U64),
        ("shared_weights", U64),
    )


class ContextBlob(ctypes.Structure):
    """Context metadata of HTP binaries of version 3."""

    _fields_ = (("version", U32), ("dsp_arch", U32))


DEFINED = 1  # of QuantizeParams.definition; anything else means that the tensor has no encoding

ENCODINGS = {
    0: "SCALE_OFFSET",
    1: "AXIS_SCALE_OFFSET",
    2: "BW_SCALE_OFFSET",
    3: "BW_AXIS_SCALE_OFFSET",
    4: "BLOCK",
    5: "BLOCKWISE_EXPANSION",
    6: "VECTOR",
    7: "FLOAT_BLOCK",
    8: "BW_AXIS_SCALE_OFFSET_MAPPED",
    9: "BW_BLOCK_MAPPED",
    10: "BW_BLOCKWISE_EXPANSION_MAPPED",
    11: "BW_FLOAT_BLOCK",
    12: "MICROSCALING",
}

KINDS = {
    0: "APP_WRITE",
    1: "APP_READ",
    2: "APP_READWRITE",
    3: "NATIVE",
    4: "STATIC",
    5: "NULL",
    6: "UPDATEABLE_STATIC",
    7: "UPDATEABLE_NATIVE",
    8: "UPDATEABLE_APP_WRITE",
    9: "UPDATEABLE_APP_READ",
    10: "UPDATEABLE_APP_READWRITE",
    11: "OPTIONAL_APP_WRITE",
    12: "OPTIONAL_APP_READ",
    13: "OPTIONAL_APP_READWRITE",
}

DATA_FORMATS = {
    0: "DENSE",
    1: "SPARSE",
    2: "CODEBOOK",
    3: "MX",
    4: "UBWC_RGBA8888",
    5: "UBWC_NV12",
    6: "UBWC_NV12_Y",
    7: "UBWC_NV12_UV",
    8: "HMX_WEIGHT_LAYOUT",
}

DATA_TYPES = {
    0x0008: "INT_8",
    0x0016: "INT_16",
    0x0032: "INT_32",
    0x0064: "INT_64",
    0x0108: "UINT_8",
    0x0116: "UINT_16",
    0x0132: "UINT_32",
    0x0164: "UINT_64",
    0x0216: "FLOAT_16",
    0x0226: "BFLOAT_16",
    0x0232: "FLOAT_32",
    0x0264: "FLOAT_64",
    0x0304: "SFIXED_POINT_4",
    0x0308: "SFIXED_POINT_8",
    0x0316: "SFIXED_POINT_16",
    0x0332: "SFIXED_POINT_32",
    0x0404: "UFIXED_POINT_4",
    0x0408: "UFIXED_POINT_8",
    0x0416: "UFIXED_POINT_16",
    0x0432: "UFIXED_POINT_32",
    0x0508: "BOOL_8",
    0x0608: "STRING",
}


def name_of(names: dict[int, str], value: int) -> str:
    """The enum's own word, or the number where a newer SDK has words that this table lacks."""
    return names.get(value, f"0x{value:x}")
