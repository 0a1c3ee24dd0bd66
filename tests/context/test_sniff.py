"""Files that are handed in by mistake, each told by name."""

from __future__ import annotations

import os
import zipfile
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from qnnci.context.sniff import cut_short, refuse_other_files
from qnnci.errors import UsageError

HEADER = bytes.fromhex("00000002 00000003 00000000 00000001")


def refusal(path: Path) -> UsageError:
    with pytest.raises(UsageError) as error:
        refuse_other_files(path)
    assert error.value.where == str(path)
    assert error.value.hint
    return error.value


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (b"", "an empty file", "qnnci build"),
        (b"\x7fELF\x02\x01\x01\x00", "an ELF library", "qnnci build"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
            "Git LFS pointer",
            "git lfs pull",
        ),
        (b"\x1f\x8b\x08\x00", "gzip", "unpack"),
        (b"BZh91AY", "bzip2", "unpack"),
        (b"\n<!DOCTYPE html><p>404</p>\xff", "an HTML page", "download it again"),
        (b'{"graph": "encoder"}\n', "text", ".bin file itself"),
        ("graph: caf\N{LATIN SMALL LETTER E WITH ACUTE}\n".encode(), "text", ".bin file itself"),
        ("\N{GREEK SMALL LETTER PI}".encode() * 40_000, "text", ".bin file itself"),
    ],
)
def test_other_kinds(tmp_path: Path, content: bytes, message: str, hint: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    error = refusal(path)
    assert message in error.message
    assert hint in error.hint


def test_a_dlc(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("htp.cache.sm8550.0", "")
    assert "flexible context binary" in refusal(path).message


def _save(path: Path, nodes: list[onnx.NodeProto]) -> Path:
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:])
    onnx.save(helper.make_model(graph, ir_version=10), str(path))
    return path


def test_an_onnx_model(tmp_path: Path) -> None:
    error = refusal(_save(tmp_path / "model.onnx", [helper.make_node("Relu", ["x"], ["y"])]))
    assert "an ONNX model" in error.message


@pytest.mark.parametrize("embed_mode", [0, 1])
def test_an_epcontext_model_names_the_binary(tmp_path: Path, embed_mode: int) -> None:
    cache = b"vad_fp16_sm8750_v79.bin" if embed_mode == 0 else os.urandom(300)
    node = helper.make_node(
        "EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=embed_mode, ep_cache_context=cache
    )
    error = refusal(_save(tmp_path / "vad_ctx.onnx", [node]))
    assert "EPContext model" in error.message
    beside = tmp_path / "vad_fp16_sm8750_v79.bin"
    assert error.hint == (f"the binary is {beside}" if embed_mode == 0 else "the binary is the .bin beside it")


def test_an_epcontext_model_of_the_compiler_names_the_binary(binaries: Path) -> None:
    assert refusal(binaries / "small_ctx.onnx").hint == f"the binary is {binaries / 'small.bin'}"


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent.bin").message == "no such file"
    assert "a folder" in refusal(tmp_path).message
    assert "cannot be read" in refusal(tmp_path / ("x" * 300)).message
    assert "cannot be read" in refusal(Path("a\0b")).message
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").message == "not a regular file"
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be read" in refusal(tmp_path / "loop").message


def test_what_may_be_a_context_binary_passes(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    for content in (HEADER, b"\x00" * 100, b"\xff\xfe\x00" * 9, b"\x08\x00\x12"):
        path.write_bytes(content)
        assert refuse_other_files(path) == len(content)


def test_cut_short_by_its_own_header(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    whole = HEADER + b"".join(size.to_bytes(8, "little") for size in (200, 4096, 1000))
    for content, told in (
        (HEADER, "16 bytes hold not even the header"),
        (HEADER[:3], "3 bytes hold not even the header"),
        (whole, "it has 40 of 5096 bytes"),
        (whole.ljust(5095, b"\0"), "it has 5095 of 5096 bytes"),
        (whole.ljust(5096, b"\0"), ""),
        (HEADER + b"\xff" * 24, ""),
        (b"\x01" + whole, ""),
    ):
        path.write_bytes(content)
        assert cut_short(path).endswith(told)
        assert bool(cut_short(path)) == bool(told)


@settings(max_examples=150, deadline=None)
@given(
    start=st.sampled_from([b"", HEADER, b"PK\x03\x04", b"\x08\x0a\x12", b"\x08\x0a:EPContextep_cache_context\x22"]),
    rest=st.binary(max_size=60),
)
def test_no_bytes_crash_it(tmp_path_factory: pytest.TempPathFactory, start: bytes, rest: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.bin"
    path.write_bytes(start + rest)
    with suppress(UsageError):
        assert refuse_other_files(path) == len(start + rest)
    assert isinstance(cut_short(path), str)
