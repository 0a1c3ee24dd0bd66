"""Bringing a QAIRT SDK onto this machine: licence, space, download, proof, unpacking, and one name at the end of it.

In `<cache>/sdk`, `<version>` is an SDK (a link, where it was unpacked elsewhere), `<version>.json` what its zip was
when it was first used, `<version>.python` the tools' venv, and `.download-<version>` a zip that is still coming.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache as memoized
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Literal

from qnnci import files
from qnnci.errors import MachineError, UsageError
from qnnci.toolchain import sdk_archive, sdk_sources
from qnnci.toolchain.sdk import DEFAULT_VERSION, VERSION, Sdk, describe, is_root, path_of, root_of

MARK = ".qnnci.json"  # in an SDK that was unpacked here: what of it, from which zip
UNPACKED = 3.0  # times the zip's size, where the zip has not come yet to be asked
GUESS = 2_400_000_000  # bytes of a zip whose size nobody tells: as large as the largest known

# pinned: the digest is in data/sdks.csv. known: as at its first use here. new: this is the first use. none: no zip.
Trust = Literal["pinned", "known", "new", "none"]


@dataclass(frozen=True, slots=True)
class Pin:
    """A zip as data/sdks.csv knows it; `source` says whose word that is."""

    bytes: int
    sha256: str
    source: str


@dataclass(frozen=True, slots=True)
class Installed:
    """An SDK that is there now; `fresh` where this call brought it."""

    sdk: Sdk
    sha256: str
    trust: Trust
    fresh: bool


@memoized
def pins() -> dict[str, Pin]:
    lines = (resources("qnnci") / "data" / "sdks.csv").read_text(encoding="utf-8").splitlines()
    return {row["version"]: Pin(int(row["bytes"]), row["sha256"], row["source"]) for row in csv.DictReader(lines)}


def install(
    version: str | None,
    *,
    source: str = "mirror",
    needs: Collection[str] = sdk_archive.DEFAULT_NEEDS,
    accepted: bool,
    cache: Path,
    say: Callable[[str], None] = lambda _: None,
) -> Installed:
    """Make an SDK stand in the cache: from a folder as a link, from all else unpacked as far as `needs` go.

    It appears whole or not at all, whatever happens and whoever else installs. One that is there stays as it is.

    Raises:
        UsageError: the licence was not accepted, or the version, source or zip is not one to use.
        MachineError: not enough space, or the network or disk failed.

    """
    if not accepted:
        raise UsageError(licence(version or DEFAULT_VERSION), hint=LICENCE_HINT)
    if unknown := sorted(set(needs) - set(sdk_archive.NEEDS)):
        raise UsageError(f"unknown use {unknown[0]!r}", hint=f"known are {', '.join(sdk_archive.NEEDS)}")
    if version and not re.fullmatch(VERSION, version):
        raise UsageError(
            f"{version!r} is not the whole version of an SDK", hint=f"it has four parts, as in {DEFAULT_VERSION}"
        )
    store = cache / "sdk"
    if choices := sdk_sources.addresses(source, version or DEFAULT_VERSION):
        return _from_network(choices, version or DEFAULT_VERSION, set(needs), store, say)
    path = path_of(source)
    if path.is_dir():
        return _from_folder(path, version, store)
    if path.is_file():
        return _from_zip(path, version, set(needs), store, say)
    raise UsageError(f"there is no {source[:200]}", hint=f"sources are {sdk_sources.FORMS}")


LICENCE_HINT = (
    "if you accept it, say so: `--accept-license`, or `accept-qairt-license: true` in the action (variable "
    "QNNCI_INPUT_ACCEPT_QAIRT_LICENSE)"
)


def licence(version: str) -> str:
    return (
        f"the QAIRT SDK {version} is Qualcomm's, under Qualcomm's own licence: nobody accepts it for you. Its text is "
        "LICENSE.pdf at the top of the SDK; before that, see Qualcomm AI Runtime Community at "
        "https://softwarecenter.qualcomm.com"
    )


def _from_folder(path: Path, version: str | None, store: Path) -> Installed:
    root = root_of(path)
    if root is None:
        raise UsageError(f"{path} holds no QAIRT SDK", hint="name the folder that has lib and include in it")
    sdk = describe(root)
    _demand_version(sdk.version, version, path)
    place = store / sdk.version
    if place.exists() and place.resolve() == root.resolve():
        return Installed(Sdk(place, sdk.version), "", "none", fresh=False)
    with files.locked(store / f"{sdk.version}.lock"), _scratch(store, sdk.version) as scratch:
        link = scratch / sdk.version
        link.symlink_to(root.resolve())
        _swap(link, place, scratch)
    return Installed(Sdk(place, sdk.version), "", "none", fresh=True)


def _from_network(
    choices: tuple[str, ...], version: str, needs: set[str], store: Path, say: Callable[[str], None]
) -> Installed:
    with _alone(store, version, say):
        if there := _there(store, version, needs, None):
            return there
        pin = pins().get(version)
        need = pin.bytes if pin else sdk_sources.size(choices[0]) or GUESS
        folder = store / f".download-{version}"
        with files.disk_errors(folder):
            folder.mkdir(exist_ok=True)
        have = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        _demand_space(store, max(0, need - have) + round(UNPACKED * need), version)
        say(f"downloading QAIRT {version}, about {need / 1e9:.1f} GB, from {choices[0]}")
        path = sdk_sources.download(choices, folder)
        try:
            done = _unpacked(path, version, needs, store, choices[0], say)
        except UsageError:
            shutil.rmtree(folder, ignore_errors=True)  # it would be found again, and refused again
            raise
        shutil.rmtree(folder, ignore_errors=True)
        return done


def _from_zip(path: Path, version: str | None, needs: set[str], store: Path, say: Callable[[str], None]) -> Installed:
    found = sdk_archive.plan(path, needs).version
    _demand_version(found, version, path)
    with _alone(store, found, say):
        return _unpacked(path, found, needs, store, path.name, say)


def _unpacked(
    path: Path, version: str, needs: set[str], store: Path, source: str, say: Callable[[str], None]
) -> Installed:
    """Prove a zip that is here and unpack it. The caller holds the version's lock."""
    digest = files.sha256(path)
    trust = _judge(digest, version, store, path)
    if there := _there(store, version, needs, digest):
        return there
    needs = needs | _needs_there(store / version)
    chosen = sdk_archive.plan(path, needs)
    _demand_version(chosen.version, version, path)
    _demand_space(store, chosen.bytes, version)
    say(f"unpacking {len(chosen.entries)} files, {chosen.bytes / 1e9:.1f} GB")
    with _scratch(store, version) as scratch:
        root = scratch / version
        sdk_archive.unpack(path, chosen, root)
        describe(root)  # its sdk.yaml may contradict
        if not is_root(root):
            raise UsageError("the zip has nothing under lib or include that is needed", where=str(path))
        note = {"version": version, "sha256": digest, "bytes": path.stat().st_size, "source": source}
        files.write_json(root / MARK, {**note, "needs": sorted(needs)})
        if trust == "new":
            files.write_json(_record(store, version), note)
        os.sync()  # the contents of thousands of files, before their folder has its name
        _swap(root, store / version, scratch)
    return Installed(Sdk(store / version, version), digest, trust, fresh=True)


