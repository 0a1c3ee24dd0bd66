"""A release that was downloaded, against its sums and its manifest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from qnnci import manifest_check
from qnnci.errors import QnnciError, UsageError
from qnnci.files import sha256
from qnnci.findings import Finding
from qnnci.manifest import Manifest, load
from qnnci.rules import finding
from qnnci.ship.assets import MANIFEST, SUMS
from qnnci.ship.release_files import ARCHIVES, listed, take
from qnnci.ship.sbom import SBOM


def check(folder: Path) -> tuple[Manifest, list[Finding]]:
    """Every way in which the files of a release differ from what it says of itself.

    Raises:
        UsageError: there is no manifest, or no SHA256SUMS, or one of them does not hold.

    """
    files = {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}
    for name in (MANIFEST, SUMS):
        if name not in files:
            hint = f"download all assets of the release: {MANIFEST} and {SUMS} are among them"
            raise UsageError(f"there is no {name}", where=str(folder), hint=hint)
    manifest = load(files[MANIFEST])
    found = list(_sums(files))
    if SBOM not in files:
        found.append(finding("sbom-missing", f"there is no {SBOM}"))
    wanted = {entry.sha256: entry.bytes for entry in manifest.entries}
    with tempfile.TemporaryDirectory(prefix="qnnci-verify-") as name:
        held = {sha256(path): path for path in files.values() if path.suffix == ".bin"}
        for path in files.values():
            if path.name.endswith(ARCHIVES):
                try:
                    held |= take(path, wanted, Path(name))
                except UsageError as error:
                    found.append(finding("archive-damaged", f"{path.name}: {error.message}"))
        found += _binaries(manifest, held, folder)
    return manifest, found


def _sums(files: dict[str, Path]) -> Iterator[Finding]:
    given = listed(_text(files[SUMS]))
    for name, digest in given.items():
        if name not in files:
            yield finding("file-missing", f"{name} is in {SUMS} and not there")
        elif sha256(files[name]) != digest:
            yield finding("file-changed", f"{name} is not the file that was published")
    for name in files:
        if name not in given and name != SUMS:
            yield finding("file-strange", f"{name} is not in {SUMS}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("cannot be read as text", where=str(path), hint="download it again") from error


def _binaries(manifest: Manifest, held: dict[str, Path], folder: Path) -> list[Finding]:
    """What the binaries say of themselves, each found by its sha256, wherever in the release it is."""
    places = {entry.binary: held.get(entry.sha256, folder / Path(entry.binary).name) for entry in manifest.entries}
    # The models beside the binaries are for those layouts that have them: the sums hold them.
    entries = tuple(entry.model_copy(update={"context_model": ""}) for entry in manifest.entries)
    bare = manifest.model_copy(update={"entries": entries})
    try:
        return manifest_check.check(bare, lambda path: places[path])
    except QnnciError as error:
        return [finding("not-a-context", error.message)]
