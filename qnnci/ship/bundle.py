"""From a manifest to archives: what goes into each, what speaks against it, and writing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qnnci.context.info import ContextInfo
from qnnci.context.read import inspect_all
from qnnci.errors import QnnciError, UsageError
from qnnci.findings import Finding
from qnnci.manifest import Entry, Manifest
from qnnci.project import Bundle
from qnnci.rules import finding
from qnnci.ship import archive, names, onnxruntime, plain, sherpa_onnx
from qnnci.ship.extras import extras
from qnnci.ship.item import Item
from qnnci.ship.member import Member

_NAMES = {"plain": plain.NAME, "onnxruntime": onnxruntime.NAME, "sherpa-onnx": sherpa_onnx.NAME}
Key = tuple[str, str]  # SoC, and what else tells archives apart: a graph, a group of graphs, or nothing


@dataclass(frozen=True, slots=True)
class Planned:
    """One archive to write, `name` without its ending; none is written that has findings of errors."""

    name: str
    soc: str
    items: tuple[Item, ...]
    members: tuple[Member, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def refused(self) -> bool:
        return any(each.severity == "error" for each in self.findings)


@dataclass(frozen=True, slots=True)
class Source:
    """What archives are made from: a manifest and where its paths start, and where those of added files do."""

    manifest: Manifest
    folder: Path
    base: Path
    settings: Bundle = field(default_factory=Bundle)
    include_failed: bool = False


def plan(source: Source) -> list[Planned]:
    """Every archive, those too that are refused.

    Raises:
        UsageError: settings or names that do not hold, a file that is missing or not as the manifest says.

    """
    settings = source.settings
    if settings.layout == "sherpa-onnx" and not settings.family:
        known = ", ".join(sherpa_onnx.FAMILIES)
        raise UsageError("layout sherpa-onnx needs the family of the model", hint=f"`--family`, one of {known}")
    template = settings.name or _NAMES[settings.layout]
    made = [_planned(source, template, key, graphs) for key, graphs in _sorted_out(source, template).items()]
    if not made:
        raise UsageError("there is nothing to bundle: the manifest has no binaries", hint="build first: `qnnci build`")
    seen: dict[str, Planned] = {}
    for each in made:
        other = seen.setdefault(each.name.casefold(), each)
        if other is not each:
            raise UsageError(
                f"two archives would be called {each.name}", hint="put {soc}, {graph} or {group} into `name`"
            )
    return made


def write(planned: Planned, output: Path, settings: Bundle) -> archive.Archive:
    """Write one archive, in which everything is in a folder of its name.

    Raises:
        UsageError: a file that is not what the manifest says, or an archive that is too large.
        MachineError: no room on the disk.

    """
    path = output / f"{planned.name}.{settings.archive}"
    return archive.write(path, [each.under(planned.name) for each in planned.members], settings.archive)


def _sorted_out(source: Source, template: str) -> dict[Key, dict[str, Entry | None]]:
    """The graphs of each archive, with the entry of each; None where the build made no binary."""
    by_graph = "graph" in names.fields_of(template)
    entries = {(entry.graph, entry.soc): entry for entry in source.manifest.entries}
    asked = [(each.graph, each.soc) for each in source.manifest.targets]
    archives: dict[Key, dict[str, Entry | None]] = {}
    for graph, soc in dict.fromkeys([*asked, *entries]):
        group = sherpa_onnx.split(graph)[0] if source.settings.layout == "sherpa-onnx" else graph if by_graph else ""
        archives.setdefault((soc, group), {})[graph] = entries.get((graph, soc))
    return archives


def _planned(source: Source, template: str, key: Key, graphs: Mapping[str, Entry | None]) -> Planned:
    settings, soc = source.settings, key[0]
    items = [Item(entry, source.folder) for entry in graphs.values() if entry]
    found = _unfit(source, soc, graphs)
    if not items:
        return Planned(f"{key[1] or source.manifest.name}-{soc}", soc, (), findings=tuple(found))
    if settings.family and settings.layout == "sherpa-onnx":
        items = sherpa_onnx.ordered(settings.family, items)
    values = _values(source, key, items)
    name = names.archive_name(template, values)
    infos: dict[str, ContextInfo] = {}
    if settings.family and settings.layout == "sherpa-onnx":
        infos = _infos(items)
        found += sherpa_onnx.findings(settings.family, items, infos)
    planned = Planned(name, soc, tuple(items), findings=tuple(each.at(stage="bundle") for each in found))
    if planned.refused:
        return planned
    added = extras([names.fill(pattern, values) for pattern in settings.add], source.base)
    return Planned(name, soc, tuple(items), (*_members(source, items, infos), *added), planned.findings)


def _infos(items: Sequence[Item]) -> dict[str, ContextInfo]:
    """What each binary says of itself, by graph."""
    infos = {}
    for item, info in zip(items, inspect_all([item.binary for item in items]), strict=True):
        if isinstance(info, QnnciError):
            raise info
        infos[item.entry.graph] = info
    return infos


def _unfit(source: Source, soc: str, graphs: Mapping[str, Entry | None]) -> list[Finding]:
    found = []
    for graph, entry in graphs.items():
        if entry is None:
            found.append(finding("bundle-incomplete", "the build made no binary of it", graph=graph, soc=soc))
        elif not entry.passed and not source.include_failed:
            found.append(finding("bundle-failed", f"{entry.binary} did not pass its gates", graph=graph, soc=soc))
    return [each.at(stage="bundle") for each in found]


def _members(source: Source, items: Sequence[Item], infos: Mapping[str, ContextInfo]) -> list[Member]:
    match source.settings.layout:
        case "sherpa-onnx":
            return sherpa_onnx.members(source.settings, items, infos)
        case "onnxruntime":
            return onnxruntime.members(source.manifest, items)
        case "plain":
            return plain.members(source.manifest, items)


def _values(source: Source, key: Key, items: Sequence[Item]) -> dict[str, str]:
    """What the fields of a name stand for."""
    entries = [item.entry for item in items]
    soc, group = key
    values = {
        "project": source.manifest.name,
        "soc": soc,
        "arch": entries[0].dsp_arch,
        "precision": "-".join(dict.fromkeys(entry.precision for entry in entries)),
        "qairt": "-".join(dict.fromkeys(entry.qairt.removeprefix("v") for entry in entries)),
    }
    if source.settings.layout == "sherpa-onnx":
        values["group"] = group or source.manifest.name
    elif group:
        values["graph"] = group
    if pattern := source.settings.groups:
        parts = names.parts_of(pattern, group)
        if parts is None:
            raise UsageError(f"{group!r} is not of the form {pattern!r}", hint="see `bundle: {groups: …}`")
        values |= parts
    return values
