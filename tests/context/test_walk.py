"""Binary infos of all versions, built in memory as an SDK of that age would return them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from qnnci.context import abi
from qnnci.context.info import ContextInfo, Quantization
from qnnci.context.walk import walk
from qnnci.errors import UsageError

FILE_SIZE = 4096


class Memory:
    """Builds C structures and keeps alive what they point at."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def at(self, thing: Any) -> int:
        self.kept.append(thing)
        return ctypes.addressof(thing)

    def text(self, text: str) -> int:
        return self.at(ctypes.create_string_buffer(text.encode()))

    def array(self, kind: Any, items: list[Any]) -> int:
        return self.at((kind * len(items))(*items))

    def tensor(self, name: str, dims: list[int], dtype: int = 0x232, version: int = 1, **fields: Any) -> abi.Tensor:
        body = {"name": self.text(name), "rank": len(dims), "dimensions": self.array(abi.U32, dims)}
        return abi.Tensor(version=version, body=abi.TensorBody(**{**body, "data_type": dtype, **fields}))

    def tensors(self, side: str, items: list[abi.Tensor]) -> dict[str, int]:
        return {f"num_{side}": len(items), side: self.array(abi.Tensor, items)}

    def graph(self, name: str, version: int, **fields: Any) -> abi.Graph:
        body = {
            **self.tensors("inputs", [self.tensor("x", [1, 3], kind=0)]),
            **self.tensors("outputs", [self.tensor("y", [1], kind=1), self.tensor("z", [], 0x132, kind=1)]),
        }
        return abi.Graph(version=version, body=abi.GraphBody(name=self.text(name), **{**body, **fields}))

    def graphs(self, items: list[abi.Graph], stride: int = 88) -> dict[str, int]:
        raw = b"".join(bytes(graph)[:stride] for graph in items)
        return {"num_graphs": len(items), "graphs": self.at(ctypes.create_string_buffer(raw, len(raw)))}

    def old(self, version: int = 1, **fields: Any) -> abi.BinaryInfo:
        body = {"backend_id": 6, "build_id": self.text("v2.20.0"), "core_api": (2, 13, 0), "blob_size": 77}
        info = abi.BinaryInfo(version=version)
        info.body.v1 = abi.BinaryV1(**{**body, **self.graphs([self.graph("g", 1)]), **fields})
        return info

    def new(self, **fields: Any) -> abi.BinaryInfo:
        body = {"backend_id": 6, "build_id": self.text("v2.51.0"), "soc_model": 43}
        info = abi.BinaryInfo(version=3)
        info.body.v3 = abi.BinaryV3(**{**body, **self.graphs([self.graph("g", 3)]), **fields})
        return info


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.mark.parametrize("version", [1, 2])
def test_versions_1_and_2_in_full(memory: Memory, version: int) -> None:
    blobs = [abi.HwBlob(version=1, graph=1, spill_fill=4096), abi.HwBlob(version=1, graph=0, spill_fill=0)]
    info = walk(
        memory.old(
            version,
            backend_api=(5, 13, 1),
            blob_version=(3, 1, 2),
            hw_info=memory.array(abi.HwBlob, blobs),
            hw_info_size=48,
            **memory.graphs([memory.graph("encoder", version), memory.graph("decoder", version)]),
            **memory.tensors("context_tensors", [memory.tensor("cache", [8])]),
        ),
        FILE_SIZE,
    )
    assert (info.info_version, info.build_id, info.backend_id) == (version, "v2.20.0", 6)
    assert (info.core_api, info.backend_api, info.blob_version) == ("2.13.0", "5.13.1", "3.1.2")
    assert (info.blob_bytes, info.soc_id, info.dsp_arch) == (77, None, None)
    assert [tensor.name for tensor in info.tensors] == ["cache"]
    assert [(graph.name, graph.spill_fill_bytes) for graph in info.graphs] == [
        ("encoder", 0),
        ("decoder", 4096),
    ]
    for graph in info.graphs:
        assert [(t.name, t.dtype, t.shape, t.kind) for t in graph.inputs] == [("x", "FLOAT_32", (1, 3), "APP_WRITE")]
        assert [(t.name, t.dtype, t.shape) for t in graph.outputs] == [
            ("y", "FLOAT_32", (1,)),
            ("z", "UINT_32", ()),
        ]
        assert (graph.vtcm_bytes, graph.optimization, graph.const_bytes) == (None, None, None)


@pytest.mark.parametrize(("version", "stride"), [(1, 48), (1, 64), (1, 88), (2, 64), (2, 88), (3, 88)])
def test_graphs_lie_as_far_apart_as_the_age_of_the_sdk_has_them(memory: Memory, version: int, stride: int) -> None:
    graphs = [memory.graph(name, version) for name in ("one", "two", "three")]
    info = walk(memory.old(**memory.graphs(graphs, stride)), FILE_SIZE)
    assert [graph.name for graph in info.graphs] == ["one", "two", "three"]
    assert [len(graph.outputs) for graph in info.graphs] == [2, 2, 2]


