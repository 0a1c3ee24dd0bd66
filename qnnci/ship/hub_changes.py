"""What a repo on the Hub lacks of a build, and what an earlier build left there. Pure but for reading files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from qnnci.errors import UsageError
from qnnci.manifest import PublishedFile

CARD, MANIFEST = "README.md", "manifest.json"
_PART = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,199}")  # of a path: what every tool and address takes as it is


@dataclass(frozen=True, slots=True)
class Upload:
    """One file to publish under `path`, `bytes` long. `git_sha1` is its name in git, where it is not in LFS."""

    path: str
    file: Path
    sha256: str
    git_sha1: str
    bytes: int

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def record(self) -> PublishedFile:
        return PublishedFile(path=self.path, sha256=self.sha256, git_sha1=self.git_sha1)


@dataclass(frozen=True, slots=True)
class Remote:
    """A file that a repo has; `sha256` is empty where git itself keeps it, which knows it by `git_sha1` alone."""

    git_sha1: str
    sha256: str = ""

    def is_same(self, other: Upload | PublishedFile) -> bool:
        return self.sha256 == other.sha256 if self.sha256 else self.git_sha1 == other.git_sha1


@dataclass(frozen=True, slots=True)
class Changes:
    """What one commit has to do.

    Of the files to add, `over` are paths where people put something else. `left` are paths of an earlier build that
    somebody changed since, and that the new one has not: they stay.
    """

    add: tuple[Upload, ...]
    delete: tuple[str, ...]
    left: tuple[str, ...]
    over: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        return not self.add and not self.delete


def changes(wanted: Iterable[Upload], there: Mapping[str, Remote], earlier: Iterable[PublishedFile]) -> Changes:
    """What makes a repo have these files, and no more of an earlier build; what people put there is left alone."""
    by_path = {each.path: each for each in wanted}
    add = tuple(each for path, each in by_path.items() if path not in there or not there[path].is_same(each))
    before = {each.path: each for each in earlier if each.path in there and each.path not in {CARD, MANIFEST}}
    untouched = {path for path, each in before.items() if there[path].is_same(each)}
    gone = before.keys() - by_path.keys()
    over = {each.path for each in add if each.path in there} - untouched - {MANIFEST}
    return Changes(add, tuple(sorted(gone & untouched)), tuple(sorted(gone - untouched)), tuple(sorted(over)))


def upload(path: str, file: Path) -> Upload:
    """Hash one file.

    Raises:
        UsageError: a path that is none on the Hub, or an empty file.

    """
    if not all(_PART.fullmatch(part) for part in path.split("/")):
        hint = "letters, digits, . _ + and - only"
        raise UsageError(f"a file is not published under the name {path[:200]!r}", where=str(file.parent), hint=hint)
    size = file.stat().st_size
    if not size:
        raise UsageError("the file is empty", where=str(file), hint="build it again")
    content, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            content.update(chunk)
            blob.update(chunk)
    return Upload(path, file, content.hexdigest(), blob.hexdigest(), size)


def distinct(every: Iterable[Upload]) -> list[Upload]:
    """All of them, one of each path.

    Raises:
        UsageError: two files of one path, or one that is written anew each time.

    """
    found: dict[str, Upload] = {}
    for each in every:
        if each.path in {CARD, MANIFEST}:
            hint = "it is made of the manifest; edit the card on the Hub, outside of the marked part"
            raise UsageError(f"{each.path} is not among the files to give", where=str(each.file), hint=hint)
        other = found.setdefault(each.path, each)
        if other.file != each.file:
            raise UsageError(f"two files are {each.path}: {other.file} and {each.file}", hint="rename one")
    return list(found.values())


def earlier(manifest: str) -> tuple[PublishedFile, ...]:
    """What the manifest of a repo says was published with it; of one that another version wrote, what can be read.

    Raises:
        UsageError: the file is something else, which would be overwritten.

    """
    if not manifest:
        return ()
    try:
        data = json.loads(manifest)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or "entries" not in data:
        hint = "it is not this tool's and would be overwritten: rename it on the Hub, or publish in another repo"
        raise UsageError(f"the repo has a {MANIFEST} of another kind", hint=hint)
    try:
        return tuple(map(PublishedFile.model_validate, data.get("published") or ()))
    except (ValidationError, TypeError):
        return ()
