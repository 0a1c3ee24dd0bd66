"""One binary on its way into an archive: its entry in the manifest and its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import UsageError
from qnnci.manifest import Entry
from qnnci.ship.member import Member


@dataclass(frozen=True, slots=True)
class Item:
    """`folder` is where the manifest's paths start."""

    entry: Entry
    folder: Path

    @property
    def binary(self) -> Path:
        return self._file(self.entry.binary)

    @property
    def context_model(self) -> Path:
        return self._file(self.entry.context_model)

    def member(self, name: str) -> Member:
        """The binary under a name, to be held against the manifest while it is read."""
        return Member.of_file(name, self.binary, sha256=self.entry.sha256, size=self.entry.bytes)

    def _file(self, name: str) -> Path:
        if not name.isprintable() or Path(name).is_absolute():
            raise UsageError(f"the manifest names {name!r}, which is no path from its folder", hint="build it again")
        return self.folder / name