def _there(store: Path, version: str, needs: set[str], digest: str | None) -> Installed | None:
    """The SDK that is there already, if it has what is needed and, where known, is of that very zip."""
    place = store / version
    note = _note(place / MARK)
    if not is_root(place) or not needs <= _needs_there(place) or digest not in (None, note.get("sha256")):
        return None
    kept = str(note.get("sha256", ""))
    trust: Trust = "none" if not kept else "pinned" if version in pins() else "known"
    return Installed(Sdk(place, version), kept, trust, fresh=False)


def _needs_there(place: Path) -> set[str]:
    """What an SDK has been unpacked for; one that was not unpacked here is whole."""
    if place.is_symlink():
        return set(sdk_archive.NEEDS)
    needs = _note(place / MARK).get("needs")
    return set(needs) & set(sdk_archive.NEEDS) if isinstance(needs, list) else set()


def _judge(digest: str, version: str, store: Path, path: Path) -> Trust:
    pin, record = pins().get(version), _record(store, version)
    wanted = pin.sha256 if pin else _note(record).get("sha256")
    if wanted is None:
        return "new"
    if digest == wanted:
        return "pinned" if pin else "known"
    whose = pin.source if pin else f"its first use here, {record}"
    raise UsageError(
        f"the zip of QAIRT {version} has sha256 {digest}, but {wanted} is known from {whose}",
        where=str(path),
        hint="do not use it, unless the vendor says that the file was changed"
        + ("" if pin else f"; then remove {record}"),
    )


def _record(store: Path, version: str) -> Path:
    return store / f"{version}.json"


def _note(path: Path) -> dict[str, Any]:
    try:
        note = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _demand_version(found: str, version: str | None, path: Path) -> None:
    if version not in (None, found):
        raise UsageError(f"this is QAIRT {found}, but {version} was asked for", where=str(path))


def _demand_space(store: Path, count: int, version: str) -> None:
    free = shutil.disk_usage(store).free
    if free < count:
        raise MachineError(
            f"QAIRT {version} needs about {count / 1e9:.1f} GB on the disk of {store}, which has {free / 1e9:.1f} GB",
            hint="free some space, or name another disk in QNNCI_CACHE",
        )


@contextlib.contextmanager
def _alone(store: Path, version: str, say: Callable[[str], None]) -> Iterator[None]:
    def waiting() -> None:
        say(f"another process installs QAIRT {version}: waiting for it")

    with files.locked(store / f"{version}.lock", waiting=waiting):
        yield


@contextlib.contextmanager
def _scratch(store: Path, version: str) -> Iterator[Path]:
    """A folder for what is not done yet. It has one name for each version, so a killed run's is found and removed."""
    scratch = store / f"{files.SCRATCH}{version}"
    with files.disk_errors(scratch):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _swap(made: Path, place: Path, scratch: Path) -> None:
    """Let `made` stand as `place`; what stood there goes away with the scratch folder."""
    with files.disk_errors(place):
        if place.is_symlink() or place.exists():
            place.rename(scratch / "old")
        made.rename(place)
