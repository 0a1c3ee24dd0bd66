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
    read = read_input_list(base / "list.txt", base)
    assert read.text == f"#logits\nx:={base}/a.raw y:={base}/calib/c.raw\n\nx:={base}/b.raw y:={base}/calib/c.raw\n"
    assert read.samples == 2
    assert read.files == (base / "a.raw", base / "calib/c.raw", base / "b.raw", base / "calib/c.raw")


def test_paths_may_start_from_the_list(base):
    (base / "calib/list.txt").write_text("c.raw\n")
    assert read_input_list(base / "calib/list.txt", base).files == (base / "calib/c.raw",)


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "no sample"), ("#x\n\n", "no sample"), ("a.raw\nmissing.raw\n", "list.txt:2: there is no file missing.raw")],
)
def test_what_is_wrong_is_told_with_its_line(base, text, told):
    (base / "list.txt").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_input_list(base / "list.txt", base)
    assert told in str(caught.value)


def test_a_missing_list(base):
    with pytest.raises(UsageError, match="cannot read the input list"):
        read_input_list(base / "none.txt", base)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=60))
def test_any_bytes(base, content):
    (base / "list.txt").write_bytes(content)
    try:
        read = read_input_list(base / "list.txt", base)
    except UsageError:
        return
    assert read.samples > 0
