"""The manifests of many jobs, joined into one, and what the plan says is missing from it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qnnci.errors import UsageError
from qnnci.findings import Finding
from qnnci.manifest import Entry, Manifest, SharedContext, StageTime, Wanted, devices, load
from qnnci.rules import finding

NAME = "manifest.json"


class Shard(NamedTuple):
    """One build's manifest and where it stands."""

    path: Path
    manifest: Manifest


def find(folders: Iterable[Path]) -> list[Shard]:
    """Read the manifest of each folder: its own, else those of the folders right below it; a file is one itself.

    Raises:
        UsageError: one of them has none, or one that does not hold.

    """
    return [Shard(path, load(path)) for folder in folders for path in _manifests(folder)]


def _manifests(folder: Path) -> list[Path]:
    if folder.is_file() or not folder.exists():
        return [folder]
    paths = [folder / NAME] if (folder / NAME).is_file() else sorted(folder.glob(f"*/{NAME}"))
    if not paths:
        hint = "give a folder that `qnnci build` wrote, or one of such folders"
        raise UsageError(f"there is no {NAME} in {folder} or right below it", hint=hint)
    return paths


def join(shards: Sequence[Shard], folder: Path) -> Manifest:
    """One manifest of all, whose paths start from `folder`; it passed where all did.

    Raises:
        UsageError: builds of different projects, or two of one target that differ.

    """
    first = shards[0]
    for other in shards[1:]:
        if (other.manifest.name, other.manifest.license) != (first.manifest.name, first.manifest.license):
            told = " and ".join(f"{each.path} ({each.manifest.name})" for each in (first, other))
            raise UsageError(f"these are of different projects: {told}")
    entries = _entries(shards, folder)
    findings = dict.fromkeys(each for shard in shards for each in shard.manifest.findings)
    return Manifest(
        name=first.manifest.name,
        license=first.manifest.license,
        passed=all(shard.manifest.passed for shard in shards),
        tools=_tools([shard.manifest.tools for shard in shards]),
        targets=tuple(dict.fromkeys(target for shard in shards for target in shard.manifest.targets)),
        entries=entries,
        devices=devices(entries),
        contexts=tuple(
            _moved_context(each, shard.path.parent, folder) for shard in shards for each in shard.manifest.contexts
        ),
        chains=tuple(dict.fromkeys(chain for shard in shards for chain in shard.manifest.chains)),
        findings=tuple(findings),
        stages=_stages([shard.manifest for shard in shards]),
        settings=_settings([shard.manifest for shard in shards]),
    )


def _entries(shards: Sequence[Shard], folder: Path) -> tuple[Entry, ...]:
    joined: dict[tuple[str, str], tuple[Path, Entry]] = {}
    for path, manifest in shards:
        for entry in manifest.entries:
            before, other = joined.setdefault((entry.graph, entry.soc), (path, entry))
            if other.sha256 != entry.sha256:
                message = f"{entry.graph} for {entry.soc} is another binary in {before} than in {path}"
                raise UsageError(message, hint="join the builds of one run only, each target once")
            if not entry.passed:  # of one that was judged twice, the worse judgement holds
                joined[entry.graph, entry.soc] = (path, entry)
    return tuple(_moved(entry, path.parent, folder) for path, entry in joined.values())


def _moved(entry: Entry, old: Path, new: Path) -> Entry:
    start = os.path.relpath(old, new)
    paths = {"binary": entry.binary, "context_model": entry.context_model}
    return entry.model_copy(update={name: os.path.normpath(Path(start, path)) for name, path in paths.items() if path})


def _moved_context(shared: SharedContext, old: Path, new: Path) -> SharedContext:
    def moved(path: str) -> str:
        return os.path.normpath(Path(os.path.relpath(old, new), path))

    graphs = tuple(each.model_copy(update={"context_model": moved(each.context_model)}) for each in shared.graphs)
    return shared.model_copy(update={"binary": moved(shared.binary), "graphs": graphs})


def _stages(manifests: Iterable[Manifest]) -> tuple[StageTime, ...]:
    """Every stage once: what one job did, others found done."""
    best: dict[tuple[str, str, str, str], StageTime] = {}
    for each in (stage for manifest in manifests for stage in manifest.stages):
        key = (each.graph, each.soc, each.stage, each.began)
        if key not in best or best[key].state == "cached":
            best[key] = each
    return tuple(sorted(best.values(), key=lambda each: each.began))


def _settings(manifests: Iterable[Manifest]) -> dict[str, Any]:
    """Those of one project: the first job's, with the graphs of all."""
    every = [manifest.settings for manifest in manifests if manifest.settings]
    graphs = {name: each for settings in reversed(every) for name, each in settings.get("graphs", {}).items()}
    return {**every[0], "graphs": graphs} if every else {}


def _tools(every: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Versions of what took part; where jobs had different ones, all of them."""
    names = dict.fromkeys(name for tools in every for name in tools)
    return {name: ", ".join(dict.fromkeys(tools[name] for tools in every if name in tools)) for name in names}


def planned(text: str) -> list[Wanted]:
    """Read what `qnnci matrix` printed: the targets of all its shards.

    Raises:
        UsageError: it is something else.

    """
    try:
        shards: list[dict[str, Any]] = json.loads(text)["shards"]
        return [
            Wanted(graph=graph, soc=soc)
            for shard in shards
            for graph in shard.get("graphs", shard["graph"]).split(",")
            for soc in shard["socs"].split(",")
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"this is not a plan: {text[:80]!r}", hint="give what `qnnci matrix` printed") from error


def missing(manifest: Manifest, plan: Sequence[Wanted] = ()) -> list[Finding]:
    """A finding for each target that was planned or asked for, and that no binary or error tells of."""
    told = {(entry.graph, entry.soc) for entry in manifest.entries}
    told |= {(each.graph, each.soc) for each in manifest.findings if each.severity == "error"}
    asked = set(manifest.targets)
    found = []
    for target in dict.fromkeys((*plan, *manifest.targets)):
        if target not in asked:
            message = "it was planned, but no manifest tells of it"
        elif (target.graph, target.soc) in told or (target.graph, "") in told:
            continue
        else:
            message = "it was begun, but neither a binary nor a finding came of it"
        found.append(finding("target-missing", message, graph=target.graph, soc=target.soc))
    return found
