"""`qnnci socs`: the table of chips, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from qnnci.soc import Soc, all_socs, find_soc, htp_socs

_HEADER = ("name", "id", "dsp arch", "VTCM", "HVX", "fp16", "also known as", "marketing name")


def show(names: Sequence[str], *, everything: bool, as_json: bool) -> None:
    """Print chips. Plain columns, not rich: this verb answers in a fraction of a second.

    Raises:
        UsageError: a name that is no chip with HTP.

    """
    chosen: Sequence[Soc] = [find_soc(name) for name in names] or (all_socs() if everything else htp_socs())
    if as_json:
        click.echo(json.dumps([_plain(soc) for soc in chosen], indent=2, ensure_ascii=False))
        return
    rows = [_HEADER, *(_row(soc) for soc in sorted(chosen, key=lambda soc: (soc.arch, soc.id)))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(soc: Soc) -> tuple[str, ...]:
    vtcm = f"{soc.vtcm_mb} MB" if soc.has_htp else "no HTP"
    hvx = str(soc.hvx_threads or "")
    fp16 = "yes" if soc.fp16 else "no"
    return (soc.name, str(soc.id), soc.dsp_arch, vtcm, hvx, fp16, ", ".join(soc.aliases), soc.marketing)


def _plain(soc: Soc) -> dict[str, object]:
    return {
        "id": soc.id,
        "name": soc.name,
        "aliases": list(soc.aliases),
        "marketing": soc.marketing,
        "dsp_arch": soc.dsp_arch,
        "vtcm_mb": soc.vtcm_mb,
        "hvx_threads": soc.hvx_threads,
        "fp16": soc.fp16,
        "htp": soc.has_htp,
    }
