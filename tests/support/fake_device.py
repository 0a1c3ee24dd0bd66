"""Stand-ins for `adb`, `ssh` and `scp` that keep a device's file system in a folder.

Scripts run on this machine's shell, with the folders of a device led to those of the fake one; `getprop`, `dumpsys` and
`df` are the fake's own. `device.json` says what it is and how it shall fail:

state       device, offline, unauthorized: what adb says of it
lose_codes  adb's exit code is always 0, and lines end in CR LF, as with old devices
refuse      ssh ends with 255 and these words
full        bytes that there is room for in all: more is refused in the middle
reset       the n-th copy (from 0) stops half way, once
break_shell the connection ends before the n-th script is done, once
hang        shell or copy: never ends
several     adb sees another one too, and wants to be told which
greets      words that stand before those of each script
corrupt     the n-th copy arrives with other bytes, once
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ENVIRONMENT = "FAKE_DEVICE"
_FOLDERS = ("/data/local/tmp", "/sys/", "/tmp", "/var/volatile", "/run", "/etc/os-release", "/dev/shm", "/proc/mounts")
_MAPPED = re.compile(rf"(?<![\w/.])(?={'|'.join((*_FOLDERS, '/proc/device-tree'))})")
_GETPROP = '#!/bin/sh\nif [ $# -eq 0 ]; then cat "$FAKE_DEVICE/props"; fi\n'
_DUMPSYS = '#!/bin/sh\ncat "$FAKE_DEVICE/dumpsys-$1" 2>/dev/null || { echo "Can\'t find service: $1"; exit 20; }\n'
_DF = """#!/bin/sh
echo 'Filesystem 1K-blocks Used Available Use% Mounted on'
echo "/dev/block/dm-5 112000000 60000000 $(cat "$FAKE_DEVICE/free_kb") 55% /data"
"""
PROPS = {
    "ro.soc.model": "SM8550", "ro.soc.manufacturer": "QTI", "ro.product.model": "Phone One",
    "ro.product.manufacturer": "Maker", "ro.build.version.release": "14", "ro.product.cpu.abi": "arm64-v8a",
}  # fmt: skip
BATTERY = """Current Battery Service state:
  AC powered: false
  USB powered: false
  Wireless powered: false
  Charge counter: 3000000
  status: 3
  level: 80
  scale: 100
  voltage: 4100
  temperature: 301
