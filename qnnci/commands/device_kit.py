"""What verbs about devices bring to one: the binary that a manifest has for it, its libraries, and feeds."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from qnnci import files, shards
from qnnci.arrays import Arrays, load_samples
from qnnci.build.adapt import Order, from_binary, to_binary
from qnnci.build.calls import REFERENCE
from qnnci.commands.binary import referenced
from qnnci.commands.model import alone, one_model
from qnnci.context.info import GraphInfo
from qnnci.device import about, run
from qnnci.device.about import About
from qnnci.device.link import Link, connect
from qnnci.errors import ToolMissing, UsageError
from qnnci.files import default_cache
from qnnci.findings import worst
from qnnci.manifest import Device, Entry, Manifest, device_for
from qnnci.ship import runtime_libs
from qnnci.ship.runtime_libs import Settings
from qnnci.ship.runtime_set import PLATFORMS, Need, parted
from qnnci.ship.runtime_sources import Request
from qnnci.soc import Soc
from qnnci.toolchain import sdk

PLATFORM = {"adb": "android", "ssh": "linux-aarch64"}
_TOOLS = {"adb": ("aarch64-android",), "ssh": ("aarch64-oe-linux-gcc*", "aarch64-ubuntu-gcc*")}


@dataclass(frozen=True, slots=True)
class Reached:
    """A device that answered, and the chip that it has."""

    link: Link
    about: About
    soc: Soc


@dataclass(frozen=True, slots=True)
class Case:
    """One binary of a manifest, and the samples to run: feeds of the graph, and what the original makes of them."""

    entry: Entry
    binary: Path
    graph: GraphInfo
    samples: list[tuple[Arrays, Arrays]]
    inputs: str

    @property
    def order(self) -> Order:
        """What its route does to axes where their sizes do not tell."""
        return "same" if self.entry.route == "ort" else "channel-last"

    def feeds(self) -> list[Arrays]:
        """As the binary takes them."""
        return [to_binary(feed, self.graph.inputs, self.order) for feed, _ in self.samples]

    def outputs(self, made: Sequence[Arrays]) -> list[Arrays]:
        """The binary's outputs as the graph has them."""
        pairs = zip(made, self.samples, strict=True)
        return [from_binary(got, want, self.graph.outputs, self.order) for got, (_, want) in pairs]


def reach(address: str, ssh_options: Sequence[str], soc: str) -> Reached:
    """Connect to a device and learn its chip.

    Raises:
        UsageError: no address, or no chip that binaries are for.
        QnnciError: the device is not there.

    """
    link = connect(address, ssh_options)
    said = about.read(link)
    return Reached(link, said, about.chip(said, soc))


def loaded(where: Path) -> tuple[Manifest, Path]:
    """A manifest, or those of a folder joined, and the folder that its paths start from."""
    folder = where if where.is_dir() else where.parent
    return shards.join(shards.find([where]), folder), folder


def row_for(manifest: Manifest, soc: Soc) -> Device:
    """The row of the table of devices for a chip.

    Raises:
        UsageError: no binary is for it.

    """
    row = device_for(manifest, soc.name)
    if row is None:
        have = dict.fromkeys(f"{each.soc} ({each.dsp_arch})" for each in manifest.devices)
        raise UsageError(
            f"the device is {soc.name} ({soc.dsp_arch}), the manifest has binaries for {', '.join(have) or 'no chip'}",
            hint=f"add {soc.name} to `socs` and build again, or name the chip with `--soc` if this is not it",
        )
    return row


def entries_for(manifest: Manifest, soc: Soc, graphs: Sequence[str]) -> list[Entry]:
    """The entries of a chip that passed, of the graphs that are named or of all.

    Raises:
        UsageError: no binary is for the chip, or there is no such graph.

    """
    row = row_for(manifest, soc)
    if unknown := [name for name in graphs if name not in row.binaries]:
        raise UsageError(f"no binary of graph {unknown[0]!r} is for {soc.name}", hint=f"of {', '.join(row.binaries)}")
    wanted = graphs or list(row.binaries)
    return [each for each in manifest.entries if each.soc == row.soc and each.passed and each.graph in wanted]


