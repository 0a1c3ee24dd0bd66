"""Zips that hold run-time libraries, damaged and made to do harm; what ELF and PE files say."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sdk import elf as make
from support import runtime

from qnnci.errors import UsageError
from qnnci.ship import runtime_check, runtime_shelf
from qnnci.ship.runtime_fetch import packages
from qnnci.ship.runtime_set import PLATFORMS, parted
from qnnci.toolchain import elf, pe

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


def harmed(whole: bytes) -> st.SearchStrategy[bytes]:
    """Copies of a small file with some bytes changed, and some cut short."""
    change = st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255))

    def copy(changes: list[tuple[int, int]], end: int) -> bytes:
        made = bytearray(whole)
        for place, byte in changes:
            made[place] = byte
        return bytes(made[:end])

    ends = st.one_of(st.just(len(whole)), st.integers(0, len(whole)))
    return st.builds(copy, st.lists(change, min_size=1, max_size=4), ends)


@pytest.mark.parametrize("whole", [runtime.aar(), runtime.wheel(runtime.libraries())], ids=["aar", "wheel"])
def test_any_damage_to_a_zip(tmp_path: Path, whole: bytes) -> None:
    path, out = tmp_path / "q.zip", tmp_path / "out"
    out.mkdir()

    @ANY
    @given(harmed(whole))
    def opens_or_refuses(content: bytes) -> None:
        path.write_bytes(content)
        try:
            shelf = runtime_shelf.of_zip(path, "q.zip")
            for name, place in shelf.files.items():
                taken = runtime_shelf.take(place, "library", out)
                taken.unlink()
                assert "/" not in name
        except UsageError:
            (out / "library").unlink(missing_ok=True)

    opens_or_refuses()
    assert {each.name for each in tmp_path.iterdir()} == {"q.zip", "out"}
    assert list(out.iterdir()) == []


@ANY
@given(st.one_of(harmed(runtime.host()), harmed(runtime.skel()), harmed(runtime.dll()), st.binary(max_size=100)))
def test_any_library(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    read = elf.read(path)
    assert isinstance(read, (str, elf.Elf))
    assert pe.machine(path) is None or content[:2] == b"MZ"
    assert all(parted(build) for build in runtime_check.builds_in(path))


def test_what_an_elf_says(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    for machine in (make.AARCH64, make.HEXAGON, make.X86_64):
        path.write_bytes(make.linked(machine, ("libb.so", "liba.so"), align=16384, content=b"x" * 13))
        assert elf.read(path) == elf.Elf(machine, (16384,), ("libb.so", "liba.so"))


def test_builds_are_read_as_the_vendor_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(
        b"\0v2.25.0.240728104910_97711\0 v1.2.3 \0QNN v2.51.0.260929181845\0xv2.4.0.123456\0v2.51.0.260929181845"
    )
    assert runtime_check.builds_in(path) == ("2.25.0.240728104910", "2.51.0.260929181845")


@pytest.mark.parametrize(
    ("source", "version"),
    [
        (b"qnn_version = '2.51.0'", "2.51.0"),
        (b"a = b = 1\nx = qnn_version = '2.51.0'\nraise SystemExit", "2.51.0"),
        (b"qnn_version = open('/etc/passwd').read()", ""),
        (b"qnn_version = '2.51.0; rm'", ""),
        (b"qnn_version = ", ""),
        (b"\0\xff", ""),
        (b"(" * 5000, ""),
        (b"if True:\n  qnn_version = '2.51.0'", ""),
    ],
)
def test_a_wheels_word_on_its_version(tmp_path: Path, source: bytes, version: str) -> None:
    path = tmp_path / "q.whl"
    path.write_bytes(runtime.zipped({"onnxruntime_qnn/build_and_package_info.py": source, "onnxruntime_qnn/a.so": b""}))
    if version:
        assert runtime_shelf.of_zip(path, "q").claim == version
    else:
        with pytest.raises(UsageError, match="does not say"):
            runtime_shelf.of_zip(path, "q")


def test_links_and_doubles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.aar"
    link = zipfile.ZipInfo("jni/arm64-v8a/libQnnHtp.so")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(UsageError, match="is no plain file"):
        runtime_shelf.of_zip(path, "q")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("jni/arm64-v8a/libQnnHtp.so", b"x")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("jni/arm64-v8a/libQnnHtp.so", b"x")
    with pytest.raises(UsageError, match="is there twice"):
        runtime_shelf.of_zip(path, "q")


def test_what_grows_beyond_any_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_shelf, "MOST_BYTES", 1000)
    path = tmp_path / "q.aar"
    path.write_bytes(runtime.aar({"libQnnHtp.so": bytes(1001)}))
    with pytest.raises(UsageError, match="is larger than any library"):
        runtime_shelf.of_zip(path, "q")
    # The size that the directory tells may be a lie.
    place = runtime_shelf.Zipped(path, "jni/arm64-v8a/libQnnHtp.so", 1)
    with pytest.raises(UsageError, match="is larger than any library"):
        runtime_shelf.take(place, "libQnnHtp.so", tmp_path)


def test_versions() -> None:
    assert parted("v2.51.0.260929181845") == ("2.51.0", "260929181845")
    assert parted("2.25.0.240728104910_97711") == ("2.25.0", "240728104910")
    assert parted("2.40.0.251030-standin") == ("2.40.0", "251030")
    assert parted("2.40.0") == ("2.40.0", "")
    assert parted("2.40") is parted("") is parted("v2.40.0 x") is None


def test_the_table_of_packages() -> None:
    known = packages()
    assert "2.51.0.260929181845" in {each.qairt for each in known}
    for each in known:
        assert parted(each.qairt)
        assert set(each.wheels) <= {name for name, platform in PLATFORMS.items() if platform.wheel}


def test_the_command_line_knows_the_platforms() -> None:
    from qnnci.cli import ship

    assert tuple(PLATFORMS) == ship.PLATFORMS
