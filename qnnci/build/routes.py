"""A route from a prepared graph to a context binary, as the build sees it: what it refuses, and which stages it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from qnnci.build import calls, quantize
from qnnci.build.adapt import Order
from qnnci.build.calls import Call
from qnnci.build.sdk_route import SdkRoute
from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.plan import Target
from qnnci.project import Precision
from qnnci.project_file import ProjectFile
from qnnci.toolchain import sdk, tools


class Route(Protocol):
    """`order` is what becomes of axes on the way, where a shape alone does not tell."""

    @property
    def order(self) -> Order: ...

    def examination(self) -> list[Call]:
        """Stages that look whether the route's tools can work at all."""

    def refusals(self, target: Target, *, quantized: bool) -> list[Finding]:
        """What cannot be, before any tool runs. `quantized` says that the graph holds QDQ pairs."""

    def calibrates(self, graph: str, precision: Precision, *, quantized: bool) -> bool:
        """Whether its conversions take the graph's calibration inputs."""

    def conversions(
        self, graph: str, precision: Precision, folder: Path, prepared: dict[str, str], calibration: dict[str, str]
    ) -> list[Call]:
        """Stages that are done once for all chips of a precision, in order; `folder` is the graph's.

        `calibration` is the file of calibration inputs, by name to sha256; empty where there is none.
        """

    def compile(
        self, target: Target, folder: Path, prepared: dict[str, str], converted: dict[str, str], nodes: Sequence[str]
    ) -> Call:
        """The stage that writes the target's binary into its `folder`."""


@dataclass(frozen=True, slots=True)
class OrtRoute:
    """ONNX Runtime's QNN provider: fixed point is made here, and the axes stay as they are."""

    file: ProjectFile
    order: Order = "same"

    def examination(self) -> list[Call]:
        return []

    def refusals(self, target: Target, *, quantized: bool) -> list[Finding]:
        calibrated = self.file.project.graphs[target.graph].calibration is not None
        settings = self.file.project.quantize_for(target.graph)
        return quantize.refusals(target, settings, quantized=quantized, calibrated=calibrated)

    def calibrates(self, graph: str, precision: Precision, *, quantized: bool) -> bool:
        project = self.file.project
        measured = project.graphs[graph].calibration is not None and project.quantize_for(graph).encodings is None
        return precision != "fp16" and not quantized and measured

    def conversions(
        self, graph: str, precision: Precision, folder: Path, prepared: dict[str, str], calibration: dict[str, str]
    ) -> list[Call]:
        settings = self.file.project.quantize_for(graph)
        encodings = self.file.base / settings.encodings if settings.encodings else None
        layout = self.file.project.graphs[graph].layout
        return quantize.conversions(graph, precision, settings, folder, prepared, calibration, encodings, layout)

    def compile(
        self, target: Target, folder: Path, prepared: dict[str, str], converted: dict[str, str], nodes: Sequence[str]
    ) -> Call:
        project = self.file.project
        settings = project.quantize_for(target.graph)
        made = folder.parent / target.precision / calls.QUANTIZED
        return calls.compile_target(
            target,
            project.compile,
            folder,
            made if converted else folder.parent / calls.PREPARED,
            converted or prepared,
            nodes,
            fp16=quantize.computes_float(target, settings, quantized_here=bool(converted)),
        )


def route_of(file: ProjectFile, cache: Path) -> Route:
    """The route that a project names.

    Raises:
        ToolMissing: it needs an SDK that is not there.
        UsageError: `extra` sets what other settings set.

    """
    project = file.project
    if project.route == "ort":
        return OrtRoute(file)
    _refuse_own_flags(file, tools.CONVERTERS[project.route])
    root = str(file.base / project.sdk.root) if project.sdk.root else None
    return SdkRoute(file, sdk.find(project.sdk.version, root, cache=cache), cache)


def _refuse_own_flags(file: ProjectFile, tool: str) -> None:
    for graph in file.project.graphs:
        for word in file.project.convert_for(graph).extra:
            if tools.own_flag(tool, word):
                own = file.project.graphs[graph].convert
                loc = ("graphs", graph) if own and "extra" in own.model_fields_set else ()
                line = file.line(*loc, "convert", "extra")
                raise UsageError(
                    f"{word} under `convert: {{extra: …}}` is a flag of {tool} that qnnci sets itself",
                    where=f"{file.path}:{line}" if file.path else graph,
                    hint="the other keys of `convert` set it: see docs/project-file.md",
                )
