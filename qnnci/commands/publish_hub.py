"""The verb publish huggingface: what a build made, to a model repo on the Hub, with a card."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnnci.commands.publish import beside, judged, read, refused
from qnnci.errors import ExitCode, UsageError
from qnnci.flags import DEFAULT_CONFIG
from qnnci.manifest import Entry, Manifest, devices, save
from qnnci.project import HUB_REPO, Bundle, HuggingFace, Layout
from qnnci.project_file import ProjectFile, load
from qnnci.report import card, github
from qnnci.report.problems import clean
from qnnci.ship import hub_publish
from qnnci.ship.assets import find
from qnnci.ship.hub_changes import MANIFEST, Upload, distinct, upload

if TYPE_CHECKING:
    from qnnci.findings import Finding

_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_ARCHIVES = (".tar.bz2", ".tar.zst", ".zip")
_MESSAGE = 200  # characters of a commit's first line


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for on the command line; texts are empty where nothing was."""

    repo: str
    config: str | None
    manifest: Path | None
    add: tuple[str, ...]
    binaries: bool
    layout: Layout | None
    licences: tuple[str, ...]
    allowed_because: str
    private: bool | None
    revision: str
    pull_request: bool
    message: str
    jobs: int


def run(asked: Asked) -> ExitCode:
    """Judge, then make the repo have the files and their card by one commit.

    Raises:
        UsageError: no token, repo or manifest, or something on the Hub that must not be changed.
        MachineError: the Hub or the network fails for too long.

    """
    file = load(Path(asked.config or DEFAULT_CONFIG)) if asked.config or Path(DEFAULT_CONFIG).exists() else None
    manifest, folder = read(asked.manifest or (file.base / file.project.output if file else Path("build")))
    if file and file.project.name != manifest.name:
        message = f"{file.path} is of the project {file.project.name}, the manifest of {manifest.name}"
        raise UsageError(message, hint="name the project file with `-c`")
    about = file.project.publish.huggingface if file else HuggingFace()
    settings = _settings(asked, about, manifest)
    binaries = distinct(_binaries(manifest, folder)) if asked.binaries else []
    added = [upload(path.name, path) for path in find(asked.add, Path())] if asked.add else []
    files = distinct([*binaries, *added])
    if not files:
        raise UsageError("there is nothing to publish", hint="name files with `--add`")
    found = judged(manifest, asked.licences, (each.name for each in files), asked.allowed_because)
    if refused(settings.repo, found):
        return ExitCode.GATE
    with tempfile.TemporaryDirectory(prefix="qnnci-hub-") as room:
        told = _published(manifest, files, there=asked.binaries)
        save(Path(room) / MANIFEST, told)
        facts = _facts(asked, about, settings.repo, told, binaries, added, _layout(asked, file))
        whole = [*files, upload(MANIFEST, Path(room) / MANIFEST)]
        made = hub_publish.publish(settings, whole, lambda old: card.card(facts, old), _say)
    _report(settings.repo, found, files, made)
    return ExitCode.OK


def _say(text: str) -> None:
    click.echo(clean(text))


def _layout(asked: Asked, file: ProjectFile | None) -> Layout:
    return asked.layout or (file.project.bundle if file else Bundle()).layout


def _settings(asked: Asked, about: HuggingFace, manifest: Manifest) -> hub_publish.Settings:
    repo, revision = asked.repo or about.repo or "", asked.revision or "main"
    if not re.fullmatch(HUB_REPO, repo):
        hint = "`--repo org/name`, or `publish: {huggingface: {repo: org/name}}` in the project file"
        raise UsageError(f"not a repo on the Hub: {repo[:100]!r}" if repo else "which repo on the Hub?", hint=hint)
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise UsageError(f"not a branch: {revision[:100]!r}", hint="letters, digits, . _ / and - only")
    if asked.pull_request and revision != "main":
        raise UsageError("a pull request is made against main alone", hint="leave out `--revision` or `--pr`")
    socs = ", ".join(dict.fromkeys(entry.soc for entry in manifest.entries))
    message = " ".join((asked.message or f"{manifest.name} for {socs}").split())
    return hub_publish.Settings(
        repo,
        message if len(message) <= _MESSAGE else f"{message[: _MESSAGE - 1]}…",
        _provenance(),
        revision,
        asked.pull_request,
        asked.private,
        asked.jobs,
    )


def _provenance() -> str:
    commit, run = _workflow()
    return "\n".join(line for line in (commit and f"Built of {commit}", run) if line)


def _workflow() -> tuple[str, str]:
    """The commit that a workflow runs for and the address of the run, empty elsewhere."""
    env = os.environ
    server, repo, number = (env.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
    commit = env.get("GITHUB_SHA", "")
    return (f"{repo}@{commit}" if commit else "", f"{server}/{repo}/actions/runs/{number}" if number else "")


def _binaries(manifest: Manifest, folder: Path) -> Iterator[Upload]:
    """Each binary with what stands beside it, in a folder of its graph and SoC, whichever job built it."""
    for entry in manifest.entries:
        for path in beside(entry, folder):
            made = upload(f"{entry.graph}/{entry.soc}/{path.name}", path)
            if path == folder / entry.binary and made.sha256 != entry.sha256:
                hint = "`qnnci manifest check` says more; build it again"
                raise UsageError("it is not the binary that was judged", where=str(path), hint=hint)
            yield made


def _published(manifest: Manifest, files: list[Upload], *, there: bool) -> Manifest:
    """The manifest as it is on the Hub: where each file is, and which ones came with it."""
    entries = tuple(map(_moved, manifest.entries)) if there else manifest.entries
    records = tuple(each.record for each in files)
    return manifest.model_copy(update={"entries": entries, "devices": devices(entries), "published": records})


def _moved(entry: Entry) -> Entry:
    paths = {"binary": entry.binary, "context_model": entry.context_model}
    folder = f"{entry.graph}/{entry.soc}"
    return entry.model_copy(update={key: f"{folder}/{Path(path).name}" for key, path in paths.items() if path})


def _facts(
    asked: Asked,
    about: HuggingFace,
    repo: str,
    manifest: Manifest,
    binaries: list[Upload],
    added: list[Upload],
    layout: Layout,
) -> card.Facts:
    paths = {each.path for each in binaries}
    commit, run = _workflow()
    known: Mapping[tuple[str, str], str] = {
        (entry.graph, entry.soc): entry.binary for entry in manifest.entries if entry.binary in paths
    }
    return card.Facts(
        repo=repo,
        manifest=manifest,
        about=about,
        layout=layout,
        license=" AND ".join(asked.licences) or manifest.license or "",
        binaries=known,
        context_models=sorted(entry.context_model for entry in manifest.entries if entry.context_model in paths),
        archives=sorted(each.path for each in added if each.path.endswith(_ARCHIVES)),
        notice=next((each.path for each in added if re.match("(?i)licen[cs]e", each.path)), ""),
        allowed_because=asked.allowed_because,
        commit=commit,
        run=run,
    )


def _report(repo: str, found: list[Finding], files: list[Upload], made: hub_publish.Published) -> None:
    if github.on_github():
        assets = [{"name": each.path, "sha256": each.sha256, "bytes": each.bytes} for each in files]
        more = {"url": made.url, "commit": made.commit, "pull-request": made.pull_request, "assets": json.dumps(assets)}
        github.report_findings(repo, found, passed=True, more=more)
