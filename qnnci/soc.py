"""What chips exist: the table behind every `--soc`. Its source is documented in docs/chips.md."""

from __future__ import annotations

import csv
import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from qnnci.errors import UsageError


@dataclass(frozen=True, slots=True)
class Soc:
    """One chip. `dsp_arch` is empty and `vtcm_mb` 0 where the chip has no HTP."""

    id: int
    name: str
    aliases: tuple[str, ...]
    marketing: str
    dsp_arch: str
    vtcm_mb: int
    hvx_threads: int
    fp16: bool

    @property
    def has_htp(self) -> bool:
        return self.vtcm_mb > 0

    @property
    def arch(self) -> int:
        """The number of the dsp arch: 79 for v79, 0 where there is none."""
        return int(self.dsp_arch[1:]) if self.dsp_arch else 0


@cache
def all_socs() -> tuple[Soc, ...]:
    """Every chip of the table, chips without HTP included, by id."""
    lines = (files("qnnci") / "data" / "socs.csv").read_text(encoding="utf-8").splitlines()
    return tuple(
        Soc(
            id=int(row["id"]),
            name=row["name"],
            aliases=tuple(row["aliases"].split()),
            marketing=row["marketing"],
            dsp_arch=row["dsp_arch"],
            vtcm_mb=int(row["vtcm_mb"] or 0),
            hvx_threads=int(row["hvx_threads"] or 0),
            fp16=row["fp16"] == "yes",
        )
        for row in csv.DictReader(lines)
    )


def htp_socs() -> tuple[Soc, ...]:
    return tuple(soc for soc in all_socs() if soc.has_htp)


def htp_arches() -> tuple[str, ...]:
    """Every dsp arch with HTP, oldest first."""
    return tuple(sorted({soc.dsp_arch for soc in htp_socs()}))


@cache
def _by_name() -> dict[str, Soc]:
    return {name.upper(): soc for soc in all_socs() for name in (str(soc.id), soc.name, *soc.aliases)}


def find_soc(name: str) -> Soc:
    """The chip of a name, an alias, an id, or a name with a binning letter (`SM8550P`, `SM8475H`).

    `L` is never stripped: SM8850L and SM8975L are chips of their own.

    Raises:
        UsageError: unknown name, with the nearest ones, or a chip without HTP.

    """
    names = _by_name()
    key = str(name).strip().upper()
    soc = names.get(key) or names.get(re.sub(r"(?<=[A-Z]\d{4})(P|PH|H|Q)$", "", key))
    if soc is None:
        raise UsageError(f"unknown SoC {str(name)[:40]!r}", hint=f"{_nearest(key)}`qnnci socs` lists every chip")
    if not soc.has_htp:
        arch = f" (its DSP is {soc.dsp_arch})" if soc.dsp_arch else ""
        raise UsageError(
            f"{soc.name} has no HTP{arch}: the compiler would write a v68 binary that it cannot load",
            hint="run this model on its CPU or GPU",
        )
    return soc


def _nearest(key: str) -> str:
    known = [name for name, soc in _by_name().items() if soc.has_htp and not name.isdigit()]
    near = difflib.get_close_matches(key, known, n=9, cutoff=0.6)
    # Chips of one family share their first digits, which plain similarity does not know.
    near.sort(key=lambda name: _shared(name, key), reverse=True)
    return f"did you mean {', '.join(near[:3])}? " if near else ""


def _shared(one: str, other: str) -> int:
    """How many leading characters two names share."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
