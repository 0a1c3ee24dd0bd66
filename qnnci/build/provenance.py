"""One binary's entry in the manifest, from what the binary says and what the build knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qnnci.build.cache import Record
from qnnci.build.calls import inputs_of
from qnnci.context.info import ContextInfo
from qnnci.manifest import Entry, Figures, Measured, Parity, Quantization, Task
from qnnci.manifest_check import said_by
from qnnci.plan import Target
from qnnci.project import Project


def entry_of(
    target: Target,
    project: Project,
    info: ContextInfo,
    *,
    folder: Path,
    output: Path,
    compiled: Record,
    source_sha256: str,
    parity: Parity | None,
    export_parity: dict[str, Figures] | None,
    export_metrics: dict[str, Measured] | None,
    task: Task | None,
    float_ops: tuple[str, ...],
    calibration_sha256: str | None,
    encodings_sha256: str | None,
    quantized_as: dict[str, Any] | None,
    passed: bool,
) -> Entry:
    """SoC, arch and sizes are the binary's own; only where its version is silent, the target's."""
    binary = folder / target.binary
    asked = {"soc_id": target.soc.id, "dsp_arch": target.soc.dsp_arch}
    return Entry(
        graph=target.graph,
        soc=target.soc.name,
        precision=target.precision,
        passed=passed,
        binary=os.path.relpath(binary, output),
        sha256=compiled.files[binary.name],
        bytes=binary.stat().st_size,
        context_model=os.path.relpath(folder / target.context_model, output),
        route=project.route,
        float_fallback_ops=tuple(dict.fromkeys(float_ops)),
        calibration_sha256=calibration_sha256,
        encodings_sha256=encodings_sha256,
        quantization=Quantization.model_validate(quantized_as) if quantized_as else None,
        source=project.graphs[project.whole_of(target.graph)].origin,
        source_sha256=source_sha256,
        license=project.license,
        layout=project.graphs[target.graph].layout,
        parity=parity,
        export_parity=export_parity,
        export_metrics=export_metrics,
        task=task,
        compile_seconds=round(compiled.seconds, 3),
        compile_peak_mb=compiled.peak_mb or None,
        built_at=compiled.data["at"],
        built_by=compiled.data["by"],
        **{**asked, **said_by(info)},
    )


def settings_of(project: Project, graphs: Sequence[str]) -> dict[str, Any]:
    """The settings that decide what these graphs become and how they are judged, as `qnn.yaml` has them.

    What an export is run with may be a secret, and is left out.
    """
    return {
        "route": project.route,
        "fail_on": project.fail_on,
        "compile": project.compile.model_dump(mode="json", exclude_none=True),
        "limits": project.limits.model_dump(mode="json", exclude_none=True),
        "graphs": {
            name: {
                "inputs": inputs_of(project.graphs[name]),
                "simplify": project.graphs[name].simplify,
                "gates": project.gates_for(name).model_dump(mode="json", exclude_none=True),
                "quantize": project.quantize_for(name).model_dump(mode="json", exclude_none=True),
                "verify": project.verify_for(name).model_dump(mode="json", exclude_none=True),
            }
            for name in graphs
        },
    }
