"""The SDK routes: the chain of tool calls that turns a prepared graph into a library or a DLC, and that into binaries.

Everything here is planning, and pure. Tools write into a scratch folder beside the final one; what they made is moved
when they have ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qnnci.build.adapt import Order
from qnnci.build.cache import digests, key_of
from qnnci.build.calibrate import CALIBRATION
from qnnci.build.calls import PREPARED, Call
from qnnci.files import SCRATCH
from qnnci.findings import Finding
from qnnci.plan import Target
from qnnci.project import Precision, Project
from qnnci.project_file import ProjectFile
from qnnci.rules import finding
from qnnci.toolchain import tools
from qnnci.toolchain.htp_config import config_findings, htp_config
from qnnci.toolchain.input_list import read_input_list
from qnnci.toolchain.sdk import Sdk
from qnnci.toolchain.sdk_doctor import ROUTE_TOOLS

# Bit widths that a precision stands for, where the project gives none; what is missing is the tool's own default, 8.
WIDTHS: dict[Precision, dict[str, int]] = {
    "fp16": {},
    "w8a8": {},
    "w8a16": {"act": 16, "bias": 32},
    "w4a16": {"act": 16, "weights": 4, "bias": 32},
}
_V68 = 68
# Layouts under which the converter leaves an input's axes as they are.
_AS_THEY_ARE = frozenset({"NDHWC", "NHWC", "NFC", "NTF", "TNF", "NF", "NC", "F", "NONTRIVIAL"})
_LIST = "input_list.txt"


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call as a stage: where its files end up, and which others it may leave, by their final names."""

    stage: str
    command: tools.Command
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SdkRoute:
    """Route `model-lib` or `dlc` of a project, on one SDK."""

    file: ProjectFile
    sdk: Sdk
    cache: Path

    @property
    def project(self) -> Project:
        return self.file.project

    @property
    def order(self) -> Order:
        """qnn-onnx-converter moves channels last; qairt-converter keeps the graph's axes."""
        return "channel-last" if self.project.route == "model-lib" else "same"

    def examination(self) -> list[Call]:
        """One look at each tool and its flags, kept beside the SDK: done again only for another one."""
        route = self.project.route
        arguments = {"root": str(self.sdk.root), "version": self.sdk.version, "route": route, "cache": str(self.cache)}
        python = self.sdk.tools_python(self.cache)  # without it, the Python tools are not looked at
        paths = [self.sdk.root / "bin" / tools.HOST / tool for tool in ROUTE_TOOLS[route]]
        seen = [(path.stat().st_size, path.stat().st_mtime_ns) for path in paths if path.is_file()]
        folder = self.cache / "sdk" / f"{self.sdk.version}.examined" / route
        return [Call("sdk", "examine", folder.absolute(), arguments, key_of(**arguments, seen=seen, python=python))]

    def refusals(self, target: Target, *, quantized: bool) -> list[Finding]:
        """What cannot be, or would silently become something else. `quantized` says that the graph holds QDQ pairs."""
        options = self.conversion(target.graph, target.precision)
        quantizes = options.quantized or quantized
        found = config_findings(self.project.compile.htp, self.sdk.numbers)
        if target.precision != "fp16" and not quantizes:
            message = (
                f"{target.precision} without `calibration`, and no `input_list` or overrides under `convert`: the tools"
            )
            hint = "give the graph calibration inputs (`calibration: …`), or use `precision: fp16`"
            found.append(finding("quantize-needed", f"{message} would make a float graph and say nothing", hint=hint))
        if target.precision == "fp16" and quantizes:
            message = "the precision is fp16, but what `convert` gives makes a quantized graph"
            found.append(finding("quantized-source", message, severity="error"))
        if options.float_fallback and target.soc.arch == _V68:
            message = f"float_fallback for {target.soc.name}: v68 has no float, the context generator aborts (134)"
            found.append(finding("fp16-unsupported", message, hint="remove `float_fallback`, or leave this chip out"))
        if target.soc.arch not in self.sdk.arches():
            message = f"SDK {self.sdk.version} has no lib/hexagon-{target.soc.dsp_arch}: it does not know this chip"
            found.append(finding("sdk-missing-arch", message))
        return found

    def calibrates(self, graph: str, precision: Precision, *, quantized: bool) -> bool:
        del quantized
        return precision != "fp16" and self.project.graphs[graph].calibration is not None

    def conversion(self, graph: str, precision: Precision) -> tools.Conversion:
        """What the tools are told for a graph in one precision. Paths are absolute: tools run elsewhere."""
        settings, widths = self.project.convert_for(graph), WIDTHS[precision]
        calibrated = self.calibrates(graph, precision, quantized=False)
        return tools.Conversion(
            act_bitwidth=settings.act_bitwidth or widths.get("act"),
            weights_bitwidth=settings.weights_bitwidth or widths.get("weights"),
            bias_bitwidth=settings.bias_bitwidth or widths.get("bias"),
            float_bitwidth=settings.float_bitwidth,
            input_list=self._path(settings.input_list) or (Path(_LIST) if calibrated else None),
            native_inputs=settings.native_inputs or calibrated,
            out_nodes=settings.out_nodes,
            input_dtypes=settings.input_dtypes,
            input_layouts=settings.input_layouts,
            overrides=self._path(settings.quantization_overrides),
            float_fallback=settings.float_fallback,
            per_channel=settings.per_channel,
            extra=tuple(map(self._word, settings.extra)),
        )

    def _word(self, word: str) -> str:
        """An argument of `extra`; a file of the project by its absolute path."""
        flag, mark, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
        return f"{flag}{mark}{(self.file.base / value).absolute()}" if self._is_file(value) else word

    def _is_file(self, given: str) -> bool:
        try:
            return (self.file.base / given).is_file()
        except (OSError, ValueError):  # too long for a name, or with a zero byte
            return False

    def symbol(self, graph: str) -> str:
        """The graph's name inside its library and binaries; files on the way are named after it."""
        return tools.graph_symbol(self.project.convert_for(graph).graph_name or graph)

    def steps(self, graph: str, options: tools.Conversion, model: Path, folder: Path) -> list[Step]:
        """The chain of one graph, whose files end up in `folder`."""
        name = self.symbol(graph)
        if self.project.route == "model-lib":
            return self._library_chain(name, model, folder, options, self.project.convert_for(graph).libraries)
        dlc = scratch(folder, "convert") / f"{name}.dlc"
        steps = [Step("convert", tools.dlc_converter(model, dlc, options, self.sdk.numbers))]
        if options.quantized:
            quantized = scratch(folder, "quantize") / f"{name}_quantized.dlc"
            quantizer = tools.dlc_quantizer(folder / dlc.name, quantized, options, self.sdk.numbers)
            steps.append(Step("quantize", quantizer))
        return steps

    @staticmethod
    def _library_chain(
        name: str, model: Path, folder: Path, options: tools.Conversion, targets: Sequence[tools.Target]
    ) -> list[Step]:
        cpp, weights = folder / f"{name}.cpp", folder / f"{name}.bin"
        converter = tools.onnx_converter(model, scratch(folder, "convert") / cpp.name, options)
        steps = [Step("convert", converter, (weights.name, f"{name}_net.json"))]
        # The host's library is what is compiled; others are made for the devices that compose graphs themselves.
        for target in dict.fromkeys((tools.HOST, *targets)):
            room = scratch(folder, f"library-{target}")
            steps.append(Step(f"library-{target}", tools.model_library(cpp, weights, room, target)))
        return steps

    def conversions(
        self, graph: str, precision: Precision, folder: Path, prepared: dict[str, str], calibration: dict[str, str]
    ) -> list[Call]:
        folder = (folder / precision).absolute()
        options, files = self.conversion(graph, precision), {}
        form: tuple[tuple[str, ...], ...] = ()
        calibrates = "convert" if self.project.route == "model-lib" else "quantize"
        listed = [options.overrides] if options.overrides else []
        samples: dict[str, Any] = {}
        if options.input_list is not None and self.calibrates(graph, precision, quantized=False):
            layouts = self.project.convert_for(graph).input_layouts
            kept = [name for name, layout in layouts.items() if layout.upper() in _AS_THEY_ARE]
            options = replace(options, input_list=scratch(folder, calibrates) / _LIST)
            samples = {"samples": str(folder.parent / CALIBRATION), "text": _LIST, "order": self.order, "kept": kept}
            form = (tuple(kept),)
        elif options.input_list is not None:
            given = read_input_list(options.input_list, self.file.base, folder / SCRATCH)
            listed, form = [*listed, *given.files], given.form
            options = replace(options, input_list=scratch(folder, calibrates) / _LIST)
            files = {str(options.input_list): given.text}
        listed += [Path(value) for word in options.extra if self._is_file(value := word.rpartition("=")[2])]
        looked = [digest for path in listed for digest in digests(path)]
        keys: dict[str, Any] = {"model": prepared, "listed": looked, "form": form, "calibration": calibration}
        made = []
        for step in self.steps(graph, options, (folder.parent / PREPARED).absolute(), folder):
            quantizes = options.quantized and step.stage in {"convert", "quantize"}
            here = {"files": files, "samples": samples} if step.stage == calibrates else {}
            call = self._call(f"{graph}-{precision}", step, folder, keys, quantized=quantizes, **here)
            made.append(call)
            keys = {"before": call.key}
        return made

    def compile(
        self, target: Target, folder: Path, prepared: dict[str, str], converted: dict[str, str], nodes: Sequence[str]
    ) -> Call:
        del nodes
        folder = folder.absolute()
        outer, inner = (scratch(folder, "compile") / name for name in ("backend_extensions.json", "htp_config.json"))
        options, name = self.project.compile, self.symbol(target.graph)
        config = htp_config(
            target.soc,
            name,
            vtcm_mb=options.vtcm_for(target.soc),
            optimization=options.optimization,
            options=options.htp,
            library=self.sdk.library("libQnnHtpNetRunExtensions.so"),
            inner=inner,
        )
        made = folder.parent / target.precision
        if self.project.route == "model-lib":
            model, dlc = tools.library_path(made, name, tools.HOST), None
        else:
            model = self.sdk.library("libQnnModelDlc.so")
            quantized = self.conversion(target.graph, target.precision).quantized
            dlc = made / (f"{name}_quantized.dlc" if quantized else f"{name}.dlc")
        binary = scratch(folder, "compile") / target.binary
        command = tools.context_generator(model, dlc, self.sdk.library("libQnnHtp.so"), binary, outer)
        keys = {"model": prepared, "converted": converted, "config": config.inner}
        files = {str(outer): json.dumps(config.outer, indent=2), str(inner): json.dumps(config.inner, indent=2)}
        return self._call(target.id, Step("compile", command, (outer.name, inner.name)), folder, keys, files=files)

    def _call(
        self,
        what: str,
        step: Step,
        folder: Path,
        keys: dict[str, Any],
        *,
        quantized: bool = False,
        files: dict[str, str] | None = None,
        samples: dict[str, Any] | None = None,
    ) -> Call:
        command, room, python = step.command, scratch(folder, step.stage), self.sdk.tools_python(self.cache)
        made = {str(path): str(path.relative_to(room)) for path in command.makes}
        also = {str(room / name): name for name in step.also}
        arguments = {
            "argv": [*self.sdk.command(command.tool, python), *command.arguments],
            "command_file": str(folder / "logs" / f"{step.stage}.command"),
            "environment": {**self.sdk.environment(python), **command.environment},
            "scratch": str(room),
            "folder": str(folder),
            "makes": made,
            "may_make": also,
            "files": files or {},
            "calibration": samples,
        }
        # Where the build's folder and the project stand decides nothing.
        places = (str(folder.parent), str(self.file.base.absolute()))
        words = [argument.replace(places[0], "").replace(places[1], "") for argument in command.arguments]
        key = key_of(**keys, tool=command.tool, words=words, sdk=self.sdk.version, route=self.project.route)
        outputs = (*made.values(), *also.values())
        return Call(what, step.stage, folder, arguments, key, outputs, tool=command.tool, quantized=quantized)

    def _path(self, given: str | None) -> Path | None:
        return (self.file.base / given).absolute() if given else None


def scratch(folder: Path, stage: str) -> Path:
    return folder / f"{SCRATCH}{stage}"