def test_what_lies_behind_an_older_graph_is_not_read(memory: Memory) -> None:
    garbage = {"num_updateable": 0xFFFFFFFF, "updateable": 1, "blob_size": 0xFFFFFFFF, "blob": 1}
    assert walk(memory.old(**memory.graphs([memory.graph("g", 1, **garbage)])), FILE_SIZE).graphs[0].name == "g"
    updateable = memory.tensors("updateable", [memory.tensor("lora", [4], kind=6)])
    graph = memory.graph("g", 2, **{**garbage, **updateable})
    [read] = walk(memory.old(2, **memory.graphs([graph])), FILE_SIZE).graphs
    assert [(tensor.name, tensor.kind) for tensor in read.updateable] == [("lora", "UPDATEABLE_STATIC")]


def blob(memory: Memory, *blocks: ctypes.Structure) -> dict[str, int]:
    raw = b"".join(bytes(block) for block in blocks)
    return {"blob": memory.at(ctypes.create_string_buffer(raw, len(raw))), "blob_size": len(raw)}


@pytest.mark.parametrize(("stored", "bytes_"), [(8 << 20, 8 << 20), (8, 8 << 20), (4, 4 << 20), (0, 0), (65536, 65536)])
def test_vtcm_is_in_bytes_whatever_the_sdk_stored(memory: Memory, stored: int, bytes_: int) -> None:
    first = abi.GraphBlobV1(version=1, spill_fill=5, vtcm=stored, optimization=3, dlbc=1, hvx_threads=4)
    [graph] = walk(memory.new(**memory.graphs([memory.graph("g", 3, **blob(memory, first))])), FILE_SIZE).graphs
    assert (graph.vtcm_bytes, graph.spill_fill_bytes, graph.optimization) == (bytes_, 5, 3)
    assert (graph.dlbc, graph.hvx_threads, graph.const_bytes) == (True, 4, None)


def test_both_blocks_of_a_graph_blob(memory: Memory) -> None:
    second = abi.GraphBlobV2(version=2, io=1, op_data=2, const=3, ddr_tensor=4, shared_weights=5, safe_share_io=1)
    both = blob(memory, abi.GraphBlobV1(version=1, vtcm=8), second)
    assert both["blob_size"] == 112
    metadata = memory.at(abi.ContextBlob(version=1, dsp_arch=73))
    info = walk(
        memory.new(**memory.graphs([memory.graph("g", 3, **both)]), metadata=metadata, metadata_size=8),
        FILE_SIZE,
    )
    [graph] = info.graphs
    assert (graph.io_bytes, graph.op_data_bytes, graph.const_bytes) == (1, 2, 3)
    assert (graph.ddr_tensor_bytes, graph.shared_weights_bytes, graph.safe_share_io) == (4, 5, True)
    assert (graph.vtcm_bytes, graph.hvx_threads) == (8 << 20, None)
    assert (info.soc_id, info.dsp_arch) == (43, 73)


@pytest.mark.parametrize(
    "blocks", [(abi.GraphBlobV1(version=9),), (abi.ContextBlob(version=1),), (abi.ContextBlob(version=2),)]
)
def test_unknown_and_short_blocks_are_left_alone(memory: Memory, blocks: tuple[ctypes.Structure, ...]) -> None:
    [graph] = walk(memory.new(**memory.graphs([memory.graph("g", 3, **blob(memory, *blocks))])), FILE_SIZE).graphs
    assert (graph.spill_fill_bytes, graph.vtcm_bytes, graph.io_bytes) == (None, None, None)


def test_blobs_of_other_backends_are_not_htp_blobs(memory: Memory) -> None:
    graph = memory.graph("g", 3, **blob(memory, abi.GraphBlobV1(version=1, vtcm=8)))
    metadata = memory.at(abi.ContextBlob(version=1, dsp_arch=73))
    gpu = memory.new(backend_id=4, metadata=metadata, metadata_size=8, **memory.graphs([graph]))
    info = walk(gpu, FILE_SIZE)
    assert (info.backend_id, info.dsp_arch, info.graphs[0].vtcm_bytes) == (4, None, None)


