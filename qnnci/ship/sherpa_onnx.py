"""Layout sherpa-onnx: one archive for each model and chip, with the names that its programs and releases have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from qnnci.context.info import ContextInfo
from qnnci.findings import Finding
from qnnci.project import Bundle, Family
from qnnci.rules import finding
from qnnci.ship.item import Item
from qnnci.ship.member import Member
from qnnci.ship.sherpa_contract import CONTRACTS, check, roles

FAMILIES: tuple[Family, ...] = tuple(CONTRACTS)
NAME = "sherpa-onnx-qnn-{soc}-binary-{group}"
_ROLE = re.compile(r"(?:(?P<group>.+)[-_])?(?P<role>model|encoder|predictor|decoder|joiner)")
_RATE = 16000  # samples in a second of Moonshine's audio
_SECONDS = re.compile(r"-\d+s$")


def split(graph: str) -> tuple[str, str]:
    """The model that a graph is of and its part in it: `tiny-encoder` is the encoder of `tiny`, `vad` its model."""
    match = _ROLE.fullmatch(graph)
    return (match["group"] or "", match["role"]) if match else (graph, "model")


def ordered(family: Family, items: Sequence[Item]) -> list[Item]:
    """Items in the order in which the loader wants their files listed."""
    known = roles(family)
    return sorted(items, key=lambda item: [*known, split(item.entry.graph)[1]].index(split(item.entry.graph)[1]))


def findings(family: Family, items: Sequence[Item], infos: Mapping[str, ContextInfo]) -> list[Finding]:
    """What the loader could not use; `infos` by graph."""
    found = []
    have = {split(item.entry.graph)[1]: item.entry for item in items}
    soc = items[0].entry.soc
    for role in roles(family):
        if role not in have:
            others = ", ".join(entry.graph for entry in have.values())
            message = f"{family} needs a graph that is its {role}; there are {others}"
            found.append(finding("bundle-role", message, graph=next(iter(have.values())).graph, soc=soc))
    for role, entry in have.items():
        if role in roles(family):
            found += [each.at(graph=entry.graph, soc=soc) for each in check(family, role, infos[entry.graph])]
        else:
            message = f"{family} has no {role}; it has {', '.join(roles(family))}"
            found.append(finding("bundle-role", message, graph=entry.graph, soc=soc))
    return found


def members(settings: Bundle, items: Sequence[Item], infos: Mapping[str, ContextInfo]) -> list[Member]:
    """`model.bin`, or `encoder.bin` and its companions, and info.txt, which is for people."""
    lines = [f"{key}={value}" for key, value in {**_told(settings, items, infos), **settings.info}.items()]
    info = [Member.of_text("info.txt", "".join(f"{line}\n" for line in lines))] if lines else []
    return [*(item.member(f"{split(item.entry.graph)[1]}.bin") for item in items), *info]


def _told(settings: Bundle, items: Sequence[Item], infos: Mapping[str, ContextInfo]) -> dict[str, str | int]:
    """What info.txt says of a family that the binaries know themselves."""
    group, _ = split(items[0].entry.graph)
    shapes = {tensor.name: tensor.shape for tensor in infos[items[0].entry.graph].graphs[0].inputs}
    if settings.family in {"sense-voice", "zipformer-ctc"}:
        return {"num_frames": shapes["x"][1]}
    if settings.family == "moonshine":
        return {"model_name": _SECONDS.sub("", group), "num_seconds": shapes["audio"][1] // _RATE}
    return {}
