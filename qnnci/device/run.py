"""A context binary on a device: qnn-net-run with the libraries of its QAIRT, on feeds."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci import files, logs
from qnnci.arrays import Arrays
from qnnci.context.info import GraphInfo
from qnnci.context.read import inspect
from qnnci.device import raw, room
from qnnci.device.link import Link
from qnnci.device.room import Room, Say
from qnnci.errors import ToolCrashed, UsageError
from qnnci.findings import Finding
from qnnci.model.feeds import plain
from qnnci.rules import finding

NET_RUN = "qnn-net-run"
HTP, PREPARE = "libQnnHtp.so", "libQnnHtpPrepare.so"
_FEEDS = "in.tar"
SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How qnn-net-run ended; `outputs` are those of each feed, under the binary's names and in its dtypes.

    A log may tell of errors though all outputs are there: these are findings, and the outputs are judged all the same.
    """

    code: int
    log: str
    findings: tuple[Finding, ...]
    outputs: tuple[Arrays, ...]

    @property
    def worked(self) -> bool:
        return bool(self.outputs)


def feeds(
    link: Link,
    binary: Path,
    given: Sequence[Arrays],
    libs: Path,
    *,
    folder: str = "/data/local/tmp",
    graph: GraphInfo | None = None,
    keep: bool = False,
    timeout: float = SECONDS,
    say: Say = lambda _: None,
) -> list[Arrays]:
    """Run feeds of a binary on a device and return the outputs of each.

    Feeds and outputs have the binary's own names, shapes and dtypes: `qnnci.build.adapt` makes them of a graph's, and
    back. `libs` is a folder with the run-time libraries of the binary's QAIRT and with qnn-net-run; `folder` is where
    on the device files may go (`qnnci.device.about.folder_for` says it). `graph` is what the binary says of itself.

    Raises:
        UsageError: a feed does not fit the binary, or `libs` lacks what is needed.
        ToolCrashed: qnn-net-run failed or hung; the message is the cause that its log tells.
        MachineError: the device is not there, its disk is full, or the connection broke.

    """
    graph = graph or only_graph(binary)
    with room.opened(link, folder, files.sha256(binary), keep=keep) as place:
        ran = once(place, binary, graph, given, kit(libs), timeout=timeout, say=say)
    return outputs(ran, link)


def outputs(ran: Ran, link: Link) -> list[Arrays]:
    """The outputs of each feed.

    Raises:
        ToolCrashed: there are none; the message is the cause that the log tells.

    """
    if ran.worked:
        return list(ran.outputs)
    first = next(iter(ran.findings), None)
    told = first.message if first else f"it ended with {ran.code}"
    raise ToolCrashed(f"{NET_RUN} failed: {told}", where=link.address, hint=first.hint if first else "")


def only_graph(binary: Path) -> GraphInfo:
    """What the one graph of a binary is.

    Raises:
        UsageError: it has several, or is no context binary.

    """
    graphs = inspect(binary).graphs
    if len(graphs) != 1:
        raise UsageError(f"it holds {len(graphs)} graphs; one is run here", where=str(binary))
    return graphs[0]


def kit(
    libs: Path, *, arch: int = 0, prepare: bool = False, tool: Path | None = None, name: str = NET_RUN
) -> dict[str, Path]:
    """What goes to a device beside a binary, by name: libraries of a folder, and a tool, `name` in it or at `tool`.

    Libraries of other dsp arches than `arch` stay here, and the compiler too unless it is to `prepare` graphs.

    Raises:
        UsageError: the HTP library or the tool is not there.

    """
    found = {path.name: path for path in sorted(libs.rglob("*.so*")) if path.is_file()}
    for each in list(found):
        other = re.fullmatch(r"libQnnHtpV(\d+)(?:Stub|Skel)\.so", each)
        if (other and arch not in {0, int(other[1])}) or (each == PREPARE and not prepare):
            del found[each]
    own = next((path for path in sorted(libs.rglob(name)) if path.is_file()), tool)
    found |= {name: own} if own else {}
    if lacking := [each for each in (HTP, name) if each not in found]:
        raise UsageError(
            f"there is no {' and no '.join(lacking)} in {libs}",
            hint="the libraries come from `qnnci runtime-libs`, the tool from bin/aarch64-… of a QAIRT SDK",
        )
    return found


def once(
    place: Room,
    binary: Path,
    graph: GraphInfo,
    given: Sequence[Arrays],
    kit: Mapping[str, Path],
    *,
    timeout: float,
    say: Say,
) -> Ran:
    """Bring all to the device, run, and bring the outputs back.

    Raises:
        QnnciError: a feed does not fit, or the device or the connection failed; not where the tool did.

    """
    with tempfile.TemporaryDirectory(prefix="qnnci-device-") as name:
        packed, made = Path(name) / _FEEDS, Path(name) / "made.tar"
        raw.pack(given, graph, packed)
        own = plain(binary.name)
        place.put({**kit, own: binary, _FEEDS: packed}, say)
        place.link.tell(
            f"cd {place.path} && rm -rf {raw.IN} {raw.OUT} && mkdir {raw.OUT} && tar -xf {_FEEDS}", timeout=300
        )
        say(f"running {len(given)} feeds on {place.link.address}")
        reply = place.run(command(f"--retrieve_context {own}"), timeout=timeout)
        log = reply.output if not reply.code else reply.output + logcat(place)
        report = logs.read(log.splitlines(), NET_RUN, reply.code)
        if reply.code and report.outcome == "failed":
            return Ran(reply.code, log, report.findings, ())
        try:
            place.fetch(raw.OUT, made)
            outputs = tuple(raw.unpack(made, graph, len(given)))
        except ToolCrashed as error:
            lost = finding("nothing-written", error.message)
            return Ran(reply.code, log, report.findings or (lost,), ())
        return Ran(reply.code, log, report.findings, outputs)


def command(model: str, *more: str) -> str:
    """The command line in a room; native files carry the binary's own dtypes, without a change in between."""
    native = ("--use_native_input_files", "--use_native_output_files")
    inputs = f"--input_list {raw.IN}/{raw.LIST} --output_dir {raw.OUT}"
    return " ".join((f"./{NET_RUN} --backend {HTP} {model} {inputs}", *native, *more))


def logcat(place: Room) -> str:
    """What Android's own log has of the process: the loader of DSP libraries speaks only there."""
    if place.link.transport.kind != "adb":
        return ""
    return place.link.ask(f"cd {place.path} && logcat -d -v brief --pid=$(cat pid) 2>/dev/null | tail -n 500").output
