"""The verbs sbom and verify-release."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import quote

import click

from qnnci import shards
from qnnci.commands.publish import API
from qnnci.errors import ExitCode, MachineError, ToolMissing, UsageError
from qnnci.files import write_text
from qnnci.findings import Finding, worst
from qnnci.http import TIMEOUT, check_url, download, session
from qnnci.manifest import Manifest
from qnnci.process import run
from qnnci.report import github
from qnnci.report.terminal import console, show_findings
from qnnci.rules import finding
from qnnci.ship import release_check
from qnnci.ship import sbom as document
from qnnci.ship.assets import MANIFEST, SUMS

_RELEASE = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)@(\S+)")
_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,253}")
_OVERFLOWS = 50  # releases of one tag: 50,000 files


def sbom(where: Path, output: Path | None) -> None:
    """Write or print the document of a manifest.

    Raises:
        UsageError: there is no manifest.

    """
    folder = where if where.is_dir() else where.parent
    text = document.sbom(shards.join(shards.find([where]), folder))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
        click.echo(f"wrote {output}")


def verify(where: str, api_url: str, *, attestation: bool, as_json: bool) -> ExitCode:
    """Check the files of a release; of one on GitHub, download it first.

    Raises:
        UsageError: no such folder or release, or one that is none of ours.
        MachineError: the download fails.
        ToolMissing: `gh`, where attestations are asked for.

    """
    named = _RELEASE.fullmatch(where)
    if Path(where).is_dir() or named is None:
        if not Path(where).is_dir():
            hint = "a folder with all files of the release, or owner/name@tag"
            raise UsageError(f"{where[:200]!r} is no folder", hint=hint)
        if attestation:
            raise UsageError("`--attestation` needs to know the repository: give owner/name@tag")
        return _told(*release_check.check(Path(where)), as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="qnnci-release-") as name:
        folder = Path(name)
        _fetch(api_url or os.environ.get("GITHUB_API_URL") or API, named[1], named[2], folder)
        manifest, found = release_check.check(folder)
        if attestation:
            found += _attested(folder, named[1])
        return _told(manifest, found, as_json=as_json)


def _told(manifest: Manifest, found: list[Finding], *, as_json: bool) -> ExitCode:
    bad = worst(found) == "error"
    if as_json:
        click.echo(json.dumps([each.to_json() for each in found], indent=2, ensure_ascii=False))
    show_findings(found, console(error=as_json))
    if not as_json:
        ended = "failed" if bad else "passed"
        click.echo(f"{ended}: {manifest.name}, {len(manifest.entries)} binaries, and {len(found)} findings")
    if github.on_github():
        github.report_findings(manifest.name, found, passed=not bad)
    return ExitCode.GATE if bad else ExitCode.OK


def _fetch(api: str, repo: str, tag: str, folder: Path) -> None:
    """Download the files of a public release, and of those that its files overflowed to."""
    for number in range(1, _OVERFLOWS + 1):
        name = tag if number == 1 else f"{tag}-{number}"
        assets = _assets(f"{api.rstrip('/')}/repos/{repo}/releases/tags/{quote(name, safe='')}")
        if assets is None:
            if number == 1:
                raise UsageError(f"{repo} has no public release {name}", hint="of a private one: `gh release download`")
            return
        for asset, url in assets.items():
            if number > 1 and asset == SUMS:
                (folder / asset).write_bytes((folder / asset).read_bytes() + _body(url, folder))
            else:
                click.echo(f"downloading {asset}", err=True)
                download(url, folder / asset)
        for note in folder.glob("*.validator"):
            note.unlink()


def _body(url: str, folder: Path) -> bytes:
    part = folder / "more.part"
    download(url, part)
    body = part.read_bytes()
    part.unlink()
    return body


def _assets(url: str) -> dict[str, str] | None:
    """Names and addresses of the files of a release; None where there is none."""
    check_url(url)
    try:
        with session() as http:
            answer = http.get(url, timeout=TIMEOUT, headers={"Accept": "application/vnd.github+json"})
        if answer.status_code == 404:  # noqa: PLR2004 - not found
            return None
        answer.raise_for_status()
        rows = answer.json()["assets"]
        found = {str(row["name"]): str(row["browser_download_url"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:  # requests' own errors are OSErrors
        raise MachineError(
            f"GitHub does not tell of the release ({type(error).__name__})", hint="try again later"
        ) from None
    if strange := [name for name in found if not _NAME.fullmatch(name)]:
        raise UsageError(f"the release has a file called {strange[0][:100]!r}", hint="this is no release of qnnci")
    return found


def _attested(folder: Path, repo: str) -> list[Finding]:
    if shutil.which("gh") is None:
        hint = "install GitHub's command line, https://cli.github.com, or leave `--attestation` out"
        raise ToolMissing("`gh` checks attestations, and is not installed", hint=hint)
    found = []
    for path in sorted(folder.iterdir()):
        if path.name in {SUMS, MANIFEST}:
            continue
        done = run(["gh", "attestation", "verify", str(path), "--repo", repo], timeout=120)
        if done.code:
            found.append(finding("not-attested", f"{path.name}: {' '.join(done.output.split())[-300:]}"))
    return found
