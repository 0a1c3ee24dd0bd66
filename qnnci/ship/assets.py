"""The files of a release: their names, sums and sizes, and how they are spread over releases. Pure but for reading."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import UsageError
from qnnci.files import sha256

MOST_BYTES = (1 << 31) - 1  # GitHub takes no asset of 2 GiB or more
MOST_ASSETS = 1000  # and no more of a release
SUMS, MANIFEST = "SHA256SUMS", "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,253}")  # GitHub writes other characters anew, as dots


@dataclass(frozen=True, slots=True)
class Asset:
    """One file to publish, `bytes` long."""

    name: str
    path: Path
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Remote:
    """One asset that a release has. `sha256` is empty where GitHub does not tell it; `whole` once all of it arrived."""

    id: int
    name: str
    bytes: int
    sha256: str
    whole: bool

    def is_same(self, asset: Asset) -> bool:
        return self.arrived(asset) and self.sha256 == asset.sha256

    def arrived(self, asset: Asset) -> bool:
        """Of what was sent by us just now: older GitHub Enterprise tells no digest."""
        return self.whole and self.bytes == asset.bytes and self.sha256 in ("", asset.sha256)


@dataclass(frozen=True, slots=True)
class Work:
    """What a release lacks: ids of assets that have to go, and files that have to come."""

    delete: tuple[int, ...]
    upload: tuple[Asset, ...]

    @property
    def nothing(self) -> bool:
        return not self.delete and not self.upload


def work(wanted: Sequence[Asset], there: Sequence[Remote], sent: Collection[str] = ()) -> Work:
    """What makes a release have exactly these files: half ones, others and strangers go.

    `sent` are names of what was uploaded just now, which is believed to be right where no digest is told.
    """
    by_name = {each.name: each for each in wanted}
    kept: set[str] = set()
    delete = []
    for each in there:
        asset = by_name.get(each.name)
        if asset and each.name not in kept and (each.is_same(asset) or (each.name in sent and each.arrived(asset))):
            kept.add(each.name)
        else:
            delete.append(each.id)
    return Work(tuple(delete), tuple(each for each in wanted if each.name not in kept))


def find(patterns: Iterable[str], base: Path) -> list[Path]:
    """The files that names, folders and patterns stand for; of a folder, those right in it.

    Raises:
        UsageError: one stands for nothing.

    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        place = base / pattern
        if place.is_dir():
            files = sorted(each for each in place.iterdir() if each.is_file())
        elif place.is_file():
            files = [place]
        else:
            files = sorted(each for each in base.glob(pattern) if each.is_file()) if _is_pattern(pattern) else []
        if not files:
            hint = "name files, folders or patterns such as *.tar.bz2"
            raise UsageError(f"there is no file {pattern[:200]}", hint=hint)
        found |= dict.fromkeys(files)
    return list(found)


def _is_pattern(text: str) -> bool:
    return bool(text) and not text.startswith("/") and any(each in text for each in "*?[")


def assets(paths: Iterable[Path]) -> list[Asset]:
    """Hash what is to be published.

    Raises:
        UsageError: two files of one name, a name that GitHub would change, an empty file, or one that is too large.

    """
    made: dict[str, tuple[Path, int]] = {}
    for path in paths:
        size = path.stat().st_size
        if not _NAME.fullmatch(path.name):
            hint = "letters, digits, . _ + and - only"
            raise UsageError(f"GitHub would rename {path.name[:200]!r}", where=str(path.parent), hint=hint)
        if path.name in made:
            raise UsageError(f"two files are called {path.name}: {made[path.name][0]} and {path}", hint="rename one")
        if not size:
            raise UsageError("the file is empty", where=str(path), hint="build it again")
        if size > MOST_BYTES:
            raise UsageError(
                f"{size:,} bytes: GitHub takes no asset of 2 GiB or more",
                where=str(path),
                hint="bundle each graph by itself: `qnnci bundle --name '{project}-{graph}-{soc}'`",
            )
        made[path.name] = path, size
    with ThreadPoolExecutor() as threads:  # hashing leaves Python's lock
        digests = threads.map(sha256, [path for path, _ in made.values()])
        return [
            Asset(path.name, path, digest, size) for (path, size), digest in zip(made.values(), digests, strict=True)
        ]


def spread(every: Sequence[Asset], tag: str, most: int = MOST_ASSETS - 2) -> dict[str, list[Asset]]:
    """By tag, the files of each release: what one does not hold goes to `<tag>-2`, and so on, in the order of names."""
    ordered = sorted(every, key=lambda each: each.name)
    parts = [ordered[start : start + most] for start in range(0, len(ordered), most)] or [[]]
    return {tag if number == 0 else f"{tag}-{number + 1}": part for number, part in enumerate(parts)}


def sums(every: Sequence[Asset]) -> str:
    """What `sha256sum --check` reads."""
    return "".join(f"{each.sha256}  {each.name}\n" for each in sorted(every, key=lambda each: each.name))


def remote(data: object) -> Remote | None:
    """An asset as GitHub tells of it; None where that makes no sense."""
    if not isinstance(data, Mapping):
        return None
    number, name, size = data.get("id"), data.get("name"), data.get("size")
    digest = data.get("digest")
    if not isinstance(number, int) or not isinstance(name, str) or not isinstance(size, int):
        return None
    told = digest.removeprefix("sha256:") if isinstance(digest, str) and digest.startswith("sha256:") else ""
    return Remote(number, name, size, told, data.get("state") == "uploaded")
