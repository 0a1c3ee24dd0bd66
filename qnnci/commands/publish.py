"""The verb publish: what a build made, to a GitHub release."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from qnnci import shards
from qnnci.errors import ExitCode, UsageError
from qnnci.files import write_text
from qnnci.findings import Finding, worst
from qnnci.manifest import Entry, Manifest, devices, save
from qnnci.report import github
from qnnci.report.problems import clean
from qnnci.report.summary import capped, summary
from qnnci.report.terminal import console, show_findings
from qnnci.rules import finding
from qnnci.ship import github_release
from qnnci.ship.assets import MANIFEST, SUMS, Asset, assets, find, spread, sums
from qnnci.ship.github_api import Api
from qnnci.ship.licences import judge
from qnnci.ship.sbom import SBOM, sbom

API = "https://api.github.com"
_NOTES = 100_000  # bytes of a release's text; GitHub takes 125,000 characters


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for on the command line; texts are empty where nothing was."""

    tag: str
    repo: str
    manifest: Path | None
    licences: tuple[str, ...]
    allowed_because: str
    name: str
    notes: Path | None
    target: str
    prerelease: bool
    draft: bool
    update: bool
    api_url: str
    jobs: int


def release(patterns: Sequence[str], asked: Asked) -> ExitCode:
    """Judge, then draft, fill and publish; of more files than a release takes, the rest goes to further ones.

    Raises:
        UsageError: no token or repository, no such file, or a release that must not be changed.
        MachineError: GitHub or the network fails for too long.

    """
    repo, token = _repo(asked.repo), _token()
    manifest, folder = read(asked.manifest) if asked.manifest else (None, Path())
    chosen = find(patterns, Path()) if patterns else _of(manifest, folder)
    files = assets(path for path in chosen if path.name not in {SUMS, MANIFEST})
    found = judged(manifest, asked.licences, (each.name for each in files), asked.allowed_because)
    if refused(asked.tag, found):
        return ExitCode.GATE
    notes = _notes(manifest, asked)
    api = Api(asked.api_url or os.environ.get("GITHUB_API_URL") or API, repo, token)
    made = []
    with tempfile.TemporaryDirectory(prefix="qnnci-release-") as room:
        for number, (tag, part) in enumerate(spread(files, asked.tag).items()):
            if number:
                click.echo(f"a release takes {len(part)} files no more: these go to {tag}")
            beside = Path(room) / str(number)
            whole = [*part, *_written(beside, part, manifest if manifest and not number else None)]
            settings = github_release.Settings(
                tag, asked.name or tag, notes, asked.target, asked.prerelease, asked.draft, asked.update
            )
            made.append(github_release.publish(api, settings, whole, jobs=asked.jobs, say=_say))
    if github.on_github():
        more = {
            "url": made[0].url,
            "id": str(made[0].id),
            "tags": json.dumps([each.tag for each in made]),
            "assets": json.dumps([{"name": each.name, "sha256": each.sha256, "bytes": each.bytes} for each in files]),
        }
        github.report_findings(asked.tag, found, passed=True, more=more)
    return ExitCode.OK


def _say(text: str) -> None:
    click.echo(clean(text))


def _repo(given: str) -> str:
    repo = given or os.environ.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", repo) or ".." in repo:
        hint = "`--repo owner/name`; in a workflow GITHUB_REPOSITORY names it"
        raise UsageError(f"not a repository: {repo[:100]!r}" if repo else "which repository?", hint=hint)
    return repo


def _token() -> str:
    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
    if not token.strip():
        hint = "set GITHUB_TOKEN; in a workflow: `env: {GITHUB_TOKEN: ${{ github.token }}}`"
        raise UsageError("publishing needs a token", hint=hint)
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("the token in GITHUB_TOKEN is none: it has characters that no token has", hint="set it again")
    return token


def read(where: Path) -> tuple[Manifest, Path]:
    """The manifest of a file or folder, of all jobs, and where its paths start.

    Raises:
        UsageError: there is none.

    """
    folder = where if where.is_dir() else where.parent
    return shards.join(shards.find([where]), folder), folder


def _of(manifest: Manifest | None, folder: Path) -> list[Path]:
    """Where no files are named: the binaries of the manifest, with what stands beside each."""
    if manifest is None:
        raise UsageError("nothing to publish was named", hint="name files, or `--manifest build/manifest.json`")
    return [path for entry in manifest.entries for path in beside(entry, folder)]


def beside(entry: Entry, folder: Path) -> list[Path]:
    """The binary of an entry, and its context model and provenance where they are there.

    Raises:
        UsageError: there is no binary.

    """
    binary = folder / entry.binary
    if not binary.is_file():
        hint = "publish from where it was built, or from all files of the jobs"
        raise UsageError(f"the manifest's {entry.binary} is not there", where=str(folder), hint=hint)
    others = [folder / entry.context_model, binary.with_suffix(".json")]
    return [binary, *(path for path in others if path.is_file())]


def judged(
    manifest: Manifest | None, licences: Sequence[str], names: Iterable[str], allowed_because: str
) -> list[Finding]:
    """What speaks against publishing files of these names; the licences are in place of the manifest's."""
    found = []
    if manifest and not manifest.passed:
        found.append(finding("not-passed", f"the build of {manifest.name} did not pass"))
    told = licences or ((manifest.license,) if manifest else (None,))
    return [*found, *judge(told, list(names), allowed_because)]


def refused(name: str, found: Sequence[Finding]) -> bool:
    """Show what speaks against publishing it under this name; whether that forbids it."""
    show_findings(found, console())
    if worst(found) != "error":
        return False
    if github.on_github():
        github.report_findings(name, found, passed=False)
    return True


def _notes(manifest: Manifest | None, asked: Asked) -> str:
    text = summary(manifest) if manifest else ""
    if asked.notes:
        try:
            text = asked.notes.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the notes: {error}", where=str(asked.notes)) from error
    reason = f"\nPublished because: {asked.allowed_because}\n" if asked.allowed_because else ""
    return capped(text, _NOTES) + reason


def _written(room: Path, part: Sequence[Asset], manifest: Manifest | None) -> list[Asset]:
    """The manifest, with the paths that files have in the release, and the sums of everything."""
    room.mkdir()
    made: list[Asset] = []
    if manifest:
        names = {each.sha256: each.name for each in part}
        entries = tuple(
            entry.model_copy(update={"binary": names[entry.sha256], "context_model": Path(entry.context_model).name})
            if entry.sha256 in names
            else entry
            for entry in manifest.entries
        )
        published = manifest.model_copy(update={"entries": entries, "devices": devices(entries)})
        save(room / MANIFEST, published)
        made += assets([room / MANIFEST])
        if SBOM not in names.values():  # a workflow attests its own before
            write_text(room / SBOM, sbom(published))
            made += assets([room / SBOM])
    write_text(room / SUMS, sums([*part, *made]))
    return [*made, *assets([room / SUMS])]
