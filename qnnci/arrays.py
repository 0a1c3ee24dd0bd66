"""Named arrays and how samples of them are kept on disk."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qnnci.files import replacing

Arrays = dict[str, NDArray[Any]]


def save_samples(path: Path, samples: Iterable[tuple[Arrays, Arrays]]) -> None:
    """Write (feed, outputs) pairs to one .npz whose keys are `<index>/feed/<name>` and `<index>/want/<name>`.

    One pair is held at a time. The same pairs give the same bytes.
    """
    with replacing(path) as part, zipfile.ZipFile(part, "w") as archive:
        for index, pair in enumerate(samples):
            for kind, named in zip(("feed", "want"), pair, strict=True):
                for name, array in named.items():
                    with archive.open(f"{index}/{kind}/{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def load_samples(path: Path) -> list[tuple[Arrays, Arrays]]:
    """Read what `save_samples` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        return [(_named(archive, keys, "feed"), _named(archive, keys, "want")) for keys in _by_sample(archive.files)]


class Feeds:
    """The feeds of what `save_samples` wrote, or its outputs (`want`), read when they are asked for."""

    def __init__(self, path: Path, kind: Literal["feed", "want"] = "feed") -> None:
        self._path, self._kind = path, kind
        with np.load(path, allow_pickle=False) as archive:
            self._keys = _by_sample(archive.files)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> Arrays:
        with np.load(self._path, allow_pickle=False) as archive:
            return _named(archive, self._keys[index], self._kind)


def _by_sample(keys: Iterable[str]) -> list[list[str]]:
    samples: dict[int, list[str]] = {}
    for key in keys:
        samples.setdefault(int(key.split("/", 1)[0]), []).append(key)
    return [samples[index] for index in sorted(samples)]


def _named(archive: Any, keys: Iterable[str], kind: str) -> Arrays:
    return {name: archive[key] for key in keys for _, of, name in [key.split("/", 2)] if of == kind}
