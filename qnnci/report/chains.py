"""Graphs that were cut, in one line each: the parts in their order, and how far all of them are from the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qnnci.manifest import Chain
from qnnci.report.figures import worst


def chain_lines(chains: Sequence[Chain]) -> Iterator[str]:
    """Say it for each chip."""
    for chain in chains:
        parts = " → ".join(part.graph for part in chain.parts)
        far = "not verified as a chain"
        if chain.parity:
            cosine, snr = worst(chain.parity)
            far = f"cosine {cosine}, SNR {snr} against the whole on the CPU"
        yield f"{chain.graph} on {chain.soc} = {parts}: {far}"
