"""Command lines of the SDK's tools: what is said, in which spelling, and nothing that a tool would misread."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnnci.toolchain import tools
from qnnci.toolchain.tools import Conversion

NEW, OLD = (2, 40, 0, 251030), (2, 25, 0, 240728)
FULL = Conversion(
    act_bitwidth=16,
    weights_bitwidth=8,
    bias_bitwidth=32,
    float_bitwidth=16,
    input_list=Path("/l.txt"),
    out_nodes=("logits",),
    input_dtypes={"x": "float32"},
    input_layouts={"x": "NTF"},
    overrides=Path("/o.json"),
    per_channel=True,
    extra=("--no_simplification",),
)


def test_the_converter_is_told_everything_in_its_own_words():
    command = tools.onnx_converter(Path("m.onnx"), Path("d/m.cpp"), FULL)
    said = (
        "--input_network m.onnx --output_path d/m.cpp --out_node logits --input_dtype x float32 --input_layout x NTF "
    )
    said += "--act_bitwidth 16 --weights_bitwidth 8 --bias_bitwidth 32 --float_bitwidth 16 "
    said += "--input_list /l.txt --use_native_input_files --quantization_overrides /o.json "
    said += "--use_per_channel_quantization --no_simplification"
    assert " ".join(command.arguments) == said


def test_float_fallback_and_a_list_are_never_said_together():
    both = Conversion(float_fallback=True, input_list=Path("l"))
    assert "--float_fallback" not in tools.onnx_converter(Path("m"), Path("m.cpp"), both).arguments
    alone = Conversion(float_fallback=True, overrides=Path("o"))
    assert "--float_fallback" in tools.onnx_converter(Path("m"), Path("m.cpp"), alone).arguments


@pytest.mark.parametrize(
    ("version", "spelling"), [(NEW, "--enable_float_fallback"), (OLD, "--float_fallback")], ids=["2.40", "2.25"]
)
def test_the_quantizer_is_spoken_to_in_the_words_of_its_version(version, spelling):
    options = Conversion(overrides=Path("o"), float_fallback=True)
    arguments = tools.dlc_quantizer(Path("a.dlc"), Path("b.dlc"), options, version).arguments
    assert spelling in arguments
    plain = Conversion(overrides=Path("o"))
    assert spelling not in tools.dlc_quantizer(Path("a.dlc"), Path("b.dlc"), plain, version).arguments


def test_the_generator_gets_a_base_name():
    command = tools.context_generator(Path("lib.so"), None, Path("htp.so"), Path("out/g.bin"), Path("c.json"))
    assert command.arguments[command.arguments.index("--binary_file") + 1] == "g"
    assert command.makes == (Path("out/g.bin"),)


def test_only_the_android_library_asks_for_large_pages():
    android = tools.model_library(Path("m.cpp"), Path("m.bin"), Path("o"), "aarch64-android")
    host = tools.model_library(Path("m.cpp"), None, Path("o"), "x86_64-linux-clang")
    assert android.environment == {"MAKEFLAGS": "APP_LDFLAGS=-Wl,-z,max-page-size=16384"}
    assert host.environment == {}
    assert "-b" not in host.arguments
    assert android.makes == (Path("o/aarch64-android/libm.so"),)


@pytest.mark.parametrize("version", [NEW, OLD], ids=["2.40", "2.25"])
def test_every_flag_that_is_said_is_one_that_doctor_asks_for(version):
    commands = [
        tools.onnx_converter(Path("m"), Path("m.cpp"), FULL),
        tools.onnx_converter(Path("m"), Path("m.cpp"), Conversion(float_fallback=True, overrides=Path("o"))),
        tools.model_library(Path("m.cpp"), Path("m.bin"), Path("o"), "aarch64-android"),
        tools.dlc_converter(Path("m"), Path("m.dlc"), FULL, version),
        tools.dlc_quantizer(Path("m"), Path("q.dlc"), Conversion(float_fallback=True), version),
        tools.dlc_quantizer(Path("m"), Path("q.dlc"), FULL, version),
        tools.context_generator(Path("m"), Path("q.dlc"), Path("b"), Path("g.bin"), Path("c")),
    ]
    own = {"--no_simplification"}  # the user's
    for command in commands:
        said = {argument for argument in command.arguments if argument.startswith("-")} - own
        assert said <= set(tools.used_flags(command.tool, version))


@pytest.mark.parametrize(
    ("name", "symbol"), [("encoder", "encoder"), ("tiny.en-enc", "tiny_en_enc"), ("5s", "_5s"), ("ä", "_")]
)
def test_the_graphs_name_inside(name, symbol):
    assert tools.graph_symbol(name) == symbol


@given(st.text(min_size=1))
def test_a_symbol_is_always_an_identifier(name):
    assert tools.graph_symbol(name).isidentifier()
    assert tools.graph_symbol(name).isascii()
