from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sdk import elf

from qnnci.toolchain.elf import page_size_findings


def library(tmp_path, align):
    path = tmp_path / "libg.so"
    elf.write(path, elf.AARCH64, align=align)
    return path


def test_large_pages_pass(tmp_path):
    assert page_size_findings(library(tmp_path, 16384)) == []
    assert page_size_findings(library(tmp_path, 65536)) == []


def test_small_pages_do_not(tmp_path):
    (found,) = page_size_findings(library(tmp_path, 4096))
    assert (found.rule, found.severity) == ("page-size", "error")
    assert "pages of 4096 bytes" in found.message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=80), st.integers(0, 200))
def test_any_bytes(tmp_path, junk, cut):
    whole = library(tmp_path, 16384).read_bytes()
    for content in (junk, whole[:cut], whole[:cut] + junk):
        path = tmp_path / "libjunk.so"
        path.write_bytes(content)
        assert all(each.rule == "page-size" for each in page_size_findings(path))
