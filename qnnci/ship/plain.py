"""Layout plain: the binaries as the build named them, and the manifest of these alone."""

from __future__ import annotations

from collections.abc import Sequence

from qnnci.manifest import Manifest, Wanted, devices
from qnnci.ship.item import Item
from qnnci.ship.member import Member

NAME = "{project}-{soc}-{precision}"


def members(manifest: Manifest, items: Sequence[Item]) -> list[Member]:
    """The binaries and a manifest whose paths start beside them."""
    return [*(each.member(each.binary.name) for each in items), Member.of_text("manifest.json", _own(manifest, items))]


def _own(manifest: Manifest, items: Sequence[Item]) -> str:
    entries = tuple(
        each.entry.model_copy(update={"binary": each.binary.name, "context_model": each.context_model.name})
        for each in items
    )
    targets = {(each.graph, each.soc) for each in entries}
    findings = tuple(
        each
        for each in manifest.findings
        if any(each.graph in {"", graph} and each.soc in {"", soc} for graph, soc in targets)
    )
    own = manifest.model_copy(
        update={
            "passed": all(each.passed for each in entries),
            "targets": tuple(Wanted(graph=each.graph, soc=each.soc) for each in entries),
            "entries": entries,
            "devices": devices(entries),
            "findings": findings,
        }
    )
    return own.model_dump_json(indent=2) + "\n"
