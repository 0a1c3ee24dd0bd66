"""Addresses, and a device that answers, does not, or stops in the middle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fake_device

from qnnci.device import attached
from qnnci.device.link import Link, connect
from qnnci.device.transport import Adb, Ssh, parse
from qnnci.errors import MachineError, QnnciError, ToolCrashed, ToolMissing, UsageError

ADDRESSES = {"adb": "adb:SERIAL1", "ssh": "ssh:root@board"}


@pytest.fixture(params=["adb", "ssh"])
def kind(request):
    return request.param


@pytest.fixture
def device(kind, tmp_path, monkeypatch):
    """The folder of a fake device that `adb`, `ssh` and `scp` mean."""
    for name, value in fake_device.make(tmp_path / "device", kind).items():
        monkeypatch.setenv(name, value)
    return tmp_path / "device"


@pytest.fixture
def link(device, kind):  # noqa: ARG001 - the device has to be there
    return Link(parse(ADDRESSES[kind]))


@pytest.mark.parametrize(
    ("address", "transport"),
    [
        ("adb", Adb()),
        ("adb:192.168.1.5:5555", Adb("192.168.1.5:5555")),
        ("ssh:board", Ssh("board")),
        ("ssh:root@10.0.0.2:2222", Ssh("10.0.0.2", "root", 2222)),
        ("ssh:me@[fe80::1%eth0]:22", Ssh("[fe80::1%eth0]", "me", 22)),
    ],
)
def test_addresses(address, transport):
    assert parse(address) == transport
    assert transport.address == address


@pytest.mark.parametrize(
    "address",
    ["", "usb:1", "adb:", "adb:-e", "ssh:", "ssh:-oProxyCommand=x", "ssh:a@-b", "ssh:-l@b", "ssh:b:0", "ssh:b:70000",
     "ssh:a b", "ssh:b;reboot", "adb:a b", "ssh:$(x)"],
)  # fmt: skip
def test_what_is_no_address(address):
    with pytest.raises(UsageError):
        parse(address)


@settings(max_examples=200)
@given(st.text(max_size=30))
def test_no_address_becomes_an_option(text):
    for kind in ("adb:", "ssh:", ""):
        try:
            transport = parse(kind + text)
        except UsageError:
            continue
        words = transport.shell("true")
        assert transport.address == kind + text
        named = (
            words[words.index("--") + 1] if "--" in words else words[words.index("-s") + 1] if "-s" in words else "x"
        )
        assert not named.startswith("-")


def test_ssh_asks_nothing_and_has_the_users_options_behind_ours():
    words = parse("ssh:me@[::1]:2222", ["BatchMode=no", "IdentityFile=key"]).shell("echo 'a b'")
    assert words.index("BatchMode=yes") < words.index("BatchMode=no")
    assert words[-3:] == ["--", "me@::1", """sh -c 'echo '"'"'a b'"'"''"""]
    with pytest.raises(UsageError):
        parse("ssh:b", ["-oProxyCommand=x"])


def test_scripts_answer_with_code_and_both_streams(link):
    assert link.ask("echo 'it is'; echo \"$HOME\" >/dev/null; echo so >&2; exit 3").code == 3
    assert link.ask("printf 'no end'").output == "no end"
    assert link.tell("echo one; echo two") == "one\ntwo\n"
    with pytest.raises(MachineError, match="ended with 4: why"):
        link.tell("echo why; exit 4")


def test_old_adb_loses_codes_and_changes_line_ends(tmp_path, monkeypatch):
    for name, value in fake_device.make(tmp_path / "device", lose_codes=True).items():
        monkeypatch.setenv(name, value)
    reply = Link(Adb()).ask("echo one; exit 5")
    assert (reply.code, reply.output) == (5, "one\n")


def test_what_stands_before_an_answer_is_none_of_it(device, link):
    fake_device.setting(device, greets="* daemon not running; starting now at tcp:5037\n== props\nno end of line")
    assert link.tell("echo one; echo two >&2") == "one\ntwo\n"
    assert link.ask("exit 7").code == 7


def test_several_phones_want_a_name(tmp_path, monkeypatch):
    for name, value in fake_device.make(tmp_path / "device", several=True).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MachineError, match="is several devices"):
        connect("adb")
    assert connect("adb:SERIAL1").tell("echo it") == "it\n"


def test_files_go_there_and_back(link, kind, tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 100)
    folder = "/data/local/tmp" if kind == "adb" else "/tmp"
    link.push(tmp_path / "file", f"{folder}/file")
    link.pull(f"{folder}/file", tmp_path / "back", size=25600)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()


def test_a_script_that_was_cut_off_did_not_work(device, link):
    fake_device.setting(device, break_shell=0)
    with pytest.raises(MachineError, match="ended in the middle: half of what it s"):
        link.ask("echo all")
    assert link.ask("echo all").output == "all\n"


def test_a_device_that_hangs(device, link):
    fake_device.setting(device, hang="shell")
    with pytest.raises(ToolCrashed, match="did not end within 1 s"):
        link.ask("true", timeout=1)


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ({"state": "offline"}, "is offline", "adb reconnect"),
        ({"state": "unauthorized"}, "has not allowed this computer", "accept the question"),
        ({"serial": "OTHER"}, "is not there", "qnnci device list"),
    ],
)
def test_phones_that_are_not_ready(tmp_path, monkeypatch, settings, message, hint):
    for name, value in fake_device.make(tmp_path / "device").items():
        monkeypatch.setenv(name, value)
    fake_device.setting(tmp_path / "device", **settings)
    with pytest.raises(MachineError, match=message) as caught:
        connect("adb:SERIAL1")
    assert hint in caught.value.hint
    assert caught.value.where == "adb:SERIAL1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("root@board: Permission denied (publickey,password).", "does not let this user in"),
        ("ssh: connect to host board port 22: Connection refused", "takes no connections"),
        ("ssh: Could not resolve hostname board: Name or service not known", "not known here"),
        ("Host key verification failed.", "host key"),
        ("ssh: connect to host board port 22: Connection timed out", "does not answer"),
        ("kex_exchange_identification: read", "ended in the middle: kex"),
        ("client_loop: send disconnect: Broken pipe", "lost in the middle"),
    ],
)
def test_boards_that_do_not_let_in(tmp_path, monkeypatch, words, message):
    for name, value in fake_device.make(tmp_path / "device", "ssh", refuse=words).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MachineError, match=message):
        connect("ssh:root@board")


@pytest.mark.parametrize("address", ["adb", "ssh:board"])
def test_programs_that_are_not_installed(address, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing) as caught:
        connect(address)
    assert caught.value.hint.startswith("install")
    if address == "adb":
        with pytest.raises(ToolMissing):
            attached.attached()


def test_what_adb_sees():
    text = (
        "* daemon not running; starting now at tcp:5037\n* daemon started successfully\nList of devices attached\n"
        "R5CT30\tdevice usb:1-1 product:x model:SM_S918B device:dm3q transport_id:1\n"
        "emulator-5554          offline transport_id:2\n"
        "0123                   unauthorized usb:1-2 transport_id:3\n"
        "????????????           no permissions (user in plugdev group; are your udev rules wrong?)\n\n"
    )
    found = [(each.address, each.state, each.model) for each in attached.parse(text)]
    assert found == [
        ("adb:R5CT30", "device", "SM S918B"),
        ("adb:emulator-5554", "offline", ""),
        ("adb:0123", "unauthorized", ""),
        ("adb:????????????", "no permissions", ""),
    ]
    assert [bool(each.todo) for each in attached.parse(text)] == [False, True, True, True]


@settings(max_examples=100)
@given(st.text(alphabet="List of devices attached\n\tdeviceoffline:*?_ x1", max_size=200))
def test_any_list_is_read(text):
    attached.parse(f"List of devices attached\n{text}")


def test_errors_are_for_people(device, link):
    """Whatever goes wrong, it is a QnnciError with something to do."""
    fake_device.setting(device, state="weird", refuse="odd words")
    with pytest.raises(QnnciError) as caught:
        link.tell("true")
    assert caught.value.hint


def test_copies_that_are_refused(device, link, tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(MachineError, match=r"a file was not copied: .*No such file"):
        link.push(tmp_path / "file", "/not/there/file")
    fake_device.setting(device, full=0)
    with pytest.raises(MachineError, match="no space left"):
        link.push(tmp_path / "file", "/tmp/file")
