"""One made SDK, as its tools see it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MARK = "-standin"


@dataclass(frozen=True)
class Kit:
    """`root` is the folder that holds `bin` and `lib`; its name is the version."""

    root: Path

    @property
    def build(self) -> str:
        """What the real tools build into their logs and binaries: `v` and the version."""
        return f"v{self.root.name}"

    @cached_property
    def minor(self) -> tuple[int, int]:
        return minor(self.root.name)


def minor(version: str) -> tuple[int, int]:
    """(2, 40) of 2.40.0.251030-standin."""
    found = re.match(r"(\d+)\.(\d+)\.\d+\.\d+.*-standin$", version)
    if not found:
        raise ValueError(f"{version} is no four-part version that ends in {MARK}")
    return int(found[1]), int(found[2])
