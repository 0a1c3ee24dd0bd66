"""What adb sees: the devices that are plugged in, and what has to be done for those that do not answer yet."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qnnci import process
from qnnci.errors import MachineError, ToolMissing

# Words of adb's list → what to do.
_TODO = {
    "unauthorized": "unlock it and accept the question about USB debugging",
    "offline": "plug it in again, or run `adb reconnect offline`",
    "no permissions": "this user may not open it: add udev rules for it",
    "authorizing": "wait a moment and list again",
    "connecting": "wait a moment and list again",
    "recovery": "reboot it into Android",
    "sideload": "reboot it into Android",
    "bootloader": "reboot it into Android",
    "rescue": "reboot it into Android",
}
_LINE = re.compile(r"(?P<serial>\S+)\s+(?P<state>no permissions|\S+)(?P<rest>.*)")


@dataclass(frozen=True, slots=True)
class Attached:
    """One line of adb's list; `todo` is empty where the device is ready."""

    address: str
    state: str
    model: str
    todo: str


def attached() -> list[Attached]:
    """Ask adb, which starts its server where there is none.

    Raises:
        ToolMissing: there is no adb.
        ToolCrashed: it does not answer.
        MachineError: it cannot say.

    """
    try:
        done = process.run(["adb", "devices", "-l"], timeout=60)
    except ToolMissing as error:
        raise ToolMissing(error.message, hint="install Android's platform-tools (package adb)") from error
    if done.code:
        said = done.output.strip()[-200:]
        raise MachineError(f"adb does not list devices: {said}", hint="run `adb start-server` and read what it says")
    return parse(done.output)


def parse(text: str) -> list[Attached]:
    """The devices of what `adb devices -l` printed; lines of its server are passed over."""
    _, found, rows = text.replace("\r", "").partition("List of devices attached\n")
    matches = [_LINE.fullmatch(line.strip()) for line in (rows if found else "").splitlines()]
    return [_attached(match) for match in matches if match and not match["serial"].startswith("*")]


def _attached(match: re.Match[str]) -> Attached:
    model = re.search(r"\bmodel:(\S+)", match["rest"])
    state = match["state"]
    todo = "" if state == "device" else _TODO.get(state, "adb cannot work with it in this state")
    return Attached(f"adb:{match['serial']}", state, model[1].replace("_", " ") if model else "", todo)
