"""How a device is reached, as command lines. Pure: a script or two paths in, argv out, and what a failure means."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from qnnci.errors import MachineError, QnnciError, UsageError

Kind = Literal["adb", "ssh"]
FORMS = "adb, adb:SERIAL or ssh:user@host:port"

_SERIAL = re.compile(r"[A-Za-z0-9_][\w.:\[\]-]{0,120}", re.ASCII)
_SSH = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]{0,60})@)?"
    r"(?P<host>[A-Za-z0-9][\w.-]{0,250}|\[[0-9A-Fa-f:.]{2,45}(?:%\w{1,15})?\])"
    r"(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)
_CONNECT_SECONDS = 10
_MOST_PORT = 65535


class Transport(Protocol):
    """One way to a device."""

    @property
    def kind(self) -> Kind: ...

    @property
    def address(self) -> str:
        """What the user types to mean this device."""

    def shell(self, script: str) -> list[str]:
        """Run a script with the device's POSIX shell."""

    def push(self, local: Path, remote: str) -> list[str]: ...

    def pull(self, remote: str, local: Path) -> list[str]: ...

    def trouble(self, said: str) -> QnnciError | None:
        """What the program's own words mean, where the connection failed and not what ran on the device."""


@dataclass(frozen=True, slots=True)
class Adb:
    """A phone; an empty `serial` is the only one there."""

    serial: str = ""

    @property
    def kind(self) -> Kind:
        return "adb"

    @property
    def address(self) -> str:
        return f"adb:{self.serial}" if self.serial else "adb"

    def _adb(self, *words: str) -> list[str]:
        return ["adb", *(["-s", self.serial] if self.serial else []), *words]

    def shell(self, script: str) -> list[str]:
        return self._adb("shell", _posix(script))

    def push(self, local: Path, remote: str) -> list[str]:
        return self._adb("push", str(local.absolute()), remote)

    def pull(self, remote: str, local: Path) -> list[str]:
        return self._adb("pull", remote, str(local.absolute()))

    def trouble(self, said: str) -> QnnciError | None:
        return _meaning(said, _ADB, self.address)


@dataclass(frozen=True, slots=True)
class Ssh:
    """A board; `options` are the user's own `-o` settings, such as `IdentityFile=~/.ssh/board`."""

    host: str
    user: str = ""
    port: int = 0
    options: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return "ssh"

    @property
    def address(self) -> str:
        return f"ssh:{self._login}{f':{self.port}' if self.port else ''}"

    @property
    def _login(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host

    def _options(self) -> list[str]:
        """The first setting of a name holds in ssh: no question may wait for an answer, whatever else is set."""
        ours = ("BatchMode=yes", f"ConnectTimeout={_CONNECT_SECONDS}", "ServerAliveInterval=15", "LogLevel=ERROR")
        return [word for option in (*ours, *self.options) for word in ("-o", option)]

    def shell(self, script: str) -> list[str]:
        port = ["-p", str(self.port)] if self.port else []
        login = self._login.replace("[", "").replace("]", "")  # ssh takes IPv6 bare, scp in brackets
        return ["ssh", "-T", *self._options(), *port, "--", login, _posix(script)]

    def _scp(self, *paths: str) -> list[str]:
        port = ["-P", str(self.port)] if self.port else []
        return ["scp", "-q", *self._options(), *port, "--", *paths]

    def push(self, local: Path, remote: str) -> list[str]:
        return self._scp(str(local.absolute()), f"{self._login}:{remote}")

    def pull(self, remote: str, local: Path) -> list[str]:
        return self._scp(f"{self._login}:{remote}", str(local.absolute()))

    def trouble(self, said: str) -> QnnciError | None:
        return _meaning(said, _SSH_SAYS, self.address)


def parse(address: str, options: Sequence[str] = ()) -> Transport:
    """The transport of `adb`, `adb:SERIAL` or `ssh:user@host:port`.

    Raises:
        UsageError: it is none of these, or could be taken for an option.

    """
    kind, mark, rest = address.partition(":")
    if kind == "adb" and (not mark or _SERIAL.fullmatch(rest)):
        return Adb(rest)
    match = _SSH.fullmatch(rest) if kind == "ssh" else None
    port = int(match["port"] or 0) if match else 0
    if match is None or port > _MOST_PORT or (match["port"] and not port):
        raise UsageError(f"{address[:80]!r} is no address of a device", hint=f"addresses are {FORMS}")
    if odd := [each for each in options if not re.fullmatch(r"[A-Za-z]\w*\s*[= ].+", each)]:
        raise UsageError(f"{odd[0][:80]!r} is no option of ssh", hint="such as --ssh-option IdentityFile=~/.ssh/board")
    return Ssh(match["host"], match["user"] or "", port, tuple(options))


def _posix(script: str) -> str:
    """A script as one word for whatever shell the user of the device has."""
    return f"sh -c {shlex.quote(script)}"


# What both say, of a connection that was there and of the device's disk.
_BOTH = (
    (r"no space left|dis[ck] quota|enospc", "has no space left", "remove files from it"),
    (r"read-only file system", "does not let anything be written there", "name another folder with `--folder`"),
    (r"connection.{0,40}(?:reset|closed)|(?:lost|broken) (?:connection|pipe)|protocol fault|error: closed",
     "was lost in the middle", "run it again: what is on the device already is not sent again"),
)  # fmt: skip
# What the programs say of a connection, as they have said it for years → what it is, and what to do.
_ADB = (
    (r"unauthorized", "has not allowed this computer", "unlock it and accept the question about USB debugging"),
    (r"device(?: '?[\w.:-]+'?)? offline|error: device offline", "is offline",
     "plug it in again, or run `adb reconnect offline`; after sleep, unlock it"),
    (r"no permissions", "may not be opened by this user", "add udev rules for it (package android-sdk-platform-tools)"),
    (r"more than one (?:device|emulator)", "is several devices", "name one: `qnnci device list` has their addresses"),
    (r"no devices|device '?[^']*'? not found|device not found", "is not there",
     "plug it in and allow USB debugging; `qnnci device list` shows what adb sees"),
    (r"cannot connect to daemon|daemon not running|failed to start daemon", "cannot be asked: adb's server is down",
     "run `adb start-server` and read what it says"),
)  # fmt: skip
_SSH_SAYS = (
    (r"permission denied \(", "does not let this user in", "set up a key with `ssh-copy-id`; no password is asked for"),
    (r"host key verification failed|remote host identification has changed", "has an unknown or another host key",
     "connect once by hand with `ssh` and check the key"),
    (r"could not resolve|name or service not known", "has a name that is not known here", "check the host's name"),
    (r"connection refused", "takes no connections by ssh", "is sshd running on it, and on this port?"),
    (r"no route to host|network is unreachable|timed out", "does not answer", "is it on, and in the same network?"),
    (r"subsystem request failed", "has no sftp server, which scp needs",
     "install openssh-sftp-server on it, or use an sshd that has one"),
)  # fmt: skip


def _meaning(said: str, known: Sequence[tuple[str, str, str]], where: str) -> QnnciError | None:
    for pattern, what, hint in (*known, *_BOTH):
        if re.search(pattern, said, re.IGNORECASE):
            return MachineError(f"the device {what}", hint=hint, where=where)
    return None
