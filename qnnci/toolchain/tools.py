"""The SDK's tools as command lines. Pure: typed options in, argv out; flags as the fact of each SDK version.

Sources: the SDK's own argparse sources (2.25), its documentation (2.35) and scripts that use it (2.40 to 2.50).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

HOST: Final = "x86_64-linux-clang"
ANDROID: Final = "aarch64-android"
# Android 15 loads libraries from 16 KB pages only on devices that have these.
PAGE_FLAG: Final = "-Wl,-z,max-page-size=16384"
Target = Literal["x86_64-linux-clang", "aarch64-android"]

# qairt-converter and qairt-quantizer renamed flags: new spelling from this SDK on.
RENAMED_FROM = (2, 35)

# What is used of each tool, in the new spelling: `qnnci sdk doctor` holds it against the tool's own --help.
USED_FLAGS: dict[str, frozenset[str]] = {
    "qnn-onnx-converter": frozenset({
        "--input_network", "--output_path", "--out_node", "--input_dtype", "--input_layout", "--input_list",
        "--use_native_input_files", "--act_bitwidth", "--weights_bitwidth", "--bias_bitwidth", "--float_bitwidth",
        "--quantization_overrides", "--float_fallback", "--use_per_channel_quantization",
    }),
    "qnn-model-lib-generator": frozenset({"-c", "-b", "-t", "-l", "-o"}),
    "qairt-converter": frozenset({
        "--input_network", "--output_path", "--quantization_overrides", "--out_tensor_node",
        "--source_model_input_layout", "--float_bitwidth",
    }),
    "qairt-quantizer": frozenset({
        "--input_dlc", "--output_dlc", "--input_list", "--act_bitwidth", "--weights_bitwidth", "--bias_bitwidth",
        "--use_native_input_files", "--use_per_channel_quantization", "--enable_float_fallback",
    }),
    "qnn-context-binary-generator": frozenset({
        "--model", "--backend", "--binary_file", "--output_dir", "--config_file", "--dlc_path", "--log_level",
    }),
}  # fmt: skip
# (tool, new spelling) → spelling before RENAMED_FROM.
OLD_SPELLING = {
    ("qairt-quantizer", "--enable_float_fallback"): "--float_fallback",
}
# The converters' other spellings of these.
_ALIASES = {
    "qnn-onnx-converter": frozenset({
        "-i", "-o", "-l", "--out_name", "--act_bw", "--weight_bw", "--bias_bw", "--float_bw", "--use_native_dtype",
    }),
    "qairt-converter": frozenset({"-i", "-o", "-l", "-q", "--out_tensor_name"}),
}  # fmt: skip
CONVERTERS = {"model-lib": "qnn-onnx-converter", "dlc": "qairt-converter"}  # by route


def own_flag(tool: str, word: str) -> bool:
    """Whether an argument, in full or cut short as argparse takes it, is a flag of a converter that we set."""
    flag, used = word.partition("=")[0], USED_FLAGS[tool] | _ALIASES[tool]
    return flag in used or (len(flag) > len("--") and flag[:2] == "--" and any(each.startswith(flag) for each in used))


@dataclass(frozen=True, slots=True)
class Command:
    """One call of a tool; `makes` must be there afterwards."""

    tool: str
    arguments: tuple[str, ...]
    makes: tuple[Path, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a graph's conversion says, in the tools' own words. Bit widths are None where the tool's default holds."""

    act_bitwidth: int | None = None
    weights_bitwidth: int | None = None
    bias_bitwidth: int | None = None
    float_bitwidth: int | None = None
    input_list: Path | None = None
    native_inputs: bool = True
    out_nodes: tuple[str, ...] = ()
    input_dtypes: Mapping[str, str] = field(default_factory=dict)
    input_layouts: Mapping[str, str] = field(default_factory=dict)
    overrides: Path | None = None
    float_fallback: bool = False
    per_channel: bool = False
    extra: tuple[str, ...] = ()

    @property
    def quantized(self) -> bool:
        """Without calibration inputs or encodings the tools make a float graph, whatever widths are given."""
        return self.input_list is not None or self.overrides is not None


def graph_symbol(name: str) -> str:
    """The graph's name inside what the converter writes: odd characters and a leading digit become underscores."""
    symbol = re.sub(r"\W", "_", name, flags=re.ASCII)
    return symbol if symbol[:1].isalpha() or symbol[:1] == "_" else f"_{symbol}"


