"""A device that can be asked: scripts run on it, files go to it and come from it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci import process
from qnnci.device import transport
from qnnci.device.transport import Transport
from qnnci.errors import MachineError, QnnciError, ToolCrashed, ToolMissing

ANSWER_SECONDS = 60.0  # for scripts that only look
_SLOWEST = 1 << 20  # bytes a second that a copy must make


@dataclass(frozen=True, slots=True)
class Reply:
    """How a script on the device ended: its exit code, and its stdout and stderr in the order written."""

    code: int
    output: str


@dataclass(frozen=True, slots=True)
class Link:
    """A device by one transport. Every call is a connection of its own, with an end to its time."""

    transport: Transport

    @property
    def address(self) -> str:
        return self.transport.address

    def ask(self, script: str, *, timeout: float = ANSWER_SECONDS) -> Reply:
        """Run a script with the device's shell; its exit code is told, not judged.

        Raises:
            ToolMissing: no adb or ssh here.
            MachineError: the device is not there, or the connection ended before the script did.
            ToolCrashed: no end within `timeout` seconds.

        """
        # Old adb loses exit codes, and a lost connection must not read as a script that worked: the script says both.
        # What stands in front is not its own: a server of adb that starts, a login that greets.
        mark = f"qnnci-{secrets.token_hex(6)}"
        done = self._run(self.transport.shell(f'echo {mark}\n(\n{script}\n) 2>&1\necho "{mark}:$?"'), timeout)
        _, began, output = done.output.replace("\r\n", "\n").rpartition(f"{mark}\n")
        ended = re.search(rf"{mark}:(\d+)", output)
        if not began or ended is None:
            raise self._trouble(output, "the connection ended in the middle")
        return Reply(int(ended[1]), output[: ended.start()])

    def tell(self, script: str, *, timeout: float = ANSWER_SECONDS) -> str:
        """Run a script that has to work, and return what it said.

        Raises:
            QnnciError: as `ask`; MachineError where it failed.

        """
        reply = self.ask(script, timeout=timeout)
        if reply.code:
            said = reply.output.strip()
            raise self._trouble(said, f"a command on the device ended with {reply.code}")
        return reply.output

    def push(self, local: Path, remote: str) -> None:
        """Copy a file to the device. `remote` is made of letters that no shell knows.

        Raises:
            QnnciError: as `ask`.

        """
        self._copy(self.transport.push(local, remote), local.stat().st_size)

    def pull(self, remote: str, local: Path, *, size: int = 0) -> None:
        """Copy a file of about `size` bytes from the device.

        Raises:
            QnnciError: as `ask`.

        """
        self._copy(self.transport.pull(remote, local), size)

    def _copy(self, argv: list[str], size: int) -> None:
        done = self._run(argv, ANSWER_SECONDS + size / _SLOWEST)
        if done.code:
            raise self._trouble(done.output, "a file was not copied")

    def _trouble(self, said: str, what: str) -> QnnciError:
        """The cause in what was said; where none is known, the last line of it."""
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "nothing was said")
        hint = "run it again: what is on the device already is not sent again"
        unknown = MachineError(f"{what}: {last[:200]}", hint=hint, where=self.address)
        return self.transport.trouble(said) or unknown

    def _run(self, argv: list[str], timeout: float) -> process.Completed:
        try:
            return process.run(argv, timeout=timeout)
        except ToolMissing as error:
            package = "Android's platform-tools (package adb)" if argv[0] == "adb" else "openssh-client"
            raise ToolMissing(error.message, hint=f"install {package}") from error
        except ToolCrashed as error:
            hint = "is the device awake, and the cable or network good? run it again to go on"
            raise ToolCrashed(error.message, where=self.address, hint=hint) from error


def connect(address: str, options: Sequence[str] = ()) -> Link:
    """A link to a device, which has answered.

    Raises:
        UsageError: this is no address.
        QnnciError: as `Link.ask`.

    """
    link = Link(transport.parse(address, options))
    link.tell("true", timeout=20)
    return link
