"""qnn-onnx-converter: an ONNX graph becomes a C++ file, a tar of its weights and a JSON of its tensors."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from sdk import carry, flags, graph, options, quantise, says
from sdk.failures import Failures
from sdk.kit import Kit

TOOL = "qnn-onnx-converter"


def main(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    given = flags.parser(TOOL, kit.minor, failures.values("forget")).parse_args(arguments)
    flags.settle(given, TOOL, kit.minor)
    output = Path(given.output_path or Path(given.input_network).with_suffix(".cpp"))
    if (end := failures.at_work(output)) is not None:
        return end
    files = (output, output.with_suffix(".bin"), output.with_name(f"{output.stem}_net.json"))
    try:
        _convert(kit, given, arguments, files)
    except Exception as error:  # noqa: BLE001 - the real one catches everything too
        for file in files:
            file.unlink(missing_ok=True)
        return says.encountered(error)
    return failures.at_end(0)


def _convert(kit: Kit, given: Namespace, arguments: Sequence[str], files: tuple[Path, Path, Path]) -> None:
    old = flags.deprecated(arguments, TOOL, kit.minor)
    options.check(given, old, arguments, fallback=given.float_fallback)
    for spelling, new in old.items():
        says.python("WARNING", f"{spelling} option is deprecated, use {new}.")
    if given.float_bitwidth not in {16, 32}:
        raise graph.ConversionError(f"Invalid float bitwidth = {given.float_bitwidth}")
    model = onnx.load(given.input_network)
    graph.fix_dims(model, dict(given.input_dim))
    model = graph.cut_at(model, given.out_node)
    if not given.no_simplification:
        model = graph.simplified(model)
    graph.constants_as_weights(model)
    graph.name_ports(model)
    ports = {value.name for value in (*model.graph.input, *model.graph.output)}
    layouts = {graph.sanitised(name): layout for name, layout in given.input_layout}
    axes = graph.orders(model, layouts, _preserved(given, "layout", ports))
    keep = _preserved(given, "datatype", ports)
    if not given.keep_int64_inputs:
        graph.narrow_integers(model)
    encodings = quantise.read_overrides(Path(given.quantization_overrides)) if given.quantization_overrides else {}
    if given.quantization_overrides:
        options.count_overrides(encodings, graph.tensors(model))
    float_ops: list[str] = []
    if given.input_list or given.float_fallback:
        if given.float_fallback:
            says.python(
                "WARNING",
                "QNN Quantization is disabled as --float_fallback flag is provided "
                "Some Ops may fallback to float datatype",
            )
        recipe = options.recipe(
            given,
            keep_io=frozenset(keep),
            overrides={} if given.ignore_encodings else encodings,
            only_overrides=given.float_fallback,
            axes=axes,
        )
        model, float_ops = quantise.quantised(model, recipe)
        options.report(recipe, float_ops)
    else:
        says.python("INFO", "Skipping quantization, no input_list provided")
        if given.float_bitwidth == 16:
            model = graph.half(model, keep_io=bool(keep))
    graph.reorder(model, axes)
    about = carry.About(
        name=graph.sanitised(files[0].stem),
        build=kit.build,
        quantized=bool(given.input_list or given.float_fallback),
        float_ops=tuple(float_ops),
        command=" ".join([TOOL, *arguments]),
    )
    _save(carry.carried(model, about), files, str(given))


def _preserved(given: Namespace, what: str, ports: set[str]) -> set[str]:
    """The inputs and outputs whose layout or datatype `--preserve_io` keeps; the bare flag keeps both of all."""
    found: set[str] = set()
    for words in given.preserve_io:
        if not words:
            return ports
        if words[0] == what:
            found |= {graph.sanitised(name) for name in words[1:]} or ports
    return found


def _save(made: carry.Carried, files: tuple[Path, Path, Path], namespace: str) -> None:
    cpp, raws, net = files
    cpp.parent.mkdir(parents=True, exist_ok=True)
    says.python("INFO", "Saving QNN Model...")
    carry.write_cpp(cpp, made, namespace)
    says.python("INFO", f"Model CPP saved at: {cpp} ")
    if made.weights:
        carry.write_raws(raws, made.weights)
        says.python("INFO", f"Model BIN saved at: {raws} ")
    else:
        says.python("WARNING", "No raw files found for Model. Saving Model BIN skipped.")
    net.write_text(json.dumps(net_of(made), indent=2), encoding="utf-8")
    says.python("INFO", "Conversion complete!")


def net_of(made: carry.Carried) -> dict[str, Any]:
    """`_net.json`: the command, the ports and the nodes."""
    ports = (*made.model.graph.input, *made.model.graph.output)
    return {
        "model.cpp": f"{made.about.name}.cpp",
        "converter_command": made.about.command,
        "qnn_sdk_version": f"qaisw-{made.about.build}",
        "graph": {
            "tensors": {value.name: {"dims": list(graph.shape_of(value))} for value in ports},
            "nodes": {node.name or node.output[0]: {"type": node.op_type} for node in made.model.graph.node},
        },
    }
