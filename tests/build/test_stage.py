"""What becomes of each way in which a stage can end. The worker here answers what each test says."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from qnnci.build.calls import Call
from qnnci.build.stage import Event, Stages, broken_findings, run_url
from qnnci.errors import UsageError
from qnnci.rules import finding
from qnnci.toolchain.pool import Answer, Limit

LIMIT = Limit(90, 2048)
REFUSED = "[E:onnxruntime:, a.cc:1 Get] Unsupported nodes in QNN EP: { name: conv_token_1, type: Det }"
ERROR = "[E:onnxruntime:, a.cc:2 Run] the reason"


def broken(stage: str, answer: Answer, *log: str, wrote: bool = False) -> list[tuple[str, str]]:
    call = Call("g", stage, Path(), {}, "key", ("out",), ("conv",))
    return [(each.rule, each.message) for each in broken_findings(answer, call, LIMIT, list(log), wrote=wrote)]


@pytest.mark.parametrize("stage", ["prepare", "check", "reference", "compile", "inspect", "verify"])
@pytest.mark.parametrize(
    ("death", "rule", "said"),
    [
        ("timeout", "stage-timeout", "was stopped after 90 s"),
        ("memory", "stage-memory", "was stopped for its memory (limit 2048 MB)"),
        ("SIGKILL (137)", "stage-memory", "was killed from outside"),
        ("SIGSEGV (139)", "stage-crashed", "ended with SIGSEGV (139)"),
        ("exit code 7", "stage-crashed", "ended with exit code 7"),
    ],
)
def test_deaths(stage, death, rule, said):
    [(found, message)] = broken(stage, Answer(death=death), REFUSED, wrote=True)
    assert found == rule
    assert message.startswith(f"{stage} {said}")


@pytest.mark.parametrize(
    ("stage", "rule"),
    [
        ("prepare", "stage-failed"),
        ("reference", "stage-failed"),
        ("inspect", "stage-failed"),
        ("verify", "verify-failed"),
    ],
)
def test_refusals(stage, rule):
    assert broken(stage, Answer(refused="because"), ERROR, wrote=True) == [(rule, "because")]
    assert broken(stage, Answer(result={})) == []


@pytest.mark.parametrize(
    ("answer", "log", "wrote", "found"),
    [
        (Answer(result={}), [REFUSED, ERROR], True, []),
        (Answer(refused="no"), [], False, [("stage-failed", "no")]),
        (Answer(refused="no"), [ERROR], False, [("stage-failed", "no; the reason")]),
        (Answer(refused="no"), [ERROR], True, [("stage-failed", "no; the reason")]),
        (Answer(result={}), [], False, [("nothing-written", "no binary was written")]),
        (Answer(result={}), [ERROR], False, [("nothing-written", "the reason")]),
        (
            Answer(refused="no"),
            [REFUSED, ERROR],
            False,
            [("cpu-fallback", "Det node 'conv' is not supported by the QNN compiler")],
        ),
    ],
)
def test_a_compile_is_judged_by_its_files_and_explained_by_its_log(answer, log, wrote, found):
    assert broken("compile", answer, *log, wrote=wrote) == found


class Worker:
    """Answers as told, after writing the files that it is told to write."""

    def __init__(self, answer: Answer | Exception, **files: bytes) -> None:
        self.answer, self.files, self.asked, self.log = answer, files, 0, ""

    def ask(self, _function, arguments, *, log, limit):
        self.asked += 1
        assert limit == LIMIT
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(self.log)
        for name, content in self.files.items():
            Path(arguments["folder"], name).write_bytes(content)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def run(tmp_path):
    events, ran = [], []

    def run(worker: Worker, *, key: str = "key", stage: str = "compile"):
        stages = Stages(tmp_path, LIMIT, events.append, ran)
        call = Call("g", stage, tmp_path / "g", {"folder": str(tmp_path / "g")}, key, ("out", "more"))
        return stages.run(call, worker)

    run.events, run.ran = events, ran
    return run


def test_a_finished_stage_is_not_done_again(run):
    first = run(Worker(Answer({"n": 1, "findings": [finding("int64-io", "x").to_json()]}, seconds=2), out=b"1"))
    again = run(idle := Worker(Answer(death="never asked")))
    assert idle.asked == 0
    assert (again.data, again.findings, again.files) == (first.data, first.findings, first.files)
    assert list(again.files) == ["out"]
    assert [event.state for event in run.events] == ["start", "done", "cached"]
    assert run.events[1] == Event("g", "compile", "done", 2)


def test_when_a_stage_began_is_kept_with_it(run):
    run(Worker(Answer({}, seconds=2, peak_mb=7), out=b"1"))
    run(Worker(Answer(death="never asked")))
    first, again = run.ran
    assert (first.what, first.stage, first.state, first.seconds, first.peak_mb) == ("g", "compile", "done", 2, 7)
    assert datetime.fromisoformat(first.began).utcoffset() == timedelta()
    assert again == replace(first, state="cached")


@pytest.mark.parametrize("answer", [Answer(death="timeout", seconds=3), UsageError("bad input")])
def test_a_stage_that_failed_has_its_place_in_time(run, answer):
    with contextlib.suppress(UsageError):
        run(Worker(answer))
    (ran,) = run.ran
    assert ran.state == "failed"
    assert ran.began


def test_a_finding_has_the_line_of_its_log_that_says_it(run):
    worker = Worker(Answer(refused="no"))
    worker.log = f"words\n\nmore\n{REFUSED}\n"
    (found,) = run(worker).findings
    assert (found.rule, found.line) == ("cpu-fallback", 4)
    assert found.file == "g/logs/compile.log"


def test_another_key_is_done_again(run):
    run(Worker(Answer({}), out=b"1"))
    run(busy := Worker(Answer({}), out=b"2"), key="other")
    assert busy.asked == 1


@pytest.mark.parametrize("answer", [Answer(death="timeout"), Answer(refused="no"), Answer({})])
def test_a_broken_stage_is_tried_again_and_says_where_its_log_is(run, answer):
    record = run(Worker(answer))
    assert [each.file for each in record.findings] == ["g/logs/compile.log"]
    run(busy := Worker(Answer({}), out=b"1"))
    assert busy.asked == 1
    assert [event.state for event in run.events] == ["start", "failed", "start", "done"]


def test_an_empty_file_is_none(run):
    assert [each.rule for each in run(Worker(Answer({}), out=b"")).findings] == ["nothing-written"]


def test_a_file_that_stood_there_before_is_none_of_the_stages_own(run, tmp_path):
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "out").write_bytes(b"old")
    assert [each.rule for each in run(Worker(Answer({}))).findings] == ["nothing-written"]


def test_a_stage_may_find_and_write_nothing(run):
    error = finding("dynamic-dim", "batch")
    record = run(Worker(Answer({"findings": [error.to_json()]})), stage="prepare")
    assert record.findings == (error,)
    assert record.files == {}
    assert run.events[-1].state == "failed"


def test_an_error_for_people_passes_through(run):
    with pytest.raises(UsageError, match="not ONNX"):
        run(Worker(UsageError("not ONNX")))
    assert [event.state for event in run.events] == ["start", "failed"]


def test_who_built_it(monkeypatch):
    for name in ("GITHUB_RUN_ID", "GITHUB_REPOSITORY", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    assert run_url() == "local"
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
    monkeypatch.setenv("GITHUB_RUN_ID", "7")
    assert run_url() == "https://github.com/o/r/actions/runs/7"
