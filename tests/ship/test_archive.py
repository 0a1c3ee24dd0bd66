"""Archives: readable by everyone's tools, the same to the byte, whole or not there, safe to unpack."""

from __future__ import annotations

import bz2
import hashlib
import os
import random
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.process import run
from qnnci.ship import archive, bzip2
from qnnci.ship.archive import write
from qnnci.ship.extras import extras
from qnnci.ship.member import Member, in_order

KINDS = ("tar.bz2", "tar.zst", "zip")
NAME = "top/x/" + "long" * 40 + "/weights.bin"


@pytest.fixture
def contents() -> dict[str, bytes]:
    noise = random.Random(1).randbytes
    # What grows most before it is compressed, and what is longer than a piece of any packer.
    runs = b"".join(bytes([n % 251]) * 4 for n in range(500_000))
    return {NAME: noise(1_500_001) + bytes(2_000_000) + runs, "top/empty": b"", "top/für dich.txt": b"x" * 70_000}


def files(folder: Path, contents: dict[str, bytes]) -> list[Member]:
    folder.mkdir(exist_ok=True)
    made = []
    for number, (name, data) in enumerate(contents.items()):
        path = folder / str(number)
        path.write_bytes(data)
        made.append(Member.of_file(name, path, sha256=hashlib.sha256(data).hexdigest(), size=len(data)))
    return made


def unpacked(path: Path) -> dict[str, bytes]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as zipped:
            assert zipped.testzip() is None
            return {each.filename: zipped.read(each) for each in zipped.infolist()}
    if path.suffix == ".zst":
        plain = path.with_suffix("")
        plain.write_bytes(unzstd(path))
        path = plain
    with tarfile.open(path) as tar:
        return {each.name: read(tar, each) for each in tar if each.isfile()}


def unzstd(path: Path) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())


def read(tar: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(info)
    assert file is not None
    return file.read()


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_in_comes_out(tmp_path, contents, kind):
    made = write(tmp_path / f"a.{kind}", files(tmp_path / "in", contents), kind)
    assert unpacked(made.path) == contents
    assert made.bytes == made.path.stat().st_size
    assert made.sha256 == hashlib.sha256(made.path.read_bytes()).hexdigest()


def test_everyones_tools_read_bzip2(tmp_path, contents):
    made = write(tmp_path / "a.tar.bz2", files(tmp_path / "in", contents), "tar.bz2")
    assert run(["bzip2", "-t", str(made.path)], timeout=60).code == 0
    assert run(["tar", "xjf", str(made.path), "-C", str(tmp_path)], timeout=60).code == 0
    assert (tmp_path / NAME).read_bytes() == contents[NAME]
    assert (tmp_path / NAME).stat().st_mtime == archive.EPOCH
    # One stream: a reader that stops after the first, as some do, has read everything.
    reader = bz2.BZ2Decompressor()
    assert len(reader.decompress(made.path.read_bytes())) % 512 == 0
    assert reader.eof
    assert reader.unused_data == b""


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 50), st.integers(1, 3))
def test_blocks_join_at_any_bit(chunks, piece, threads):
    before, bzip2.PIECE = bzip2.PIECE, piece
    try:
        packed = b"".join(bzip2.compress(chunks, threads))
    finally:
        bzip2.PIECE = before
    assert bz2.decompress(packed) == b"".join(chunks)


