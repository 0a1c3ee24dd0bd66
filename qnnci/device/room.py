"""A folder on a device for one task: files go into it once and are proven, and it is gone afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from qnnci import files
from qnnci.device.link import Link, Reply
from qnnci.errors import MachineError, QnnciError, UsageError

Say = Callable[[str], None]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_BATCH = 50  # names in one command
_ODD_BYTES = 128 << 20  # that a device may have to make room for: outputs, logs
# What a loader of DSP libraries looks into behind our own folder. Its separator is `;`.
_DSP_FOLDERS = ("/vendor/dsp/cdsp", "/vendor/lib/rfsa/adsp", "/system/lib/rfsa/adsp", "/vendor/dsp", "/dsp")


@dataclass(frozen=True, slots=True)
class Room:
    """`path` is the folder on the device. What runs in it finds its own libraries first."""

    link: Link
    path: str

    def put(self, wanted: Mapping[str, Path], say: Say = lambda _: None) -> int:
        """Copy files that are not there yet with these bytes; returns how many bytes were sent.

        Each is sent beside its name, proven by size and sha256 on the device, and renamed.

        Raises:
            UsageError: a name has letters that mean something to a shell.
            QnnciError: the connection broke, or there is no space; what is there stays for the next time.

        """
        if odd := [name for name in wanted if not _NAME.fullmatch(name)]:
            raise UsageError(f"{odd[0][:80]!r} is no name for a file on a device")
        sums = {name: (path.stat().st_size, files.sha256(path)) for name, path in wanted.items()}
        there = self._there(sums)
        sent = 0
        for name, path in wanted.items():
            if there.get(name) != sums[name]:
                say(f"sending {name}, {sums[name][0] / (1 << 20):.1f} MB")
                self._send(name, path, sums[name])
                sent += sums[name][0]
        return sent

    def _there(self, sums: Mapping[str, object]) -> dict[str, tuple[int, str]]:
        """Size and sha256 of those files that are there."""
        found: dict[str, tuple[int, str]] = {}
        names = list(sums)
        for at in range(0, len(names), _BATCH):
            batch = " ".join(names[at : at + _BATCH])
            said = self.link.tell(
                f"mkdir -p {self.path} && cd {self.path} || exit 1\n"
                f'for f in {batch}; do if [ -f "$f" ]; then echo "$(wc -c <"$f") $(sha256sum "$f")"; fi; done',
                timeout=300,
            )
            rows = re.findall(r"^\s*(\d+)\s+\\?([0-9a-f]{64})\s+\*?(\S+)$", said, re.MULTILINE)
            found |= {name: (int(size), digest) for size, digest, name in rows}
        return found

    def _send(self, name: str, path: Path, wanted: tuple[int, str]) -> None:
        check = (
            f"cd {self.path} && set -- $(wc -c <{name}.part) $(sha256sum <{name}.part)\n"
            f'if [ "$1 $2" = "{wanted[0]} {wanted[1]}" ]; then chmod 755 {name}.part '
            f"&& mv -f {name}.part {name} && echo is there; fi"
        )
        for _ in range(2):
            self.link.push(path, f"{self.path}/{name}.part")
            if "is there" in self.link.tell(check, timeout=300):
                return
        raise MachineError(
            f"{name} comes to the device with other bytes", where=self.link.address, hint="try another cable or network"
        )

    def run(self, command: str, *, timeout: float) -> Reply:
        """Run one program in the folder, its process id in `pid`; it is ended where it does not end in time.

        Raises:
            QnnciError: as `Link.ask`.

        """
        self.link.tell(f"mkdir -p {self.path} && cd {self.path} && printf %s {shlex.quote(task(command))} >task.sh")
        try:
            return self.link.ask(f"cd {self.path} && exec sh ./task.sh", timeout=timeout)
        except BaseException:
            self.stop()
            raise

    def start(self, command: str, every: float) -> None:
        """Begin one program that goes on without the connection, looked at every so many seconds; see `ended`.

        Raises:
            QnnciError: as `Link.ask`.

        """
        write = "\n".join(
            f"printf %s {shlex.quote(text)} >{name}"
            for name, text in (("task.sh", task(command)), ("watch.sh", watch(every)))
        )
        self.link.tell(
            f"mkdir -p {self.path} && cd {self.path} && rm -f code pid samples.txt log.txt || exit 1\n{write}\n"
            "if command -v setsid >/dev/null; then free=setsid; else free=nohup; fi\n"
            "$free sh ./watch.sh </dev/null >/dev/null 2>&1 &"
        )

    def ended(self) -> tuple[int, float] | None:
        """Exit code and seconds of what was begun; None while it runs.

        Raises:
            QnnciError: as `Link.ask`.

        """
        said = self.link.tell(f"cat {self.path}/code 2>/dev/null || true")
        match = re.fullmatch(r"\s*(\d{1,3}) ([\d.]{1,20}) ([\d.]{1,20})\s*", said, re.ASCII)
        return (int(match[1]), max(0.0, float(match[3]) - float(match[2]))) if match else None

    def stop(self) -> None:
        """End what runs in the folder, if anything does and the device can still be asked."""
        with contextlib.suppress(QnnciError):
            self.link.ask(
                f'cd {self.path} && p=$(cat pid) && [ "$(readlink /proc/$p/cwd)" = "$(pwd -P)" ] && kill -9 $p',
                timeout=20,
            )

    def fetch(self, names: str, local: Path) -> None:
        """Copy files and folders of the room to a tar here.

        Raises:
            QnnciError: as `Link.ask`; MachineError where one is not there.

        """
        said = self.link.tell(f"cd {self.path} && tar -cf made.tar {names} && wc -c <made.tar", timeout=300)
        size = re.search(r"(\d+)\s*$", said)
        self.link.pull(f"{self.path}/made.tar", local, size=int(size[1]) if size else 0)

    def remove(self) -> None:
        """Remove the folder and all that is in it; nothing where the device can no longer be asked."""
        with contextlib.suppress(QnnciError):
            self.link.ask(f"rm -rf {self.path}", timeout=30)


def task(command: str) -> str:
    """A script that becomes one program, which finds the libraries of its folder."""
    host, dsp = "$PWD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", ";".join(("$PWD", *_DSP_FOLDERS))
    return f'echo $$ >pid\nexport LD_LIBRARY_PATH="{host}" ADSP_LIBRARY_PATH="{dsp}"\nexec {command}\n'


def watch(every: float) -> str:
    """A script that runs task.sh and looks at it: what `qnnci.device.ticks` reads, how it ended, and when."""
    return f"""\
