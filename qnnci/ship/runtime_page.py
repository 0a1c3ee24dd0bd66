"""What goes beside run-time libraries for people and programs: README.md, SHA256SUMS and runtime-libs.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from qnnci.ship.member import Member
from qnnci.ship.runtime_check import Library
from qnnci.ship.runtime_set import Need
from qnnci.toolchain import elf

RECORD = "runtime-libs.json"


@dataclass(frozen=True, slots=True)
class About:
    """What is told of a set: its platform, layout, version and source."""

    platform: str
    layout: str
    version: str
    source: str


def readme(about: About, libraries: Sequence[Library], needed: Need) -> Member:
    """Where the libraries go, and what the program sets before it loads them."""
    text = (files("qnnci") / "data" / f"runtime-libs-{about.platform}.md").read_text(encoding="utf-8")
    own = {each.name for each in libraries}
    needs = {name for each in libraries if each.role == "host" for name in _needs(each) if name not in own}
    given = {
        "VERSION": about.version,
        "SOURCE": about.source,
        "ARCHES": ", ".join(f"v{arch}" for arch in needed.socs),
        "SOCS": ", ".join(soc for socs in needed.socs.values() for soc in socs),
        "BUILDS": ", ".join(needed.builds),
        "NEEDS": ", ".join(f"`{name}`" for name in sorted(needs)) or "nothing",
    }
    for key, value in given.items():
        text = text.replace(f"@{key}@", value)
    return Member.of_text("README.md", text)


def sums(members: Sequence[Member]) -> Member:
    """The digests as `sha256sum --check` reads them."""
    lines = sorted(f"{each.sha256}  {each.name}" for each in members)
    return Member.of_text("SHA256SUMS", "".join(f"{line}\n" for line in lines))


def record(about: About, libraries: Mapping[str, Library], members: Sequence[Member], needed: Need) -> Member:
    """The same for programs, and which file is for which dsp arch; `libraries` by their names in the archive."""
    rows = [
        {"path": each.name, "sha256": each.sha256, "bytes": each.size, **_of(libraries.get(each.name))}
        for each in sorted(members, key=lambda each: each.name)
    ]
    data = {
        "qairt": about.version,
        "platform": about.platform,
        "layout": about.layout,
        "source": about.source,
        "compiled_with": list(needed.builds),
        "socs": [soc for socs in needed.socs.values() for soc in socs],
        "files": rows,
    }
    return Member.of_text(RECORD, json.dumps(data, indent=2) + "\n")


def _of(library: Library | None) -> dict[str, object]:
    if library is None:
        return {}
    return {"role": library.role, "dsp_arch": f"v{library.arch}" if library.arch else None, "needs": _needs(library)}


def _needs(library: Library) -> list[str]:
    read = elf.read(library.path) if library.name.endswith(".so") else ""
    return [] if isinstance(read, str) else list(read.needed)
