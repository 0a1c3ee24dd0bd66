"""The catalogue of rules. docs/rules.md is generated from it; a finding can only be made of a rule here."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from qnnci.findings import Finding, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """What a finding of this kind means, and what a person does about it."""

    id: str
    title: str
    severity: Severity
    meaning: str
    todo: str


_CATALOGUE = (
    # the export
    Rule(
        "export-failed",
        "The export command failed",
        "error",
        "The command of `export: {run: …}` ended with an error, or wrote no .onnx file to `{output}`.",
        "read logs/export.log in the graph's folder; run the command by hand in the project file's folder",
    ),
    Rule(
        "export-parity",
        "The exported graph's numbers are off",
        "error",
        "On the CPU, the exported graph's outputs are further from the original model's than the gate allows.",
        "export in eval mode and float32, and look for tracing warnings in logs/export.log",
    ),
    # the graph as it came
    Rule(
        "dynamic-dim",
        "A dimension is not fixed",
        "error",
        "HTP binaries have static shapes. A symbolic or unknown dimension would be refused by the compiler.",
        "give the shape under `inputs:` in qnn.yaml (or `--input name=1,3,224,224`)",
    ),
    Rule(
        "bad-shape",
        "A shape does not fit the graph",
        "error",
        "The shape that was given for an input contradicts the graph, or makes an output empty.",
        "give a shape that the graph accepts, under `inputs:` in qnn.yaml or as `--input name=1,3,224,224`",
    ),
    Rule(
        "unsupported-input-type",
        "An input or output type that HTP has not",
        "error",
        "HTP reads and writes float, int32, bool and fixed point. float64 and string never reach it; int64 is "
        "turned to int32 by prepare.",
        "export the graph with float32 or int32 inputs and outputs",
    ),
    Rule(
        "int64-io",
        "An int64 input or output",
        "notice",
        "Prepare turns it to int32 with the cast inside; the application then feeds int32.",
        "feed int32, or export the graph with int32 so that both sides agree",
    ),
    Rule(
        "control-flow",
        "Control flow is left in the graph",
        "error",
        "If, Loop and Scan have no HTP form. Prepare folds an `If` whose condition is constant; this one is not.",
        "export without control flow, or give the input that decides it as a constant: `sr: {value: 16000}`",
    ),
    Rule(
        "unsupported-op",
        "An op that HTP has not",
        "error",
        "The op is known to have no HTP kernel; the compiler would refuse the graph.",
        "replace the op in the model, or cut the graph before it and run the rest on the CPU",
    ),
    Rule(
        "costly-op",
        "An op that is slow on HTP",
        "warning",
        "The op runs, but moves much memory or runs on one thread.",
        "if the model is slow on the device, look here first",
    ),
    Rule(
        "dynamic-quantize",
        "Dynamic quantization",
        "error",
        "DynamicQuantizeLinear and its kin are for CPUs: accepted at compile time, they fail at run time (6031).",
        "re-export the float model and quantize it statically (QDQ)",
    ),
    Rule(
        "high-rank",
        "A tensor of rank above 5",
        "error",
        "HTP tensors have at most five dimensions; six pass only between Reshape, Transpose and Reshape in a row.",
        "reshape so that batch and head dimensions are merged",
    ),
    Rule(
        "too-many-parameters",
        "Too large for one context",
        "error",
        "More than a billion parameters in fp16 exceed what one HTP context can hold (about 2 GiB).",
        "quantize the weights to 4 or 8 bits, or split the graph",
    ),
    Rule(
        "old-opset",
        "Opset outside the tested range",
        "warning",
        "The compiler reads opsets 11 to 22 well; outside that range ops may be refused or misread.",
        "re-export with opset 17",
    ),
    Rule(
        "new-ir",
        "IR version newer than the SDK's onnx",
        "notice",
        "QAIRT SDK converters carry an old onnx and refuse IR versions above 10; route `ort` does not mind.",
        "save with IR version 8 to 10 if the SDK routes are used",
    ),
    Rule(
        "infinite-mask",
        "A mask of -inf",
        "warning",
        "A constant of -inf (or below -65504) becomes -inf or NaN in fp16, and ruins softmax and calibration.",
        "use a finite value such as -1e4 for masks",
    ),
    Rule(
        "fp16-overflow",
        "A constant beyond fp16",
        "warning",
        "fp16 ends at 65504: the constant becomes infinite or is clipped, and what it scales with it.",
        "scale in two steps, or move the scaling out of the graph",
    ),
    Rule(
        "weights-missing",
        "An external weights file is missing",
        "error",
        "The graph names an external data file that is not there or too short.",
        "put the file beside the .onnx, complete (Git LFS pointers are 130 bytes long)",
    ),
    # prepare
    Rule(
        "simplify-failed",
        "onnxsim could not simplify the graph",
        "warning",
        "The graph goes on with its shapes and control flow folded, but with nothing fused: it may be slower.",
        "look at logs/prepare.log; report the model to onnxsim",
    ),
    Rule(
        "simplify-repaired",
        "onnxsim's result was repaired",
        "notice",
        "onnxsim left nodes out of order or shapes wrong; qnnci sorted the nodes and inferred the shapes anew.",
        "nothing",
    ),
    Rule(
        "prepared-differs",
        "The prepared graph computes something else",
        "error",
        "On the CPU, the prepared graph's outputs are not those of the source.",
        "set `simplify: false` for the graph; report the model to qnn-compile",
    ),
    Rule(
        "quantized-source",
        "The source is quantized already",
        "warning",
        "The graph holds QuantizeLinear/DequantizeLinear pairs, but the precision in force is fp16.",
        "name the precision that the graph has, for example `precision: w8a8`",
    ),
    Rule(
        "quantize-needed",
        "The precision needs a quantized graph",
        "error",
        "A fixed-point precision was asked for, but the source holds no QuantizeLinear/DequantizeLinear pairs.",
        "quantize the model first (onnxruntime.quantization, QDQ format) or use `precision: fp16`",
    ),
    Rule(
        "idle-output",
        "An output that nothing computes",
        "error",
        "The output is an input or a constant as it is. The compiler leaves it out of the binary without a word.",
        "leave the output out of the export: the application has these values already",
    ),
    # compile
    Rule(
        "cpu-fallback",
        "A node that the compiler left to the CPU",
        "error",
        "The QNN compiler does not take this node, so the graph cannot run wholly on the HTP.",
        "replace the op or its data type; `qnnci check` names what is known not to work",
    ),
    Rule(
        "fp16-unsupported",
        "No fp16 on this chip",
        "error",
        "The chip's HTP has no floating point that the vendor supports (all of v68, and some later chips).",
        "compile a quantized graph for it, with a precision such as `{default: fp16, v68: w8a16}`, or leave it out",
    ),
    Rule(
        "vtcm-exceeded",
        "A node needs more VTCM than there is",
        "error",
        "One op's working set does not fit into the chip's VTCM.",
        "make the tensor smaller or tile the op, or leave this chip out",
    ),
    Rule(
        "stage-failed",
        "A stage failed",
        "error",
        "The stage ended with an error that is none of the others.",
        "the last lines of its log say why",
    ),
    Rule(
        "stage-crashed",
        "A native tool crashed",
        "error",
        "The tool ended by a signal (134 is an abort, 139 a segfault). Only this target is lost.",
        "see the log; try `compile: {optimization: 2}`, and report the model to onnxruntime-qnn",
    ),
    Rule(
        "stage-timeout",
        "A stage took too long",
        "error",
        "The stage was stopped at its time limit.",
        "raise `limits: {seconds: …}`, or make the graph smaller",
    ),
    Rule(
        "stage-memory",
        "A stage took too much memory",
        "error",
        "The stage was stopped at its memory limit, or by the kernel.",
        "raise `limits: {memory_mb: …}`, lower `--jobs`, or use a larger machine",
    ),
    Rule(
        "nothing-written",
        "The compiler wrote no binary",
        "error",
        "The compiler ended without an error, but the context binary is missing or empty.",
        "see logs/compile.log",
    ),
    Rule(
        "htp-config",
        "An option of the HTP config that would not take effect",
        "error",
        "The SDK's tools say little or nothing about keys that they do not know, and go on without them.",
        "remove the key, or use an SDK that has it: docs/routes.md lists the keys",
    ),
    # the QAIRT SDK
    Rule(
        "sdk-missing-library",
        "A library that the SDK needs does not load",
        "error",
        "The SDK's tools are linked with libc++ and libunwind, which it does not bring along, and with its own.",
        "on Ubuntu and Debian: `apt-get install libc++1 libc++abi1 libunwind-14`; or install the SDK anew",
    ),
    Rule(
        "sdk-python",
        "The SDK's tools lack their Python",
        "error",
        "The SDK's converters are Python programs with compiled parts for Python 3.10, in an environment of their own.",
        "run `qnnci sdk install`, which makes it",
    ),
    Rule(
        "sdk-tool",
        "A tool of the SDK does not start",
        "error",
        "The tool is not there, or its own --help fails.",
        "run `qnnci sdk install`; run the tool with --help by hand to see all that it says",
    ),
    Rule(
        "sdk-unknown-flag",
        "A flag that this SDK does not know",
        "error",
        "The tool's own --help does not name a flag that qnnci would give it: this SDK is older or newer than known.",
        "use an SDK version that docs/sdk.md names, and report this one to qnn-compile",
    ),
    Rule(
        "sdk-missing-arch",
        "The SDK has no libraries for a dsp arch",
        "error",
        "The SDK is older than the chip, or was unpacked without that folder: nothing made with it would run there.",
        "use a newer SDK (v79 came with 2.30, v81 by 2.40), or leave the chip out",
    ),
    Rule(
        "sdk-compiler",
        "No compiler for model libraries",
        "error",
        "Route `model-lib` compiles the converter's C++ with clang++ and make.",
        "on Ubuntu and Debian: `apt-get install clang make`; route `dlc` needs neither",
    ),
    Rule(
        "sdk-ndk",
        "No Android NDK",
        "warning",
        "The NDK is needed only for a model library that runs on Android itself; context binaries do without.",
        "install NDK r26c or newer, and put it on PATH or into ANDROID_NDK_ROOT, if you ship model libraries",
    ),
    Rule(
        "page-size",
        "A library that Android may not load",
        "error",
        "Devices with 16 KB pages load only libraries whose segments are aligned to them.",
        "use NDK r28 or newer, or add `-Wl,-z,max-page-size=16384` to the SDK's share/QNN/converter/jni/Android.mk",
    ),
    # what the binary says
    Rule(
        "wrong-soc",
        "The binary is for another SoC",
        "error",
        "The SoC id inside the binary is not the one asked for.",
        "see logs/compile.log; check the SoC's id with `qnnci socs`",
    ),
    Rule(
        "wrong-arch",
        "The binary is for another dsp arch",
        "error",
        "The dsp arch inside the binary is not the chip's: it would not load.",
        "see logs/compile.log; check the SoC's id with `qnnci socs`",
    ),
    Rule(
        "wrong-optimization",
        "The optimisation level did not take effect",
        "warning",
        "The level inside the binary is not the one asked for.",
        "see logs/compile.log",
    ),
    Rule(
        "wrong-vtcm",
        "The VTCM size did not take effect",
        "error",
        "The VTCM size inside the binary is not the one asked for, as where a tool ignored its config file.",
        "see logs/compile.log; on the SDK routes the graph's name in the config must be the one in the model",
    ),
    Rule(
        "spill-fill",
        "Tensors spill from VTCM to DDR",
        "warning",
        "Intermediate tensors that do not fit into VTCM travel to DDR and back: slower and more power.",
        "smaller inputs, fixed point instead of fp16, or a chip with more VTCM",
    ),
    Rule(
        "vtcm",
        "More VTCM than the gate allows",
        "error",
        "The VTCM size inside the binary is above the gate's limit.",
        "set `vtcm_mb` under `compile:`",
    ),
    Rule(
        "binary-size",
        "The binary is too large",
        "error",
        "The context binary is larger than the gate allows.",
        "quantize the weights or split the graph",
    ),
    Rule(
        "not-a-context",
        "Not a context binary",
        "error",
        "libQnnSystem does not take the file as a context binary.",
        "compile it again; a download may be truncated (compare its sha256 with the manifest)",
    ),
    # numbers
    Rule(
        "parity",
        "The binary's numbers are off",
        "error",
        "In the emulator, the binary's outputs are further from the original's on the CPU than the gate allows.",
        "feed real data (`verify: {inputs: …}`), keep sensitive layers more precise, or set `gates: {parity: …}`",
    ),
    Rule(
        "not-finite",
        "NaN or infinity in the outputs",
        "error",
        "The binary, or the original on the CPU, gives values that are not finite.",
        "fp16 overflows at 65504: scale the activations down; or give real inputs under `verify: {inputs: …}`",
    ),
    Rule(
        "verify-failed",
        "The binary could not be run in the emulator",
        "error",
        "The emulator refused or crashed on the written binary.",
        "see logs/verify.log",
    ),
    Rule(
        "target-missing",
        "Nothing is known of a target",
        "error",
        "The target was planned, but its job left no manifest, or an error that is in no manifest ended its build.",
        "the job that builds it says why: see its log, and run it again",
    ),
    Rule(
        "not-verified",
        "The binary was not verified",
        "notice",
        "Verification was switched off, so nothing is known about the binary's numbers.",
        "run without `--no-verify`",
    ),
)


def _from_logs() -> tuple[Rule, ...]:
    """Rules of what the tools' logs say: many and of one form, so they stand in a table."""
    with (files("qnnci") / "data" / "log_rules.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        Rule(row["id"], row["title"], cast("Severity", row["severity"]), row["meaning"], row["todo"]) for row in rows
    )


LOG_RULES = _from_logs()
RULES: dict[str, Rule] = {rule.id: rule for rule in (*_CATALOGUE, *LOG_RULES)}


def finding(rule: str, message: str, *, severity: Severity | None = None, hint: str = "", **where: Any) -> Finding:
    """A finding of a catalogued rule, with its default severity and hint unless they are given."""
    entry = RULES[rule]
    return Finding(rule, severity or entry.severity, message, hint or entry.todo, **where)
