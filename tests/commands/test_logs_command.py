"""`qnnci logs` as people and CI call it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from qnnci.cli.main import cli
from qnnci.errors import UsageError

FAILED = (
    " 12.5ms [ ERROR ] fa_alloc.cc:5:ERROR:graph requires estimated allocation of 4194304 KB, limit is 2097152 KB\n"
    " 13.5ms [ ERROR ]  <E> Failed to finalize graph (id: 3) with err 1002\n" + "Graph Finalize failure\n" * 7
)
QUIET = "qnn-net-run pid:77\nCompleted stage: VTCM Allocation (1500 us)\nspill_bytes=0\n"


def run(*args: str, text: str = ""):
    return CliRunner().invoke(cli, ["logs", *args], input=text, obj={})


def test_text_tells_the_cause_and_what_followed(tmp_path) -> None:
    log = tmp_path / "build.log"
    log.write_text(FAILED)
    done = run(str(log))
    assert done.exit_code == 1
    first, hint, *fallout, last = done.stdout.splitlines()
    assert "graph-too-large the graph wants 4.00 GB, the limit is 2.00 GB" in first
    assert hint.startswith("    → ")
    assert [line.split(":")[0].strip() for line in fallout] == ["then line 2", "then line 3"]
    assert fallout[1].endswith("Graph Finalize failure (7 times)")
    assert last == "failed (9 lines)"


def test_facts_and_success_from_a_pipe() -> None:
    done = run("-", "--exit-code", "0", text=QUIET)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "DDR: spill_bytes 0",
        "stages: VTCM Allocation 1.5 ms",
        "success (3 lines of qnn-net-run)",
    ]


def test_json() -> None:
    done = run("-", "--format", "json", "--tool", "qairt-converter", text=FAILED)
    told = json.loads(done.stdout)
    assert (told["outcome"], told["tool"], told["lines"]) == ("failed", "qairt-converter", 9)
    [cause] = told["findings"]
    assert [each["codes"] for each in cause["fallout"]] == [[1002], []]


def test_github(tmp_path) -> None:
    log = tmp_path / "a.log"
    log.write_text(FAILED)
    [line] = run(str(log), "--format", "github").stdout.splitlines()
    assert line.startswith("::error ")
    assert "a.log:1" in line


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--quantized"], 1), (["--exit-code", "3"], 1)])
def test_what_was_asked_for_decides(flags: list[str], code: int) -> None:
    assert run("-", *flags, text="INFO - Skipping quantization, no input_list provided\n").exit_code == code


def test_a_file_that_is_not_there(tmp_path) -> None:
    done = run(str(tmp_path / "none.log"))
    assert isinstance(done.exception, UsageError)
    assert "no such file" in str(done.exception)
    assert "a folder, not a log" in str(run(str(tmp_path)).exception)