def case(entry: Entry, folder: Path, source: str, feeds: Path | None, count: int) -> Case:
    """A binary with its samples: those of its build, or of the original model `source` on `feeds` or on random ones.

    Raises:
        UsageError: the file is another one than was built, or there is nothing to run it on.

    """
    binary = folder / entry.binary
    if not binary.is_file() or files.sha256(binary) != entry.sha256:
        raise UsageError(f"{entry.binary} is not the file that was built", hint="`qnnci manifest check` says more")
    graph = run.only_graph(binary)
    kept = binary.parent.parent / REFERENCE
    if source:
        return Case(entry, binary, graph, _made(source, feeds, count), str(feeds) if feeds else "seeded (0)")
    if not kept.is_file():
        raise UsageError(
            f"there is no {REFERENCE} of graph {entry.graph} beside its binaries",
            hint="run it where it was built, or name the original model with `--against`",
        )
    return Case(entry, binary, graph, load_samples(kept)[:count], "those of the build")


def _made(source: str, feeds: Path | None, count: int) -> list[tuple[Arrays, Arrays]]:
    project = one_model(source, (), verify={"samples": count})
    with tempfile.TemporaryDirectory(prefix="qnnci-device-") as name, alone() as (stages, worker):
        records = referenced(source, project, feeds, Path(name), stages, worker)
        found = [each for record in records for each in record.findings]
        if worst(found) == "error":
            raise UsageError(f"the original cannot be run: {found[0].message}", where=source, hint=found[0].hint)
        return load_samples(Path(name) / REFERENCE)


@contextmanager
def libraries(
    reached: Reached, qairt: str, given: Path | None, root: str | None, *, prepare: bool = False
) -> Iterator[Path]:
    """A folder with the run-time libraries of a QAIRT version for a device's chip, for as long as they are used.

    Raises:
        UsageError: what there is does not fit.
        QnnciError: they are nowhere to be had.

    """
    if given is not None:
        if not given.is_dir():
            raise UsageError(f"{given} is no folder", hint="give what `qnnci runtime-libs --archive folder` wrote")
        yield given
        return
    version = parted(qairt)
    if version is None:
        raise UsageError(f"the binary is of QAIRT {qairt[:80]!r}, which is no version", hint="give `--libs`")
    request = Request(
        PLATFORMS[PLATFORM[reached.link.transport.kind]],
        Need(version[0], (qairt.removeprefix("v"),), {reached.soc.arch: (reached.soc.name,)}),
        root or "",
        {},
        "",
        default_cache(),
        say,
    )
    with tempfile.TemporaryDirectory(prefix="qnnci-libs-") as name:
        (Path(name) / "scratch").mkdir()
        planned = runtime_libs.plan(request, Settings(prepare=prepare), Path(name) / "scratch")
        bad = [each for each in planned.findings if each.severity == "error"]
        if bad:
            raise UsageError(bad[0].message, hint=bad[0].hint, where=planned.source)
        written = runtime_libs.write(planned, Path(name), "folder")
        yield written if isinstance(written, Path) else written.path


def kit(
    reached: Reached, qairt: str, libs: Path, root: str | None, *, name: str = run.NET_RUN, prepare: bool = False
) -> dict[str, Path]:
    """What goes to a device beside a binary: the libraries of its chip, and a tool, which may lie among them.

    Raises:
        QnnciError: something is nowhere to be had.

    """
    there = any(libs.rglob(name))
    program = None if there else tool(reached, qairt, root, name)
    return run.kit(libs, arch=reached.soc.arch, prepare=prepare, tool=program, name=name)


def say(text: str) -> None:
    """Tell how it goes on, beside what is printed for programs."""
    click.echo(text, err=True)


def tool(reached: Reached, qairt: str, root: str | None, name: str, *, place: str = "bin") -> Path:
    """A program of the SDK that runs on the device, or a library of it, whose `place` is lib.

    Raises:
        ToolMissing: there is no such SDK, or it has none for this device.

    """
    version = parted(qairt)
    found = sdk.find(version[0] if version else None, root)
    folders = _TOOLS[reached.link.transport.kind]
    for pattern in folders:
        places = sorted((found.root / place).glob(f"{pattern}/{name}"), key=_numbers)
        if places:
            return places[-1]
    raise ToolMissing(
        f"QAIRT {found.version} has no {name} for this device: there is no {place}/{folders[0]}/{name}",
        hint="`qnnci sdk install` leaves it out: name an SDK that was unpacked by hand with `--sdk`",
    )


def _numbers(path: Path) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", path.parent.name)]
