"""Several graphs together, in one line each: the parts of one that was cut, and contexts that share weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qnnci.manifest import Chain, SharedContext
from qnnci.report.figures import size, worst


def chain_lines(chains: Sequence[Chain]) -> Iterator[str]:
    """Say it for each chip."""
    for chain in chains:
        parts = " → ".join(part.graph for part in chain.parts)
        far = "not verified as a chain"
        if chain.parity:
            cosine, snr = worst(chain.parity)
            far = f"cosine {cosine}, SNR {snr} against the whole on the CPU"
        yield f"{chain.graph} on {chain.soc} = {parts}: {far}"


def context_lines(contexts: Sequence[SharedContext]) -> Iterator[str]:
    """Say for each what it spares."""
    for each in contexts:
        graphs = " + ".join(graph.graph for graph in each.graphs)
        common = f", {size(each.shared_weights_bytes)} of weights in common" if each.shared_weights_bytes else ""
        yield (
            f"{each.name} on {each.soc} = {graphs} in one context: {size(each.bytes)}, "
            f"{size(each.separate_bytes)} in their own{common}"
        )
