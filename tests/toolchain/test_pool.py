"""Workers are real child processes here; what they are asked to do is in tests/support/chores.py."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qnnci.errors import MachineError, UsageError
from qnnci.toolchain.pool import Limit, Worker, resident_mb

AMPLE = Limit(60, 4096)
CHORES = str(Path(__file__).parents[1] / "support")


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", CHORES)
    worker = Worker()
    yield worker
    worker.stop()


def test_one_process_serves_several_requests(worker, tmp_path):
    first = worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE)
    second = worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE)
    assert first.result == second.result != os.getpid()


def test_all_output_goes_to_the_log_native_output_too(worker, tmp_path):
    log = tmp_path / "logs" / "stage.log"
    assert worker.ask("chores:shout", {"text": "ünïcode"}, log=log, limit=AMPLE).result == "said"
    assert sorted(log.read_text().split()) == ["native", "stderr:ünïcode", "stdout:ünïcode"]


def test_an_error_of_ours_arrives_as_the_same_kind(worker, tmp_path):
    with pytest.raises(UsageError, match="no such thing") as caught:
        worker.ask("chores:complain", {}, log=tmp_path / "log", limit=AMPLE)
    assert (caught.value.hint, caught.value.where) == ("look again", "there")


def test_any_other_error_is_an_answer_and_its_traceback_stands_in_the_log(worker, tmp_path):
    answer = worker.ask("chores:stumble", {}, log=tmp_path / "log", limit=AMPLE)
    assert answer.refused == "stumbled"
    assert "ZeroDivisionError" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("chore", "death"),
    [
        ("abort", "SIGABRT (134)"),
        ("segfault", "SIGSEGV (139)"),
        ("leave", "exit code 7"),
        ("be_killed", "SIGKILL (137)"),
    ],
)
def test_a_crash_costs_one_request_only(worker, tmp_path, chore, death):
    assert worker.ask(f"chores:{chore}", {}, log=tmp_path / "log", limit=AMPLE).death == death
    assert worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE).result


def test_a_hang_is_ended_at_the_time_limit(worker, tmp_path):
    answer = worker.ask("chores:hang", {}, log=tmp_path / "log", limit=Limit(0.5, 4096))
    assert answer.death == "timeout"
    assert worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE).result


def test_too_much_memory_is_ended_at_the_memory_limit(worker, tmp_path):
    answer = worker.ask("chores:hoard", {"megabytes": 600}, log=tmp_path / "log", limit=Limit(60, 300))
    assert answer.death == "memory"


@pytest.mark.parametrize("own_session", [False, True])
def test_a_tool_of_a_worker_ends_with_it(worker, tmp_path, own_session):
    arguments = {"pid_file": str(tmp_path / "pid"), "own_session": own_session}
    answer = worker.ask("chores:hang_in_a_tool", arguments, log=tmp_path / "log", limit=Limit(1, 4096))
    assert answer.death == "timeout"
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not resident_mb(pid):
            break
        time.sleep(0.05)
    assert resident_mb(pid) == 0


def test_what_a_tool_leaves_running_ends_with_the_tool(worker, tmp_path):
    pid = worker.ask("chores:leave_a_child_behind", {}, log=tmp_path / "log", limit=AMPLE).result
    assert isinstance(pid, int)
    assert not Path(f"/proc/{pid}").exists()


def test_a_worker_whose_parent_died_before_it_started_does_nothing(tmp_path):
    reader, writer = os.pipe()
    argv = [sys.executable, "-m", "qnnci.toolchain.worker", str(writer), str(os.getppid())]
    request = json.dumps(
        {"function": "os:mkdir", "arguments": {"path": str(tmp_path / "a")}, "log": str(tmp_path / "l")}
    )
    done = subprocess.run(argv, input=request, text=True, pass_fds=(writer,), check=False)
    os.close(reader)
    os.close(writer)
    assert done.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_the_memory_of_a_tool_counts(worker, tmp_path):
    assert worker.ask("chores:hoard_in_a_tool", {}, log=tmp_path / "log", limit=Limit(60, 400)).death == "memory"


def test_an_allocation_that_fails_is_a_lack_of_memory_too(worker, tmp_path):
    pid = worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE).result
    assert worker.ask("chores:run_out", {}, log=tmp_path / "log", limit=AMPLE).death == "memory"
    assert worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE).result == pid


def test_the_peak_is_measured_for_each_request(worker, tmp_path):
    large = worker.ask("chores:spend", {"megabytes": 300}, log=tmp_path / "log", limit=AMPLE)
    small = worker.ask("chores:spend", {"megabytes": 1}, log=tmp_path / "log", limit=AMPLE)
    assert large.peak_mb > 300
    assert small.peak_mb < 200


def test_a_worker_that_kept_much_memory_is_replaced(worker, tmp_path):
    first = worker.ask("chores:keep", {"megabytes": 1200}, log=tmp_path / "log", limit=AMPLE)
    assert worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE).result != first.result


def test_a_log_that_cannot_be_written_is_told_not_hidden(worker, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=re.escape(str(tmp_path / "file"))):
        worker.ask("chores:whoami", {}, log=tmp_path / "file" / "stage.log", limit=AMPLE)


def test_an_interrupted_worker_ends_at_once_and_starts_nothing_more(worker, tmp_path):
    pid = worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE).result
    worker.interrupt()
    with pytest.raises(KeyboardInterrupt):
        worker.ask("chores:whoami", {}, log=tmp_path / "log", limit=AMPLE)
    for _ in range(100):
        if not resident_mb(pid):
            break
        time.sleep(0.05)
    assert resident_mb(pid) == 0
