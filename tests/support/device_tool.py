"""Tools for the fake device: they load libraries as the real ones do, fail as these do, and run on the host's emulator.

`python -m support.device_tool TOOL ARGUMENTS…` is what the scripts that `write` makes start.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from sdk import says
from sdk.failures import Failures
from sdk.kit import Kit

from qnnci.context.read import read_context
from qnnci.errors import UsageError
from qnnci.ship.runtime_check import builds_in
from qnnci.soc import Soc, find_soc
from support import fake_device

TOOLS = ("qnn-net-run", "qnn-context-binary-generator")
_VERSION = "2.51.0.260929-standin"


def write(folder: Path) -> None:
    """Write the tools to a folder such as an SDK's bin/aarch64-android."""
    tests = Path(__file__).resolve().parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOOLS:
        text = (
            f"#!/bin/sh\nPYTHONPATH='{tests}:{tests.parent}'; export PYTHONPATH; QNNCI_LIBS=$LD_LIBRARY_PATH\n"
            f"export QNNCI_LIBS; unset LD_LIBRARY_PATH\nexec '{sys.executable}' -m support.device_tool {name} \"$@\"\n"
        )
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def _chip(device: Path) -> Soc:
    texts = [device / "props", device / "root/sys/devices/soc0/machine"]
    said = " ".join(path.read_text() for path in texts if path.exists())
    names = re.findall(r"\b[A-Z]{2,3}\d{4}\w?\b", said)
    return find_soc(names[0])


def load(backend: str, chip: Soc) -> int:
    """What the HTP backend looks for, and says where it is not there or not its own; 0 where all is well."""
    folder = Path(os.environ["QNNCI_LIBS"].split(":")[0])
    skels = Path(os.environ["ADSP_LIBRARY_PATH"].split(";")[0])
    if not (folder / backend).exists():
        says.plain(f"Unable to load backend. dlerror(): dlopen failed: {backend} not found")
        return 1
    if "Cpu" in backend:
        return 0
    stub, skel = f"libQnnHtpV{chip.arch}Stub.so", f"libQnnHtpV{chip.arch}Skel.so"
    if not (folder / stub).exists():
        says.native("ERROR", f"Failed in loading stub: dlopen failed: {stub} not found")
        return 1
    if not (skels / skel).exists():
        says.native("ERROR", f"dlopen failed for {skel}: file not found")
        says.native("ERROR", "Failed to load skel, error: 4000")
        says.native("ERROR", "Failed to create device: 14001")
        return 1
    own, other = builds_in(folder / backend), builds_in(skels / skel)
    if own != other:
        says.native("ERROR", f"Skel lib id mismatch: expected (v{own[0]}), detected (v{other[0]})")
        says.native("ERROR", "Error in verify skel version")
        return 1
    return 0


def main(arguments: Sequence[str]) -> int:
    tool, *rest = arguments
    chip = _chip(Path(os.environ[fake_device.ENVIRONMENT]))
    given = dict(itertools.pairwise(rest))
    code = load(Path(given["--backend"]).name, chip)
    if code:
        return code
    if tool == "qnn-context-binary-generator" and not Path("libQnnHtpPrepare.so").exists():
        says.native("ERROR", "Failed to load libQnnHtpPrepare.so: dlopen failed")
        return 1
    if "Cpu" in given["--backend"]:  # the stand-in has no CPU backend; it says what one would say
        assert Path(given["--model"]).is_file()
        lines = Path(given["--input_list"]).read_text().splitlines()
        assert all(Path(line.split()[-1].rpartition(":=")[2]).is_file() for line in lines)
        Path(given["--output_dir"], "Result_0").mkdir(parents=True)
        says.plain("Finished Executing Graphs")
        return 0
    if binary := given.get("--retrieve_context"):
        try:
            foreign = read_context(Path(binary)).soc_id != chip.id
        except UsageError:
            foreign = True
        if "--num_inferences" in given or "--duration" in given:  # outputs are not looked at: no emulator for them
            Path(given["--output_dir"], "Result_0").mkdir(parents=True)
            says.plain("Finished Executing Graphs")
            return 0
        if foreign:
            says.native("ERROR", "Failed to create context from binary with err 0x1388")
            says.plain("Could not create context from binary")
            return 1
    from sdk import elf, entry

    elf.X86_64 = elf.AARCH64  # what runs on the device is for its machine
    module, _, function = entry.TOOLS[tool].partition(":")
    run = getattr(__import__(f"sdk.{module}", fromlist=[function]), function)
    code = run(Kit(Path(_VERSION)), rest, Failures(tool))
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