@pytest.mark.parametrize("run", [3, 4, 5, 259, 260, 1_000_000])
def test_what_grows_stays_one_block_each(run):
    """Runs of four grow by a quarter before bzip2 fills its blocks: nothing may spill into a second one."""
    data = b"".join(bytes([n % 251]) * run for n in range(2_000_000 // run + 1))
    packed = b"".join(bzip2.compress([data], 2))
    assert bz2.decompress(packed) == data
    assert bzip2._runs(data) == (len(data) // run if run > 3 else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_same_files_same_bytes(tmp_path, contents, kind):
    first = write(tmp_path / "one" / "a", files(tmp_path / "in", contents), kind, threads=1)
    mask = os.umask(0o077)
    try:
        again = files(tmp_path / "again", dict(reversed(contents.items())))
        for path in (tmp_path / "again").iterdir():
            os.utime(path, (1, 1))
            path.chmod(0o700)
        second = write(tmp_path / "two" / "b", reversed(again), kind, threads=3)
    finally:
        os.umask(mask)
    assert first.sha256 == second.sha256


@pytest.mark.parametrize("kind", KINDS)
def test_source_date_epoch(tmp_path, monkeypatch, kind):
    member = Member.of_text("top/a", "text")
    first = write(tmp_path / "a", [member], kind)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert write(tmp_path / "a", [member], kind).sha256 != first.sha256
    for wrong in ("-1", "soon", "9" * 30, "²"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
            write(tmp_path / "a", [member], kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_what_it_was(tmp_path, kind):
    path = tmp_path / "weights"
    path.write_bytes(b"good")
    member = Member.of_file("a", path, sha256=hashlib.sha256(b"good").hexdigest())
    for changed, said in ((b"evil", "sha256"), (b"longer", "size"), (b"", "size")):
        path.write_bytes(changed)
        with pytest.raises(UsageError, match=said):
            write(tmp_path / "out" / "a", [member], kind)
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(UsageError, match="the manifest says 4"):
        Member.of_file("a", path, size=4)


@pytest.mark.parametrize(
    "name",
    ["../a", "/a", "a/../../b", "a\nb", "a\x1b[2J", "..", "", "a//b", "a\\b", "\udcff", "x" * 300, "a\u202eb", "./a"],
)
def test_hostile_names_are_refused(tmp_path, name):
    with pytest.raises(UsageError):
        write(tmp_path / "a", [Member.of_text(name, "")], "zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("a", "a/b")])
def test_names_that_cannot_stand_beside_each_other(names):
    with pytest.raises(UsageError):
        in_order([Member.of_text(name, "") for name in names])


@pytest.mark.parametrize("kind", KINDS)
def test_too_large(tmp_path, kind):
    member = Member("a", 9000, data=random.Random(2).randbytes(9000))
    with pytest.raises(UsageError, match="most that a GitHub release takes"):
        write(tmp_path / "a", [member], kind, limit=8000)
    assert list(tmp_path.iterdir()) == []


def test_a_kill_leaves_nothing_under_the_name(tmp_path):
    source = tmp_path / "noise"
    source.write_bytes(random.Random(3).randbytes(30 << 20))
    code = (
        "import sys; from pathlib import Path; from qnnci.ship.archive import write; "
        "from qnnci.ship.member import Member; "
        "write(Path(sys.argv[2]), [Member.of_file('a', Path(sys.argv[1]))], 'tar.bz2')"
    )
    out = tmp_path / "out"
    child = subprocess.Popen([sys.executable, "-c", code, str(source), str(out / "a.tar.bz2")])
    try:
        while child.poll() is None and not any(each.stat().st_size for each in out.glob(".*.part")):
            pass
    finally:
        child.kill()
    assert child.wait() == -signal.SIGKILL
    assert [path.name for path in out.glob("[!.]*")] == []


SMALL_DISK = """
import sys
from pathlib import Path
from qnnci.errors import MachineError
from qnnci.ship.archive import write
from qnnci.ship.member import Member
try:
    write(Path("small/a"), [Member.of_file("a", Path(sys.argv[1]))], sys.argv[2])
except MachineError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk(tmp_path, kind):
    (tmp_path / "noise").write_bytes(random.Random(4).randbytes(3 << 20))
    script = 'mkdir -p small && mount -t tmpfs -o size=1m tmpfs small && "$@" && ls -A small'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    done = run([*argv, sys.executable, "-c", SMALL_DISK, str(tmp_path / "noise"), kind], timeout=60, cwd=tmp_path)
    assert done.code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "No space left on device: small/a"
    assert len(lines) == 2  # the hint, and nothing in the folder


def test_what_is_added(tmp_path):
    for name in ("LICENSE", "LICENSE.txt", "deep/tokens.txt", "wavs/a/1.wav", "wavs/.DS_Store"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    added = extras(["LICENSE*", "deep/tokens.txt", "wavs", "LICENSE"], tmp_path)
    assert sorted(each.name for each in added) == ["LICENSE", "LICENSE.txt", "tokens.txt", "wavs/a/1.wav"]
    for wrong in ("../x", "/etc/passwd", "nothing*", "deep/../LICENSE", ""):
        with pytest.raises(UsageError):
            extras([wrong], tmp_path)


def test_a_link_that_leads_out_is_refused(tmp_path):
    inside = tmp_path / "repo"
    inside.mkdir()
    (tmp_path / "secret").write_text("key")
    (inside / "README.md").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="leads out"):
        extras(["README.md"], inside)
