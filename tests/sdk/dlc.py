"""qairt-converter and qairt-quantizer: an ONNX graph becomes a DLC, and a DLC a quantized one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from qnnci.errors import UsageError
from qnnci.soc import find_soc
from sdk import carry, flags, graph, options, quantise, says
from sdk.failures import Failures
from sdk.kit import Kit

CONVERTER, QUANTIZER = "qairt-converter", "qairt-quantizer"
_BACKENDS = ("CPU", "GPU", "DSP", "HTP", "HTA", "LPAI")
_FORMATS = {".onnx", ".pb", ".pt", ".tflite"}


def convert(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    given = _parsed(CONVERTER, kit, arguments, failures)
    output = Path(given.output_path or Path(given.input_network).with_suffix(".dlc"))
    if (end := failures.at_work(output)) is not None:
        return end
    try:
        backend = _backend(given)
        model = _loaded(given.input_network)
        shapes = _either(given, "source_model_input_shape", "desired_input_shape")
        graph.fix_dims(model, dict(shapes))
        model = graph.cut_at(model, given.out_tensor_node)
        says.python("INFO", "INFO_INITIALIZATION_SUCCESS: ")
        if not _either(given, "onnx_skip_simplification", "onnx_no_simplification"):
            model = graph.simplified(model)
        graph.constants_as_weights(model)
        encodings = quantise.read_overrides(Path(given.quantization_overrides)) if given.quantization_overrides else {}
        if given.quantization_overrides:
            options.count_overrides(encodings, graph.tensors(model))
        says.python("INFO", "INFO_CONVERSION_SUCCESS: Conversion completed successfully")
        if given.float_bitwidth == 16:
            model = graph.half(model, keep_io=True)  # these tools keep the ports of the source
        about = carry.About(
            name=graph.sanitised(output.stem),
            build=kit.build,
            backend=backend,
            overrides=encodings,
            command=" ".join([CONVERTER, *arguments]),
        )
        _write(output, carry.carried(model, about))
    except Exception as error:  # noqa: BLE001 - the real one catches everything too
        output.unlink(missing_ok=True)
        return says.encountered(error)
    says.python("INFO", "INFO_WRITE_SUCCESS: ")
    return failures.at_end(0)


def quantize(kit: Kit, arguments: Sequence[str], failures: Failures) -> int:
    given = _parsed(QUANTIZER, kit, arguments, failures)
    source = Path(given.input_dlc)
    output = Path(given.output_dlc or source.with_name(f"{source.stem}_quantized.dlc"))
    if (end := failures.at_work(output)) is not None:
        return end
    _backend(given)  # a bad value here is not caught, as in the real one
    fallback = bool(_either(given, "enable_float_fallback", "float_fallback"))
    try:
        options.check(given, {}, arguments, fallback=fallback)
        before = carry.unpacked(source)
        model, about = before.whole(), before.about
        if given.input_list or fallback:
            model, about = _quantized(given, model, about, fallback=fallback)
        else:
            says.python("INFO", "Skipping quantization, no input_list provided")
        _write(output, carry.carried(model, about))
    except Exception as error:  # noqa: BLE001 - the real one catches everything too
        output.unlink(missing_ok=True)
        return says.encountered(error)
    says.python("INFO", f"Quantized Model saved at: {output} ")
    return failures.at_end(0)


def _loaded(path: str) -> Any:
    if Path(path).suffix not in _FORMATS:
        raise graph.ConversionError("Invalid model format specified. Supported types are .onnx/.pb/.tflite/.pt")
    return onnx.load(path)


def _quantized(given: Namespace, model: Any, about: carry.About, *, fallback: bool) -> tuple[Any, carry.About]:
    if fallback and not about.overrides:
        raise graph.ConversionError(
            "fallbackToFloat: Use float fallback flag when user specify encodings through "
            "`--quantization_overrides` or input network contains framework trained QAT encodings"
        )
    ports = {value.name for value in (*model.graph.input, *model.graph.output)}
    names = given.preserve_io_datatype if isinstance(given.preserve_io_datatype, list) else ()
    kept = frozenset(names or ports) if _keeps_io(given) else frozenset()
    ignored = _either(given, "ignore_quantization_overrides", "ignore_encodings")
    recipe = options.recipe(given, keep_io=kept, overrides={} if ignored else about.overrides, only_overrides=fallback)
    model, float_ops = quantise.quantised(model, recipe)
    options.report(recipe, float_ops)
    return model, replace(about, quantized=True, float_ops=tuple(float_ops))


def _parsed(tool: str, kit: Kit, arguments: Sequence[str], failures: Failures) -> Namespace:
    given = flags.parser(tool, kit.minor, failures.values("forget")).parse_args(arguments)
    flags.settle(given, tool, kit.minor)
    for old, new in flags.deprecated(arguments, tool, kit.minor).items():
        says.python("WARNING", f"{old} is deprecated. Use {new} for achieving this functionality")
    return given


def _either(given: Namespace, new: str, old: str) -> Any:
    """The value of a flag that was renamed, by the name that this version has."""
    return getattr(given, new, None) or getattr(given, old, None) or ()


def _keeps_io(given: Namespace) -> bool:
    """The flag alone, which may be followed by no name, keeps all."""
    return given.preserve_io_datatype is True or isinstance(given.preserve_io_datatype, list)


def _backend(given: Namespace) -> str:
    """Check backend and SoC; returns the backend.

    Raises:
        ConversionError: with the tools' own text.

    """
    backend = str(_either(given, "target_backend", "backend") or "").upper()
    soc = str(_either(given, "target_soc_model", "soc_model") or "")
    if soc and not backend:
        raise graph.ConversionError("soc_model is provided without specifying backend")
    if backend and backend not in _BACKENDS:
        raise graph.ConversionError(
            f"Backend {backend} is not supported. Supported backends are {', '.join(_BACKENDS)}"
        )
    if soc:
        try:
            find_soc(soc)
        except UsageError as error:
            raise graph.ConversionError(f"SOC model {soc} is not supported.") from error
    return backend


def _write(path: Path, made: carry.Carried) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(carry.packed(made))
