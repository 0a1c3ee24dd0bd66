"""Verbs about phones and boards: which are there, what they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from qnnci.device import about
from qnnci.device.attached import attached
from qnnci.device.link import connect
from qnnci.errors import ExitCode, UsageError
from qnnci.report.devices import show_about, show_attached
from qnnci.report.terminal import console
from qnnci.soc import Soc


def show_list(*, as_json: bool) -> ExitCode:
    """Print the phones that adb sees.

    Raises:
        ToolMissing: there is no adb.

    """
    found = attached()
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
    elif found:
        show_attached(found, console())
    else:
        click.echo("adb sees no device: plug one in and allow USB debugging; boards are reached as ssh:user@host")
    return ExitCode.OK if any(not each.todo for each in found) else ExitCode.GATE


def info(address: str, ssh_options: Sequence[str], soc: str, where: Path | None, *, as_json: bool) -> ExitCode:
    """Print what a device is, and which binaries of a manifest are for it.

    Raises:
        UsageError: no address, no manifest, or nothing in it for this chip.
        QnnciError: the device is not there.

    """
    from qnnci.commands.device_kit import loaded, row_for

    manifest = loaded(where)[0] if where else None
    said = about.read(connect(address, ssh_options))
    chip, why = _chip(said, soc)
    if chip is None and manifest is not None:
        raise why or UsageError("the device's chip is not known")
    binaries = dict(row_for(manifest, chip).binaries) if manifest and chip else None
    if as_json:
        told = {**asdict(said), "soc": chip.name if chip else None, "dsp_arch": chip.dsp_arch if chip else None}
        click.echo(json.dumps({**told, "binaries": binaries}, indent=2))
    else:
        show_about(said, chip, binaries, console())
        if why:
            click.echo(f"! {why}")
    return ExitCode.OK


def _chip(said: about.About, named: str) -> tuple[Soc | None, UsageError | None]:
    if named:
        return about.chip(said, named), None
    try:
        return about.chip(said), None
    except UsageError as error:
        return None, error
