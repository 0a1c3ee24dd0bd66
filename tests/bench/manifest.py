"""`qnnci manifest check` of 200 binaries: each is hashed, and read again."""

from __future__ import annotations

import os
from pathlib import Path

from qnnci.manifest import Entry, devices, save
from tests.bench import twelve
from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed

COUNT = 200


def measure(folder: Path) -> list[Figure]:
    found = twelve.build(folder)
    entries = tuple(copied(folder, found.entries[number % len(found.entries)], number) for number in range(COUNT))
    save(folder / "many/manifest.json", found.model_copy(update={"entries": entries, "devices": devices(entries)}))
    took = min(timed(qnnci("manifest", "check", "many/manifest.json"), folder).seconds for _ in range(3))
    size = sum((folder / "many" / entry.binary).stat().st_size for entry in entries) / 1e6
    return [
        Figure(
            f"manifest check of {COUNT} binaries, {size:.0f} MB in the page cache",
            f"{took:.2f} s, {1000 * took / COUNT:.1f} ms each",
        )
    ]


def copied(folder: Path, entry: Entry, number: int) -> Entry:
    """The entry under a graph's name of its own, with links to its files."""
    name = f"{number:03}"
    (folder / "many" / name).mkdir(parents=True)
    places = {}
    for field in ("binary", "context_model"):
        path = Path(getattr(entry, field))
        places[field] = f"{name}/{path.name}"
        os.link(folder / "build" / path, folder / "many" / places[field])
    return entry.model_copy(update={"graph": f"g{name}", **places})
