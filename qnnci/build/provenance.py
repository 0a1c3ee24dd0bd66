"""One binary's entry in the manifest, from what the binary says and what the build knows."""

from __future__ import annotations

import os
from pathlib import Path

from qnnci.build.cache import Record
from qnnci.context.info import ContextInfo, TensorInfo
from qnnci.manifest import Entry, Figures, Parity, Tensor
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
    float_ops: tuple[str, ...],
    passed: bool,
) -> Entry:
    """SoC, arch and sizes are the binary's own; only where its version is silent, the target's."""
    binary = folder / target.binary
    graph = info.graphs[0]
    return Entry(
        graph=target.graph,
        soc=target.soc.name,
        soc_id=info.soc_id if info.soc_id is not None else target.soc.id,
        dsp_arch=f"v{info.dsp_arch}" if info.dsp_arch is not None else target.soc.dsp_arch,
        precision=target.precision,
        passed=passed,
        binary=os.path.relpath(binary, output),
        sha256=compiled.files[binary.name],
        bytes=binary.stat().st_size,
        context_model=os.path.relpath(folder / target.context_model, output),
        graph_name=graph.name,
        route=project.route,
        qairt=info.build_id,
        optimization=graph.optimization,
        vtcm_bytes=graph.vtcm_bytes,
        spill_fill_bytes=graph.spill_fill_bytes,
        const_bytes=graph.const_bytes,
        op_data_bytes=graph.op_data_bytes,
        io_bytes=graph.io_bytes,
        float_fallback_ops=tuple(dict.fromkeys(float_ops)),
        inputs=tuple(map(_tensor, graph.inputs)),
        outputs=tuple(map(_tensor, graph.outputs)),
        source=project.graphs[target.graph].origin,
        source_sha256=source_sha256,
        license=project.license,
        parity=parity,
        export_parity=export_parity,
        compile_seconds=round(compiled.seconds, 3),
        compile_peak_mb=compiled.peak_mb or None,
        built_at=compiled.data["at"],
        built_by=compiled.data["by"],
    )


def _tensor(tensor: TensorInfo) -> Tensor:
    quantization = tensor.quantization
    return Tensor(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=tensor.shape,
        scale=quantization.scale if quantization else None,
        offset=quantization.offset if quantization else None,
    )
