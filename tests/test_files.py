"""Files appear whole or not at all, whatever ends the writing."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qnnci.errors import MachineError
from qnnci.files import (
    SCRATCH,
    commit,
    default_cache,
    disk_errors,
    remove_leftovers,
    replacing,
    sha256,
    write_json,
    write_text,
)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "file.json"
    path.write_text("old")
    return path


def alone(path: Path) -> bool:
    """Nothing is left beside it."""
    return list(path.parent.iterdir()) == [path]


def break_off(part: Path, error: type[BaseException] | BaseException) -> None:
    part.write_text("half")
    raise error


def test_a_new_file_replaces_the_old_one(old):
    write_text(old, "neü")
    assert old.read_text(encoding="utf-8") == "neü"
    assert alone(old)


def test_folders_are_made(tmp_path):
    write_json(tmp_path / "a" / "b" / "c.json", {"ö": 1})
    assert (tmp_path / "a/b/c.json").read_text(encoding="utf-8") == '{\n  "ö": 1\n}\n'


def test_others_may_read_it(old):
    write_text(old, "new")
    assert old.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError(errno.EIO, "bad disk")])
def test_a_failure_leaves_the_old_file_and_nothing_else(old, error):
    with pytest.raises(error if isinstance(error, type) else OSError), replacing(old) as part:
        break_off(part, error)
    assert old.read_text() == "old"
    assert alone(old)


def test_a_full_disk_is_the_machines_fault_and_the_old_file_stands(old):
    with (
        pytest.raises(MachineError, match=f"No space left on device: {old}") as caught,
        replacing(old),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert "free some space" in caught.value.hint
    assert old.read_text() == "old"
    assert alone(old)


def test_what_cannot_be_encoded_leaves_the_old_file(old):
    with pytest.raises(UnicodeEncodeError):
        write_text(old, "\ud800")
    assert old.read_text() == "old"
    assert alone(old)


def test_a_killed_writer_leaves_the_old_file_and_a_part_that_is_removed_later(old):
    script = (
        "import os, sys, signal; from pathlib import Path; from qnnci.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as part:\n"
        "    part.write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(old)], check=False)
    assert done.returncode == -9
    assert old.read_text() == "old"
    assert not alone(old)
    remove_leftovers(old.parent)
    assert alone(old)


def test_leftovers_are_only_our_own(tmp_path):
    kept = [
        tmp_path / name
        for name in ("a/b.part", "a/.hidden", "a/.stages/x.json", "a/.mine.part", "a/.b.bin.not-ours.part")
    ]
    gone = [tmp_path / name for name in ("a/.b.bin.x_z01234.part", f"a/{SCRATCH}1/c.bin", f"{SCRATCH}2/d/e")]
    for path in kept + gone:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    remove_leftovers(tmp_path)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(kept)
    assert not any(path.exists() for path in gone)
    assert not list(tmp_path.rglob(f"{SCRATCH}*"))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST])
def test_what_the_machine_refuses_names_the_place_and_a_way_out(code):
    with (
        pytest.raises(MachineError, match=f"{os.strerror(code)}: /some/file") as caught,
        disk_errors(Path("/some/file")),
    ):
        raise OSError(code, "…")
    assert caught.value.hint


def test_a_user_without_a_home_is_told_to_name_a_cache(monkeypatch):
    monkeypatch.delenv("QNNCI_CACHE", raising=False)

    def homeless(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    with pytest.raises(MachineError, match="no home") as caught:
        default_cache()
    assert "QNNCI_CACHE" in caught.value.hint


def test_other_errors_are_not_the_machines_fault():
    with pytest.raises(IsADirectoryError), disk_errors(Path("/some/file")):
        raise IsADirectoryError(errno.EISDIR, "…")


def test_a_finished_part_takes_its_name(tmp_path):
    part, path = tmp_path / "part", tmp_path / "name"
    part.write_bytes(b"whole")
    commit(part, path)
    assert path.read_bytes() == b"whole"
    assert alone(path)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_digests(tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(bytes(size))
    assert sha256(path) == hashlib.sha256(bytes(size)).hexdigest()