getconf CLK_TCK >hz 2>/dev/null || echo 100 >hz
read began rest </proc/uptime
(
  sh ./task.sh >log.txt 2>&1
  code=$?
  read now rest </proc/uptime
  echo "$code $began $now" >code.part
  mv code.part code
) &
while [ ! -f pid ] && [ ! -f code ]; do sleep 0.1 2>/dev/null || sleep 1; done
while [ -f watch.sh ] && [ ! -f code ]; do
  p=$(cat pid 2>/dev/null)
  if [ -n "$p" ] && [ -r /proc/$p/stat ]; then
    read now rest </proc/uptime
    {{
      echo "@ $now"
      for q in $p $(cat /proc/$p/task/*/children 2>/dev/null); do cat /proc/$q/stat; done
      echo -
      cat /proc/$p/task/*/stat
    }} >>samples.txt 2>/dev/null
  fi
  sleep {every:g}
done
"""


@contextlib.contextmanager
def opened(link: Link, folder: str, key: object, *, keep: bool = False) -> Iterator[Room]:
    """A room in a folder of the device, the same one for the same key.

    Where the connection broke, what has arrived stays for the next run; else it is removed, unless it is to be kept.
    """
    room = Room(link, f"{folder}/qnnci-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}")
    try:
        yield room
    except MachineError as error:
        if "no space" in error.message:  # what is there half is of no use to anybody
            room.remove()
        raise
    except BaseException:
        if not keep:
            room.remove()
        raise
    if not keep:
        room.remove()


def space(wanted: Mapping[str, Path]) -> int:
    """The bytes that files take on a device, with room for what comes of them."""
    return sum(path.stat().st_size for path in wanted.values()) + _ODD_BYTES