"""
THERMAL = """IsStatusOverride: false
Thermal Status: 0
Cached temperatures:
\tTemperature{mValue=99.0, mType=0, mName=cpu-0-0, mStatus=0}
HAL Ready: true
Current temperatures from HAL:
\tTemperature{mValue=41.5, mType=0, mName=cpu-0-0, mStatus=0}
\tTemperature{mValue=30.1, mType=2, mName=battery, mStatus=0}
\tTemperature{mValue=36.2, mType=3, mName=skin, mStatus=0}
"""


def make(folder: Path, kind: str = "adb", **settings: Any) -> dict[str, str]:
    """Write a fake device to a folder; returns the environment in which `adb`, `ssh` and `scp` mean it."""
    root, tools, own = folder / "root", folder / "host", folder / "bin"
    for path in (tools, own, root / "tmp", root / "proc"):
        path.mkdir(parents=True)
    for name in ("adb", "ssh", "scp"):
        _program(tools / name, f'#!/bin/sh\nexec "{sys.executable}" -IS "{__file__}" {name} "$@"\n')
    _program(own / "df", _DF)
    (folder / "free_kb").write_text("8000000")
    (root / "proc/mounts").write_text("/dev/root / ext4 rw 0 0\ntmpfs /tmp tmpfs rw,nosuid 0 0\n")
    if kind == "adb":
        (root / "data/local/tmp").mkdir(parents=True)
        _program(own / "getprop", _GETPROP)
        _program(own / "dumpsys", _DUMPSYS)
        props(folder, **PROPS)
        (folder / "dumpsys-battery").write_text(BATTERY)
        (folder / "dumpsys-thermalservice").write_text(THERMAL)
    else:
        board(root)
    setting(folder, serial="SERIAL1", **settings)
    return environment(folder)


def environment(folder: Path) -> dict[str, str]:
    """What makes `adb`, `ssh` and `scp` mean a device that was made."""
    return {"PATH": f"{folder / 'host'}{os.pathsep}{os.environ['PATH']}", ENVIRONMENT: str(folder)}


def board(root: Path, machine: str = "QCS6490", model: str = "Board One") -> None:
    """The files by which a Linux board says what it is."""
    texts = {
        "sys/devices/soc0/machine": f"{machine}\n", "sys/devices/soc0/soc_id": "497\n",
        "proc/device-tree/model": f"{model}\0", "proc/device-tree/compatible": "maker,board\0qcom,qcm6490\0",
        "etc/os-release": 'NAME="Linux"\nPRETTY_NAME="Board Linux 1.2"\n',
        "sys/class/thermal/thermal_zone0/type": "cpu0-thermal\n", "sys/class/thermal/thermal_zone0/temp": "48500\n",
    }  # fmt: skip
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def props(folder: Path, **more: str) -> None:
    (folder / "props").write_text("".join(f"[{key}]: [{value}]\n" for key, value in more.items()))


def setting(folder: Path, **more: Any) -> None:
    """Change how the device behaves."""
    file = folder / "device.json"
    old = json.loads(file.read_text()) if file.exists() else {"state": "device"}
    file.write_text(json.dumps({**old, **more}))


def ended(process: int) -> bool:
    """Wait until a process is gone, or dead and not collected yet; it has been killed, so this comes."""
    for _ in range(600):
        try:
            if ") Z " in Path(f"/proc/{process}/stat").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


class Device:
    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "root"
        self.how: dict[str, Any] = json.loads((folder / "device.json").read_text())

    def once(self, what: str) -> bool:
        """Whether this is the call of its kind at which something shall go wrong."""
        counter = self.folder / f"count-{what}"
        number = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(number + 1))
        return bool(self.how.get(what) == number)

    def path(self, remote: str) -> Path:
        return self.root / remote.lstrip("/")

    def shell(self, command: str) -> int:
        self._log(command)
        if self.how.get("hang") == "shell":
            time.sleep(600)
        if self.once("break_shell"):
            sys.stdout.write("half of what it s")
            return 255
        mapped = _MAPPED.sub(str(self.root), command)
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH'].split(os.pathsep, 1)[1]}"
        env = {**os.environ, "PATH": path, "TMPDIR": "/tmp"}
        done = subprocess.run(
            ["/bin/sh", "-c", mapped], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        sys.stdout.write(self.how.get("greets", ""))
        sys.stdout.flush()
        said = (done.stdout + done.stderr).replace(str(self.root).encode(), b"")
        sys.stdout.buffer.write(said.replace(b"\n", b"\r\n") if self.how.get("lose_codes") else said)
        return 0 if self.how.get("lose_codes") else done.returncode

    def copy(self, source: Path, target: Path, *, inward: bool) -> int:
        self._log(f"copy {source.name}")
        if self.how.get("hang") == "copy":
            time.sleep(600)
        if target.is_dir():
            target /= source.name
        if not source.exists() or not target.parent.is_dir():
            sys.stderr.write(f"{source}: No such file or directory\n")
            return 1
        data = source.read_bytes()
        used = sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file()) if inward else 0
        if "full" in self.how and used + len(data) > self.how["full"]:
            target.write_bytes(data[: max(0, self.how["full"] - used)])
            sys.stderr.write(
                f"failed to copy '{source}' to '{target}': remote couldn't write: No space left on device\n"
            )
            return 1
        if self.once("reset"):
            target.write_bytes(data[: len(data) // 2])
            sys.stderr.write("Connection reset by peer\n")
            return 1
        if self.once("corrupt"):
            data = data[:-1] + bytes([data[-1] ^ 1])
        target.write_bytes(data)
        shutil.copymode(source, target)
        return 0

    def _log(self, line: str) -> None:
        with (self.folder / "log").open("a") as file:
            file.write(f"{line}\n")


def adb(device: Device, words: list[str]) -> int:
    serial, state = device.how["serial"], device.how["state"]
    if words[:2] == ["devices", "-l"]:
        print("List of devices attached")
        more = " product:one model:Phone_One device:one transport_id:1"
        print(f"{serial:<22} {state}{more if state == 'device' else ' transport_id:1'}\n")
        return 0
    named = words[1] if words[0] == "-s" else serial
    said = {"device": "", "unauthorized": "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set"}
    problem = f"device '{named}' not found" if named != serial else said.get(state, f"device {state}")
    problem = "more than one device/emulator" if device.how.get("several") and words[0] != "-s" else problem
    if problem:
        sys.stderr.write(f"adb: {problem}\n")
        return 1
    match words[2:] if words[0] == "-s" else words:
        case ["shell", command]:
            return device.shell(command)
        case ["push", local, remote]:
            return device.copy(Path(local), device.path(remote), inward=True)
        case ["pull", remote, local]:
            return device.copy(device.path(remote), Path(local), inward=False)
        case _:
            raise ValueError(words)


def secure(device: Device, tool: str, words: list[str]) -> int:
    """Ssh, and scp; both have to be told not to ask, and where options end."""
    options, rest = words[: words.index("--")], words[words.index("--") + 1 :]
    assert "BatchMode=yes" in options, options
    assert any(each.startswith("ConnectTimeout=") for each in options), options
    if "refuse" in device.how:
        sys.stderr.write(f"{device.how['refuse']}\n")
        return 255
    if tool == "ssh":
        _, command = rest
        return device.shell(command)
    source, target = rest
    if ":" in target and not target.startswith("/"):
        return device.copy(Path(source), device.path(target.partition(":")[2]), inward=True)
    return device.copy(device.path(source.partition(":")[2]), Path(target), inward=False)


def main() -> int:
    device = Device(Path(os.environ[ENVIRONMENT]))
    tool, *words = sys.argv[1:]
    code = adb(device, words) if tool == "adb" else secure(device, tool, words)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