def encoding(number: int, **values: Any) -> abi.QuantizeParams:
    return abi.QuantizeParams(definition=1, encoding=number, values=abi.Encoding(**values))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (abi.QuantizeParams(definition=0x7FFFFFFF, encoding=0), None),
        (abi.QuantizeParams(definition=0, encoding=0), None),
        (encoding(0, scale_offset=(0.5, -128)), Quantization("SCALE_OFFSET", scale=0.5, offset=-128)),
        (encoding(1, axis_scale_offset=(1, 64, None)), Quantization("AXIS_SCALE_OFFSET", axis=1, count=64)),
        (
            encoding(2, bw_scale_offset=(4, 0.25, -8)),
            Quantization("BW_SCALE_OFFSET", scale=0.25, offset=-8, bits=4),
        ),
        (
            encoding(3, bw_axis_scale_offset=(4, -1, 32, None, None)),
            Quantization("BW_AXIS_SCALE_OFFSET", bits=4, axis=-1, count=32),
        ),
        (encoding(4, pointer=1), Quantization("BLOCK")),
        (encoding(5, pointer=None), Quantization("BLOCKWISE_EXPANSION")),
        (encoding(6, pointer=1), Quantization("VECTOR")),
        (encoding(7, pointer=1), Quantization("FLOAT_BLOCK")),
        (encoding(9, pointer=1), Quantization("BW_BLOCK_MAPPED")),
        (encoding(11, bw_float_block=(8, None, None)), Quantization("BW_FLOAT_BLOCK", bits=8)),
        (encoding(99, pointer=1), Quantization("0x63")),
    ],
)
def test_quantization(memory: Memory, params: abi.QuantizeParams, expected: Quantization | None) -> None:
    tensor = memory.tensor("q", [2], 0x408, quantization=params)
    [read] = walk(memory.old(**memory.tensors("context_tensors", [tensor])), FILE_SIZE).tensors
    assert (read.dtype, read.quantization) == ("UFIXED_POINT_8", expected)


def test_blockwise_expansion_is_behind_a_pointer(memory: Memory) -> None:
    pointer = memory.at(abi.BlockwiseExpansion(axis=3, count=16, bits=12))
    tensor = memory.tensor("q", [2], quantization=encoding(5, pointer=pointer))
    [read] = walk(memory.old(**memory.tensors("context_tensors", [tensor])), FILE_SIZE).tensors
    assert read.quantization == Quantization("BLOCKWISE_EXPANSION", bits=12, axis=3, count=16)


def test_dynamic_axes_are_known_of_tensors_of_version_2_only(memory: Memory) -> None:
    flags = memory.array(abi.U8, [0, 1, 1])
    new = memory.tensor("new", [1, 2, 3], version=2, dynamic=flags)
    old = memory.tensor("old", [1, 2, 3], version=1, dynamic=1)
    fixed = memory.tensor("fixed", [1], version=2, data_format=1)
    info = walk(memory.old(**memory.tensors("context_tensors", [new, old, fixed])), FILE_SIZE)
    assert [(t.name, t.dynamic, t.data_format) for t in info.tensors] == [
        ("new", (1, 2), "DENSE"),
        ("old", (), "DENSE"),
        ("fixed", (), "SPARSE"),
    ]


def test_names_are_copied_and_need_not_be_utf_8(memory: Memory) -> None:
    name = ctypes.create_string_buffer(b"caf\xff")
    graph = memory.graph("g", 1)
    graph.body.name = memory.at(name)
    info = walk(memory.old(**memory.graphs([graph])), FILE_SIZE)
    ctypes.memset(name, 0x2A, 4)
    assert info.graphs[0].name == "caf\N{REPLACEMENT CHARACTER}"


def test_json_and_back(memory: Memory) -> None:
    quantized = memory.tensor("q", [2], 0x408, version=2, quantization=encoding(0, scale_offset=(0.5, -1)))
    info = walk(memory.new(**memory.tensors("context_tensors", [quantized])), FILE_SIZE)
    assert ContextInfo.from_json(info.to_json()) == info


HUGE = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_graphs": HUGE}, "4294967295 graphs, which a file of 4096 bytes cannot hold"),
        ({"num_graphs": 1, "graphs": None}, "1 graphs"),
        ({"num_graphs": 0}, "no graph"),
        ({"num_context_tensors": HUGE, "context_tensors": 1}, "4294967295 tensors"),
        ({"num_context_tensors": 1, "context_tensors": None}, "1 tensors"),
    ],
)
def test_counts_are_not_believed(memory: Memory, fields: dict[str, int], message: str) -> None:
    for info in (memory.old(**fields), memory.new(**fields)):
        with pytest.raises(UsageError, match=message):
            walk(info, FILE_SIZE)


def test_counts_inside_graphs_and_tensors_are_not_believed(memory: Memory) -> None:
    cases = {
        "4294967295 tensors": memory.graph("g", 3, num_inputs=HUGE),
        "4294967295 bytes of graph info": memory.graph("g", 3, blob_size=HUGE, blob=1),
        "5000 tensors": memory.graph("g", 3, num_updateable=5000, updateable=1),
        "graph of version 7": memory.graph("g", 7),
        "tensor of version 5": memory.graph("g", 3, inputs=memory.array(abi.Tensor, [abi.Tensor(version=5)])),
        "rank 4294967295": memory.graph("g", 3, inputs=memory.array(abi.Tensor, [memory.tensor("x", [1], rank=HUGE)])),
    }
    for message, graph in cases.items():
        with pytest.raises(UsageError, match=message):
            walk(memory.new(**memory.graphs([graph])), FILE_SIZE)
    with pytest.raises(UsageError, match="4294967295 bytes of hardware info"):
        walk(memory.old(hw_info=1, hw_info_size=HUGE), FILE_SIZE)


def test_unknown_version_of_the_info_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="version 4") as error:
        walk(abi.BinaryInfo(version=4), FILE_SIZE)
    assert "update qnnci" in error.value.hint