def onnx_converter(model: Path, cpp: Path, options: Conversion) -> Command:
    """qnn-onnx-converter: `cpp` must end in .cpp, since the library generator refuses all else."""
    arguments = ["--input_network", str(model), "--output_path", str(cpp)]
    for name in options.out_nodes:
        arguments += ["--out_node", name]
    for name, dtype in options.input_dtypes.items():
        arguments += ["--input_dtype", name, dtype]
    for name, layout in options.input_layouts.items():
        arguments += ["--input_layout", name, layout]
    arguments += _widths(options, ("act", "weights", "bias", "float"))
    if options.input_list is not None:
        arguments += ["--input_list", str(options.input_list)]
        arguments += ["--use_native_input_files"] if options.native_inputs else []
    if options.overrides is not None:
        arguments += ["--quantization_overrides", str(options.overrides)]
    # The converter takes one or the other; with a list, ops without encodings are calibrated.
    arguments += ["--float_fallback"] if options.float_fallback and options.input_list is None else []
    arguments += ["--use_per_channel_quantization"] if options.per_channel else []
    return Command("qnn-onnx-converter", (*arguments, *options.extra), (cpp,))


def model_library(cpp: Path, weights: Path | None, folder: Path, target: Target) -> Command:
    """qnn-model-lib-generator for one target; a graph without weights has no .bin."""
    arguments = ["-c", str(cpp), *(["-b", str(weights)] if weights else []), "-o", str(folder), "-t", target]
    arguments += ["-l", cpp.stem]
    # The tool has no option for it, but ndk-build is GNU make, which takes variables from here over any makefile's.
    environment = {"MAKEFLAGS": f"APP_LDFLAGS={PAGE_FLAG}"} if target == ANDROID else {}
    made = (library_path(folder, cpp.stem, target),)
    return Command("qnn-model-lib-generator", tuple(arguments), made, environment)


def library_path(folder: Path, name: str, target: Target) -> Path:
    return folder / target / f"lib{name}.so"


def dlc_converter(model: Path, dlc: Path, options: Conversion, version: tuple[int, ...]) -> Command:
    """qairt-converter: makes a float DLC; encodings come in here, calibration in the quantizer."""
    arguments = ["--input_network", str(model), "--output_path", str(dlc)]
    for name in options.out_nodes:
        arguments += ["--out_tensor_node", name]
    for name, layout in options.input_layouts.items():
        arguments += ["--source_model_input_layout", name, layout]
    arguments += _widths(options, ("float",))
    if options.overrides is not None:
        arguments += ["--quantization_overrides", str(options.overrides)]
    return Command("qairt-converter", (*_spelled("qairt-converter", arguments, version), *options.extra), (dlc,))


def dlc_quantizer(dlc: Path, quantized: Path, options: Conversion, version: tuple[int, ...]) -> Command:
    """qairt-quantizer: without float fallback unless the project asks for it."""
    arguments = ["--input_dlc", str(dlc), "--output_dlc", str(quantized)]
    if options.input_list is not None:
        arguments += ["--input_list", str(options.input_list)]
        arguments += ["--use_native_input_files"] if options.native_inputs else []
    arguments += _widths(options, ("act", "weights", "bias"))
    arguments += ["--use_per_channel_quantization"] if options.per_channel else []
    arguments += ["--enable_float_fallback"] if options.float_fallback else []
    return Command("qairt-quantizer", tuple(_spelled("qairt-quantizer", arguments, version)), (quantized,))


def context_generator(model: Path, dlc: Path | None, backend: Path, binary: Path, config: Path) -> Command:
    """qnn-context-binary-generator. The tool appends .bin to a base name, so it gets the name without it."""
    arguments = ["--model", str(model), *(["--dlc_path", str(dlc)] if dlc else []), "--backend", str(backend)]
    arguments += ["--output_dir", str(binary.parent), "--binary_file", binary.name.removesuffix(".bin")]
    arguments += ["--config_file", str(config), "--log_level", "info"]
    return Command("qnn-context-binary-generator", tuple(arguments), (binary,))


def _widths(options: Conversion, kinds: tuple[str, ...]) -> Iterator[str]:
    for kind in kinds:
        width: int | None = getattr(options, f"{kind}_bitwidth")
        if width is not None:
            yield f"--{kind}_bitwidth"
            yield str(width)


def _spelled(tool: str, arguments: list[str], version: tuple[int, ...]) -> list[str]:
    if version >= RENAMED_FROM:
        return arguments
    return [OLD_SPELLING.get((tool, argument), argument) for argument in arguments]


def used_flags(tool: str, version: tuple[int, ...]) -> tuple[str, ...]:
    """The flags of a tool that we use, as this SDK version spells them."""
    return tuple(_spelled(tool, sorted(USED_FLAGS[tool]), version))
