from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.toolchain.input_list import read_input_list


@pytest.fixture
def base(tmp_path):
    (tmp_path / "calib").mkdir()
    for name in ("a.raw", "b.raw", "calib/c.raw"):
        (tmp_path / name).write_bytes(b"1234")
    return tmp_path


def test_paths_become_absolute_and_names_stay(base):
    (base / "list.txt").write_text("#logits\nx:=a.raw y:=calib/c.raw\n\nx:=b.raw y:=calib/c.raw\n")
    read = read_input_list(base / "list.txt", base, base / "room")
    assert read.text == f"#logits\nx:={base}/a.raw y:={base}/calib/c.raw\n\nx:={base}/b.raw y:={base}/calib/c.raw\n"
    assert (read.samples, read.form) == (2, (("x:=", "y:="), ("x:=", "y:=")))
    assert read.files == (base / "a.raw", base / "calib/c.raw", base / "b.raw", base / "calib/c.raw")


def test_paths_may_start_from_the_list(base):
    (base / "calib/list.txt").write_text("c.raw\n")
    assert read_input_list(base / "calib/list.txt", base, base / "room").files == (base / "calib/c.raw",)


def test_a_list_from_windows(base):
    (base / "list.txt").write_bytes(b"\xef\xbb\xbfa.raw\r\nb.raw\r\n")
    assert read_input_list(base / "list.txt", base, base / "room").files == (base / "a.raw", base / "b.raw")


def test_the_tools_split_at_spaces(tmp_path):
    project = tmp_path / "my project"
    (project / "calib").mkdir(parents=True)
    (project / "calib/a.raw").write_bytes(b"1234")
    (project / "list.txt").write_text("x:=calib/a.raw\n")
    read = read_input_list(project / "list.txt", project, project / "build/g/w8a16/.scratch-")
    assert read.text == "x:=../../../../calib/a.raw\n"
    with pytest.raises(UsageError, match=r"list\.txt:1: there is a space in the path"):
        read_input_list(project / "list.txt", project, tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "no sample"), ("#x\n\n", "no sample"), ("a.raw\nmissing.raw\n", "list.txt:2: there is no file missing.raw")],
)
def test_what_is_wrong_is_told_with_its_line(base, text, told):
    (base / "list.txt").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_input_list(base / "list.txt", base, base / "room")
    assert told in str(caught.value)


def test_a_missing_list(base):
    with pytest.raises(UsageError, match="cannot read the input list"):
        read_input_list(base / "none.txt", base, base / "room")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=60))
def test_any_bytes(base, content):
    (base / "list.txt").write_bytes(content)
    try:
        read = read_input_list(base / "list.txt", base, base / "room")
    except UsageError:
        return
    assert read.samples > 0
