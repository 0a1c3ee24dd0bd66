from __future__ import annotations

import io
import stat
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.sdk_zip import FILES, VERSION, entry, zipped

from qnnci.errors import QnnciError, UsageError
from qnnci.toolchain import sdk_archive
from qnnci.toolchain.sdk_archive import NEEDS, plan, unpack

ROOT = f"qairt/{VERSION}"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "sdk.zip"
    path.write_bytes(zipped())
    return path


def names(path: Path, *needs: str) -> set[str]:
    return {str(name) for _, name in plan(path, needs).entries}


def test_only_what_is_needed_is_taken(archive: Path) -> None:
    device = {name for name in FILES if name.startswith(("lib/aarch64-android/", "lib/hexagon-", "include/QNN/"))}
    papers = {"LICENSE.pdf", "QNN_NOTICE.txt", "sdk.yaml"}
    tools = {name for name in FILES if name.startswith(("bin/x86_64-linux", "lib/x86_64-linux", "lib/python"))}
    tools |= {"bin/envsetup.sh"}
    assert names(archive, "ort") == device | papers | {"lib/x86_64-linux-clang/libQnnSystem.so"}
    assert names(archive, "dlc") == device | papers | tools
    assert names(archive, "model-lib") == device | papers | tools | {"share/QNN/converter/jni/QnnModel.cpp"}
    assert names(archive, *NEEDS) == names(archive, "model-lib")


def test_unpacked_as_it_was(archive: Path, tmp_path: Path) -> None:
    chosen = plan(archive, NEEDS)
    assert chosen.version == VERSION
    unpack(archive, chosen, tmp_path / "out")
    written = {
        str(path.relative_to(tmp_path / "out")): path for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    assert {name: path.read_bytes() for name, path in written.items()} == {name: FILES[name] for name in written}
    assert chosen.bytes == sum(len(FILES[name]) for name in written)
    runs = {name for name, path in written.items() if path.stat().st_mode & 0o777 == 0o755}
    assert runs == {name for name in written if name.startswith("bin/x86_64-linux")}
    assert {path.stat().st_mode & 0o7777 for path in written.values()} == {0o755, 0o644}


def test_no_mode_but_the_run_bit_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "sdk.zip"
    name = f"{ROOT}/bin/x86_64-linux-clang/tool"
    path.write_bytes(zipped(more={entry(name, stat.S_IFREG | stat.S_ISUID | 0o777): b"x"}))
    unpack(path, plan(path, ["dlc"]), tmp_path / "out")
    assert (tmp_path / "out/bin/x86_64-linux-clang/tool").stat().st_mode & 0o7777 == 0o755


def test_tools_of_a_zip_without_modes_run(tmp_path: Path) -> None:
    path = tmp_path / "sdk.zip"
    tool = entry(f"{ROOT}/bin/x86_64-linux-clang/tool")
    tool.external_attr = 0x20  # as Windows has it
    path.write_bytes(zipped(more={tool: b"x"}))
    unpack(path, plan(path, ["dlc"]), tmp_path / "out")
    assert (tmp_path / "out/bin/x86_64-linux-clang/tool").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "name",
    ["../evil", f"{ROOT}/lib/../../../../evil", "/etc/evil", f"{ROOT}/lib/..\\..\\evil", "C:/evil", f"{ROOT}//lib/x",
     f"{ROOT}/lib/./x", f"{ROOT}/lib/new\nline", f"{ROOT}/lib/{'x' * 256}", "..", "\\\\host\\share"],
)  # fmt: skip
def test_an_entry_that_leaves_the_folder_refuses_the_zip(tmp_path: Path, name: str) -> None:
    path = tmp_path / "sdk.zip"
    path.write_bytes(zipped(more={entry(name): b"evil"}))
    with pytest.raises(UsageError, match="outside of its folder"):
        plan(path, ["dlc"])


@pytest.mark.parametrize(("kind", "what"), [(stat.S_IFLNK, "a link"), (stat.S_IFIFO, "plain"), (stat.S_IFCHR, "plain")])
def test_links_and_devices_are_refused_where_they_would_be_taken(tmp_path: Path, kind: int, what: str) -> None:
    path = tmp_path / "sdk.zip"
    path.write_bytes(zipped(more={entry(f"{ROOT}/lib/python/x", kind | 0o777): b"/etc/passwd"}))
    with pytest.raises(UsageError, match=what):
        plan(path, ["dlc"])
    assert plan(path, ["ort"]).version == VERSION


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sdk.zip"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path.write_bytes(zipped(more={entry(f"{ROOT}/sdk.yaml"): b"version: 9.9.9"}))
    with pytest.raises(UsageError, match="two entries"):
        plan(path, ["ort"])
    path.write_bytes(zipped(more={entry(f"{ROOT}/lib/python/qti"): b"a file where a folder is"}))
    with pytest.raises(UsageError, match="two entries"):
        plan(path, ["dlc"])


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sdk.zip"
    path.write_bytes(zipped(more={entry(f"{ROOT}/lib/python/zeros"): bytes(100 << 20)}))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(UsageError, match=r"would unpack to 10\d{7} bytes"):
        plan(path, ["dlc"])
    monkeypatch.setattr(sdk_archive, "MOST_ENTRIES", 5)
    with pytest.raises(UsageError, match="entries"):
        plan(path, ["ort"])


def test_an_entry_that_is_longer_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "sdk.zip"
    whole = zipped(more={entry(f"{ROOT}/lib/python/zeros"): bytes(1 << 20)})
    path.write_bytes(whole.replace((1 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    with pytest.raises(UsageError, match=r"damaged at lib/python/zeros"):
        unpack(path, plan(path, ["dlc"]), tmp_path / "out")
    assert (tmp_path / "out/lib/python/zeros").stat().st_size <= 1 << 20


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (zipped()[:1500], "cut short: 1500 bytes"),
        (b"", "not a zip"),
        (b"<html>sign in</html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (zipped({"README.md": b"x"}), "no QAIRT SDK"),
        (zipped({"lib/x": b"x"}), "no QAIRT SDK"),
    ],
)
def test_what_is_no_sdk_is_told(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "sdk.zip"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=says):
        plan(path, ["dlc"])


def test_a_damaged_entry_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sdk.zip"
    name = f"{ROOT}/lib/python/blob"
    out = io.BytesIO(zipped())
    with zipfile.ZipFile(out, "a") as more:
        more.writestr(zipfile.ZipInfo(name), b"0123456789" * 100)
    path.write_bytes(out.getvalue().replace(b"0123456789", b"012345678X", 1))
    with pytest.raises(UsageError, match="damaged at lib/python/blob"):
        unpack(path, plan(path, ["dlc"]), tmp_path / "out")


@given(st.text(max_size=30))
@example("a/../b")
@example("a/")
@settings(max_examples=200, deadline=None)
def test_a_safe_name_stays_inside(name: str) -> None:
    if sdk_archive.is_safe(name):
        inside = Path("/folder", name)
        assert Path("/folder") in inside.parents
        assert ".." not in inside.parts
        assert "\0" not in name


@given(st.binary(max_size=300), st.integers(0, 3000))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_zip_breaks_it(tmp_path: Path, noise: bytes, at: int) -> None:
    whole = zipped()
    path = tmp_path / "sdk.zip"
    path.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    try:
        chosen = plan(path, ["dlc"])
        unpack(path, chosen, tmp_path / f"out-{path.stat().st_mtime_ns}")
    except QnnciError:
        pass
