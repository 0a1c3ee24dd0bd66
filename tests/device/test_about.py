"""What devices say of themselves, and which chip that is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fake_device, runtime

from qnnci.device import about
from qnnci.errors import MachineError, UsageError

_SAID = about.described({}, "ssh")


def test_a_phone(tmp_path, qnnci):
    env = fake_device.make(tmp_path / "device")
    (tmp_path / "device/root/sys/devices/soc0").mkdir(parents=True)
    (tmp_path / "device/root/sys/devices/soc0/soc_id").write_text("519\n")
    ended = qnnci("device", "info", "adb:SERIAL1", cwd=tmp_path, **env)
    assert ended.code == 0, ended.said
    assert ended.said.splitlines() == [
        "device          Maker Phone One",
        "system          Android 14, arm64-v8a",
        "chip            SM8550, v73, 8 MB VTCM",
        "calls itself    QTI SM8550",
        "kernel's soc_id 519 (the kernel's own number, not QNN's)",
        "folder          /data/local/tmp, 7812 MB free",
    ]


def test_a_board_by_its_machine_and_by_its_device_tree(tmp_path, qnnci):
    env = fake_device.make(tmp_path / "device", "ssh")
    told = json.loads(qnnci("device", "info", "ssh:root@board", "--json", cwd=tmp_path, **env).said)
    assert (told["model"], told["system"], told["chips"]) == ("Board One", "Board Linux 1.2", ["QCS6490", "QCM6490"])
    assert (told["soc"], told["dsp_arch"], told["folder"], told["arch"]) == ("QCS6490", "v68", "/tmp", 0)
    (tmp_path / "device/root/sys/devices/soc0/machine").unlink()
    told = json.loads(qnnci("device", "info", "ssh:root@board", "--json", cwd=tmp_path, **env).said)
    assert (told["chips"], told["soc"]) == (["QCM6490"], "QCS6490")


@pytest.mark.parametrize(("arch", "code"), [(68, 0), (73, 2)])
def test_the_platform_validator_of_a_board_is_asked(tmp_path, arch, code, qnnci):
    env = fake_device.make(tmp_path / "device", "ssh")
    runtime.write_manifest(tmp_path, runtime.entry("g", "QCS6490"))
    said = f"Core Version of the backend DSP: Hexagon Architecture V{arch}"
    tool = tmp_path / "device/bin/qnn-platform-validator"
    tool.write_text(f'#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n[ -d "$1" ] && echo "{said}"\n')
    tool.chmod(0o755)
    ended = qnnci("device", "info", "ssh:root@board", "--for", "manifest.json", cwd=tmp_path, **env)
    assert ended.code == code, ended.said
    assert f"v{arch}" in ended.said
    assert list((tmp_path / "device/root/tmp").iterdir()) == []


def test_which_binaries_are_for_it(tmp_path, qnnci):
    env = fake_device.make(tmp_path / "device")
    runtime.write_manifest(tmp_path, runtime.entry("enc", "SM8550"), runtime.entry("enc", "SM8750"))
    ended = qnnci("device", "info", "adb", "--for", ".", cwd=tmp_path, **env)
    assert ended.code == 0, ended.said
    assert ended.said.endswith("binary          enc: enc-SM8550.bin\n")
    fake_device.props(tmp_path / "device", **{**fake_device.PROPS, "ro.soc.model": "SM8475P"})
    ended = qnnci("device", "info", "adb", "--for", ".", cwd=tmp_path, **env)
    assert ended.code == 2
    assert "the device is SM8475 (v69), the manifest has binaries for SM8550 (v73), SM8750 (v79)" in ended.said
    ended = qnnci("device", "info", "adb", "--for", ".", "--soc", "SM8750", cwd=tmp_path, **env)
    assert ended.said.endswith("binary          enc: enc-SM8750.bin\n")


@pytest.mark.parametrize(
    ("model", "maker", "told"),
    [("MT6989", "Mediatek", "MT6989 by Mediatek"), ("SM8250", "QTI", "has no HTP"), ("", "", "does not say")],
)
def test_other_chips_are_told_and_refused(tmp_path, model, maker, told, qnnci):
    env = fake_device.make(tmp_path / "device")
    fake_device.props(tmp_path / "device", **{"ro.soc.model": model, "ro.soc.manufacturer": maker})
    ended = qnnci("device", "info", "adb", cwd=tmp_path, **env)
    assert ended.code == 0
    assert told in ended.said
    runtime.write_manifest(tmp_path, runtime.entry("enc", "SM8550"))
    assert qnnci("device", "info", "adb", "--for", ".", cwd=tmp_path, **env).code == 2


@pytest.mark.parametrize(("state", "code"), [("device", 0), ("offline", 1), ("unauthorized", 1)])
def test_the_list(tmp_path, state, code, qnnci):
    env = fake_device.make(tmp_path / "device", state=state)
    ended = qnnci("device", "list", cwd=tmp_path, **env)
    assert ended.code == code
    assert f"adb:SERIAL1  {state}" in ended.said
    (row,) = json.loads(qnnci("device", "list", "--json", cwd=tmp_path, **env).said)
    assert bool(row["todo"]) == bool(code)
    assert qnnci("device", "info", "adb:SERIAL1", cwd=tmp_path, **env).code == (5 if code else 0)


def test_a_board_that_keeps_nothing_in_memory():
    mounts = "/dev/root / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,noexec 0 0\n"
    told = {"mounts": mounts, "df /tmp": "x 9 1 800 10% /", "df /dev/shm": "x 9 1 800 10% /dev/shm"}
    said = about.described(told, "ssh")
    assert said.folder == ""
    with pytest.raises(MachineError, match="flash is not written to"):
        about.folder_for(said, 1)
    assert about.folder_for(said, 1, "/var/x/") == "/var/x"
    with pytest.raises(UsageError):
        about.folder_for(said, 1, "/a;b")
    said = about.described({**told, "mounts": f"{mounts}tmpfs /tmp tmpfs rw 0 0\n"}, "ssh")
    assert (said.folder, said.free_bytes) == ("/tmp", 800 << 10)
    with pytest.raises(MachineError, match="no space left"):
        about.folder_for(said, 1 << 20)


def test_properties_over_several_lines():
    assert about.properties("[a]: [1\n2]\r\n[b]: []\n[c]: [x]y]\n") == {"a": "1\n2", "b": "", "c": "x]y"}


@settings(max_examples=200)
@given(st.text(alphabet="[]: \n\r=ab1%/tmpfs,\0é", max_size=120), st.sampled_from(["adb", "ssh"]))
def test_nothing_that_a_device_says_breaks_the_reader(text, kind):
    names = ("props", "machine", "compatible", "board", "release", "abi", "mounts", "df /tmp", "validator")
    said = about.described(dict.fromkeys(names, text), kind)
    assert said.free_bytes >= 0
    about.sections(text)
    with pytest.raises(UsageError):
        about.chip(said)
