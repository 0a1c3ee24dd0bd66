"""Graphs that are in memory at once: what their binaries ask for together, per SoC, against what there is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qnnci.context.info import ContextInfo, GraphInfo
from qnnci.findings import Finding
from qnnci.rules import finding
from qnnci.soc import Soc

MB = 1 << 20

# One process on the NPU maps about this much; from Qualcomm's own notes on the Hexagon backend of llama.cpp.
PROCESS_MB = 3584
_NEAR = 0.8  # of the limit; what the app itself maps is in no binary


@dataclass(frozen=True, slots=True)
class Budget:
    """Sums over all graphs of some contexts, in bytes, as libQnnSystem reads them; what a binary does not say is 0.

    VTCM is held while a graph runs: `vtcm_most` is what one after the other needs, `vtcm_sum` all at once. `mapped` is
    the room in the process: constants and op data (the whole blob where these are not told), spill-fill, I/O.
    """

    soc: Soc
    graphs: tuple[str, ...]
    vtcm_most: int
    vtcm_sum: int
    constants: int
    op_data: int
    spill_fill: int
    io: int
    mapped: int


def budget(soc: Soc, contexts: Mapping[str, ContextInfo]) -> Budget:
    """The sums over `contexts`, by the name of the graph that each was compiled from; all are for `soc`."""
    graphs = [graph for context in contexts.values() for graph in context.graphs]
    vtcm = [graph.vtcm_bytes or 0 for graph in graphs]
    sizes = {
        "constants": sum(graph.const_bytes or 0 for graph in graphs),
        "op_data": sum(graph.op_data_bytes or 0 for graph in graphs),
        "spill_fill": sum(graph.spill_fill_bytes or 0 for graph in graphs),
        "io": sum(_io(graph) for graph in graphs),
    }
    mapped = sum(map(_loaded, contexts.values())) + sizes["spill_fill"] + sizes["io"]
    return Budget(soc, tuple(contexts), max(vtcm, default=0), sum(vtcm), mapped=mapped, **sizes)


def _loaded(context: ContextInfo) -> int:
    known = [(graph.const_bytes, graph.op_data_bytes) for graph in context.graphs]
    told = sum(constants or 0 for constants, _ in known) + sum(op_data or 0 for _, op_data in known)
    return context.blob_bytes if any(None in pair for pair in known) else told


_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


def _io(graph: GraphInfo) -> int:
    """Bytes of inputs and outputs: as the binary says, else from their shapes and types."""
    if graph.io_bytes is not None:
        return graph.io_bytes
    total = 0
    for tensor in (*graph.inputs, *graph.outputs):
        size = next((bytes_ for bits, bytes_ in _BYTES.items() if tensor.dtype.endswith(f"_{bits}")), 1)
        for dimension in tensor.shape:
            size *= dimension
        total += size
    return total


def judge(of: Budget, process_mb: int = PROCESS_MB) -> Iterator[Finding]:
    """What does not fit: a graph into the chip's VTCM, all of them into one process; and what cannot run at once."""
    soc = of.soc.name
    names = " + ".join(of.graphs)
    if of.vtcm_most > of.soc.vtcm_mb * MB:
        message = f"a graph asks for {of.vtcm_most / MB:g} MB of VTCM, the chip has {of.soc.vtcm_mb}"
        yield finding("vtcm-over-chip", message, soc=soc, stage="budget")
    elif of.vtcm_sum > of.soc.vtcm_mb * MB:
        message = f"{names} ask for {of.vtcm_sum / MB:g} MB of VTCM together, the chip has {of.soc.vtcm_mb}"
        yield finding("vtcm-in-turns", message, soc=soc, stage="budget")
    share = of.mapped / (process_mb * MB)
    if share > _NEAR:
        message = f"{names} map {of.mapped / MB:.0f} MB, one process on the NPU has about {process_mb}"
        yield finding("process-memory", message, severity="error" if share > 1 else "warning", soc=soc, stage="budget")
