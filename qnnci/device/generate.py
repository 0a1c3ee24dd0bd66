"""A context binary that a device compiles for itself, out of a model library."""

from __future__ import annotations

import json
import re
import shlex
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qnnci import logs
from qnnci.device.room import Room, Say
from qnnci.device.run import HTP, logcat
from qnnci.errors import ToolCrashed
from qnnci.files import replacing
from qnnci.logs import LogReport
from qnnci.model.feeds import plain
from qnnci.soc import Soc
from qnnci.toolchain import tools
from qnnci.toolchain.htp_config import htp_config

GENERATOR = "qnn-context-binary-generator"
EXTENSIONS = "libQnnHtpNetRunExtensions.so"
_OUTER, _INNER, _MADE = "config.json", "htp_config.json", "made"


@dataclass(frozen=True, slots=True)
class Generated:
    """How the generator ended; `written` is whether there is a binary. Exit codes of this tool mislead."""

    code: int
    log: str
    report: LogReport
    written: bool


def graph_name(library: Path) -> str:
    """The graph in a model library as our converters call it: libnet.so holds net."""
    return tools.graph_symbol(library.stem.removeprefix("lib"))


def generate(
    place: Room,
    library: Path,
    kit: Mapping[str, Path],
    output: Path,
    soc: Soc,
    *,
    graph: str,
    timeout: float,
    say: Say,
) -> Generated:
    """Bring a model library to the device, compile it there for the device's chip, and bring the binary to `output`.

    Raises:
        QnnciError: the device or the connection failed; not where the tool did.

    """
    config = htp_config(
        soc,
        graph,
        vtcm_mb=soc.vtcm_mb,
        optimization=3,
        options={},
        library=Path(EXTENSIONS),
        inner=Path(_INNER),
    )
    own = plain(library.name)
    binary = Path(_MADE) / "context.bin"
    place.put({**kit, own: library}, say)
    files = {_OUTER: config.outer, _INNER: config.inner}
    write = "\n".join(f"printf %s {shlex.quote(json.dumps(data))} >{name}" for name, data in files.items())
    place.link.tell(f"cd {place.path} && rm -rf {_MADE} && mkdir {_MADE} || exit 1\n{write}")
    say(f"compiling {own} on {place.link.address}")
    command = tools.context_generator(Path(own), None, Path(HTP), binary, Path(_OUTER))
    reply = place.run(shlex.join((f"./{GENERATOR}", *command.arguments)), timeout=timeout)
    size = place.link.ask(f"wc -c <{place.path}/{binary}").output.strip()
    written = bool(re.fullmatch(r"[1-9]\d*", size))
    log = reply.output if written else reply.output + logcat(place)
    if written:
        _bring(place, binary, output)
    return Generated(reply.code, log, logs.read(log.splitlines(), GENERATOR, reply.code), written)


def _bring(place: Room, binary: Path, output: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="qnnci-device-") as name:
        packed = Path(name) / "made.tar"
        place.fetch(str(binary), packed)
        with tarfile.open(packed, "r:") as tar, replacing(output) as part, part.open("wb") as file:
            source = tar.extractfile(str(binary))
            if source is None:
                raise ToolCrashed("what came back from the device is no binary", where=place.link.address)
            while chunk := source.read(1 << 20):
                file.write(chunk)
