"""Rules over quantization options that the converter and the quantizer share, and the recipe that follows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sdk import says
from sdk.graph import ConversionError
from sdk.quantise import Recipe

_SCHEMAS = {"symmetric", "asymmetric", "unsignedsymmetric", "signedasymmetric"}
_LOW, _HIGH = 90, 100


def check(options: Namespace, old_spellings: dict[str, str], arguments: Sequence[str], *, fallback: bool) -> None:
    """Refuse what does not go together. Nothing is checked where nothing is quantized.

    Raises:
        ConversionError: with the tools' own text.

    """
    if options.input_list and fallback:
        raise ConversionError(
            "Invalid combination: --input_list and --float_fallback cannot be provided at the same time."
        )
    if not (options.input_list or fallback):
        return
    for old, new in old_spellings.items():
        if new in arguments:
            raise ConversionError(f"Invalid combination: {old} and {new} cannot be provided at the same time.")
    ignore = getattr(options, "ignore_quantization_overrides", None) or getattr(options, "ignore_encodings", False)
    if ignore and getattr(options, "quantization_overrides", None):
        raise ConversionError(
            "Invalid combination: --quantization_overrides and --ignore_encodings cannot be provided at the same time."
        )
    if fallback and ignore:
        raise ConversionError("Cannot determine quantization encodings for any tensor. --ignore_encodings is given.")
    _check_quantizers(options)


def _check_quantizers(options: Namespace) -> None:
    legacy = options.act_quantizer or options.param_quantizer
    calibrations = {options.act_quantizer_calibration, options.param_quantizer_calibration}
    schemas = {options.act_quantizer_schema, options.param_quantizer_schema}
    if legacy and (calibrations != {"min-max"} or schemas != {"asymmetric"}):
        raise ConversionError("Invalid combination: legacy quantizer options: cannot be used with the new ones.")
    if options.param_quantizer_schema not in _SCHEMAS:
        raise ConversionError(f"Invalid param quantizer schema: {options.param_quantizer_schema}")
    if options.act_quantizer_schema not in _SCHEMAS:
        raise ConversionError(f"Invalid activation quantizer schema: {options.act_quantizer_schema}")
    if options.percentile_calibration_value != 99.99:
        if "percentile" not in calibrations:
            raise ConversionError(
                "Invalid combination: --percentile_calibration_value option should be used with percentile calibration"
            )
        if not _LOW <= options.percentile_calibration_value <= _HIGH:
            raise ConversionError("--percentile_calibration_value must lie with 90 and 100")


def recipe(options: Namespace, **more: Any) -> Recipe:
    """How to quantize, as the options say.

    Raises:
        ConversionError: a bit width that no backend knows.

    """
    if options.act_bitwidth not in {8, 16}:
        raise ConversionError(f"Invalid activation bitwidth = {options.act_bitwidth}")
    return Recipe(
        input_list=Path(options.input_list) if options.input_list else None,
        native=options.use_native_input_files,
        act_bits=options.act_bitwidth,
        weight_bits=options.weights_bitwidth,
        per_channel=options.use_per_channel_quantization,
        **more,
    )


def report(made: Recipe, float_ops: Sequence[str]) -> None:
    """What the quantizer says while and after it quantizes."""
    if made.input_list is not None:
        says.native("INFO", "Inferences will run in sync mode")
        says.plain("Processing inference input(s):")
        for line in made.input_list.read_text(encoding="utf-8").splitlines():
            says.plain("\n".join(" -> ".join(item.split(":=", 1)) for item in line.split()))
        says.native("WARNING", "Profile Logger with name = defaultKey doesn't exist! Returning nullptr")
        says.native("INFO", "[QNN_CPU] QnnGraph execute end")
    if float_ops:
        says.plain(f"Following OPs fallback to float: {', '.join(float_ops)}.")
    says.python("INFO", "Quantization completed successfully: ")


def count_overrides(encodings: dict[str, Any], known: set[str]) -> None:
    """How many encodings found their tensor; which did not is said nowhere."""
    says.python("INFO", f"Processed {len(encodings.keys() & known)} quantization encodings")
