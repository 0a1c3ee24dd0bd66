"""What the runner would make of our output: it is parsed as the runner parses it, on the worst input we know of."""

from __future__ import annotations

import contextlib
import io
import json
import re
import secrets
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt  # comes with rich
from markdown_it.token import Token
from support import runner
from support.hostile import HOSTILE, texts

from qnnci.errors import MachineError, UsageError
from qnnci.findings import Finding
from qnnci.manifest import Entry, Figures, FindingRecord, Manifest, Parity
from qnnci.report import github
from qnnci.report.annotations import annotate as annotated
from qnnci.report.annotations import command
from qnnci.report.problems import clean
from qnnci.report.summary import capped, markdown, summary
from qnnci.rules import finding

annotate = partial(annotated, rest="They are elsewhere.")


def parse(line: str) -> tuple[str, dict[str, str], str]:
    """The one workflow command that is in it, as the runner reads it."""
    (command,) = runner.obeyed(line)
    return command.name, dict(command.properties), command.data


def entry(**changes: object) -> Entry:
    base: dict[str, object] = {
        "graph": "vad", "soc": "SM8750", "soc_id": 69, "dsp_arch": "v79", "precision": "fp16", "passed": True,
        "binary": "vad/SM8750/vad_fp16_sm8750_v79.bin", "sha256": "0" * 64, "bytes": 1_468_006, "context_model": "ctx",
        "graph_name": "vad", "route": "ort", "qairt": "v2.51.0", "optimization": 3, "vtcm_bytes": 8 << 20,
        "spill_fill_bytes": 0, "const_bytes": 1, "op_data_bytes": 1, "io_bytes": 1, "inputs": (), "outputs": (),
        "source": "vad.onnx", "source_sha256": "0" * 64, "license": None, "compile_seconds": 0.44,
        "compile_peak_mb": 300, "built_at": "2026-01-01T00:00:00Z", "built_by": "test",
        "parity": Parity(inputs="seeded", samples=4, outputs={
            "output": Figures(cosine=0.9999999, snr_db=51.234, max_abs=0, max_rel=0),
            "state": Figures(cosine=0.98999999, snr_db=17.06, max_abs=0, max_rel=0),
        }),
    }  # fmt: skip
    return Entry.model_validate(base | changes)


def manifest(*entries: Entry, findings: tuple[Finding, ...] = (), **changes: object) -> Manifest:
    records = tuple(FindingRecord.model_validate(f.to_json()) for f in findings)
    base: dict[str, object] = {
        "name": "silero",
        "license": None,
        "passed": True,
        "tools": {},
        "entries": entries,
        "devices": (),
    }
    return Manifest.model_validate(base | {"findings": records} | changes)


# annotations


@pytest.mark.parametrize("text", HOSTILE)
def test_annotation_keeps_hostile_text_inside_one_command(text: str) -> None:
    (line,) = annotate([Finding("parity", "error", text, text, text, text, text, text, f"{text}.yaml", 3)])
    assert len(line.splitlines()) == 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", line)
    kind, properties, message = parse(line)
    assert kind == "error"
    assert set(properties) <= {"title", "file", "line"}
    assert "The binary's numbers are off" in properties["title"]
    assert "→" in message


@given(texts, texts, texts)
@settings(max_examples=150, deadline=None)
def test_a_command_reads_back_as_it_was_given(message: str, title: str, file: str) -> None:
    line = command("warning", message, title=title, file=file)
    assert "\n" not in line
    assert "\r" not in line
    line.encode()
    kind, properties, read = parse(line)
    assert (kind, read) == ("warning", clean(message))
    # The runner takes spaces from the end of the last one.
    given = [text for text in (clean(title), clean(file)) if text]
    given[-1:] = [re.sub(r"[^\S\n]+\Z", "", text) for text in given[-1:]]
    assert list(properties.values()) == [text for text in given if text]


def test_one_problem_on_several_socs_is_one_annotation() -> None:
    found = [finding("spill-fill", "10 MB spill", graph="det", soc=soc) for soc in ("SM8550", "SM8650", "SM8550")]
    found.append(finding("spill-fill", "10 MB spill", graph="rec", soc="SM8550"))
    messages = [parse(line)[2] for line in annotate(found)]
    assert [m.split("\n")[0] for m in messages] == [
        "det on SM8550, SM8650: 10 MB spill",
        "rec on SM8550: 10 MB spill",
    ]


TWELVE = [f"SM8{number}50" for number in range(1, 10)] + ["SM7450", "SM7550", "QCS8550"]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ({soc: f"{soc} has no fp16" for soc in TWELVE[:2]}, "SM8150 has no fp16 (SM8150); SM8250 has no fp16 (SM8250)"),
        (dict.fromkeys(TWELVE, "10 MB spill"), "10 MB spill"),
        (
            {soc: f"{10 + (soc == 'QCS8550')}.5 MB spill" for soc in TWELVE},
            f"10.5 MB spill ({', '.join(TWELVE[:-1])}); 11.5 MB spill (QCS8550)",
        ),
        ({"SM8550": "10 MB spill"}, "10 MB spill"),
    ],
)
def test_a_problem_whose_figures_differ_is_one_annotation_that_names_each_chip(
    messages: dict[str, str], said: str
) -> None:
    (line,) = annotate([finding("spill-fill", text, graph="det", soc=soc) for soc, text in messages.items()])
    assert parse(line)[2].split("\n")[0] == f"det on {', '.join(messages)}: {said}"


def test_two_problems_of_one_chip_stay_two() -> None:
    found = [finding("costly-op", f"op {n}", graph="det", soc=soc) for n in (1, 2) for soc in TWELVE]
    assert len(annotate(found)) == 2
    assert len(annotate([finding("costly-op", f"op {n}", graph="det") for n in (1, 2)])) == 2


def test_annotations_are_ranked_by_severity_then_rarity() -> None:
    found = [finding("costly-op", f"op {i}") for i in range(3)]
    found += [finding("old-opset", "opset 9"), finding("int64-io", "a"), finding("parity", "off")]
    kinds = [(kind, message.split("\n")[0]) for kind, _, message in map(parse, annotate(found))]
    assert kinds == [
        ("error", "off"),
        ("warning", "opset 9"),
        ("warning", "op 0"),
        ("warning", "op 1"),
        ("warning", "op 2"),
        ("notice", "a"),
    ]


@pytest.mark.parametrize(
    ("counts", "shown", "closing"),
    [
        ((10, 10, 10), (10, 10, 10), ""),
        ((11, 0, 0), (10, 0, 1), "1 more error"),
        ((13, 12, 9), (10, 10, 10), "3 more errors, 2 more warnings"),
        ((0, 11, 10), (0, 10, 10), "1 more warning, 1 more notice"),
        ((0, 0, 11), (0, 0, 10), "2 more notices"),
    ],
)
def test_at_most_ten_of_a_type_and_the_rest_is_counted(
    counts: tuple[int, ...], shown: tuple[int, ...], closing: str
) -> None:
    rules = (("parity", counts[0]), ("costly-op", counts[1]), ("int64-io", counts[2]))
    lines = annotate([finding(rule, f"{rule} {i}") for rule, count in rules for i in range(count)])
    kinds = [parse(line)[0] for line in lines]
    assert tuple(kinds.count(kind) for kind in ("error", "warning", "notice")) == shown
    last = parse(lines[-1])[2]
    assert last == f"{closing}. They are elsewhere." if closing else "more" not in last


@pytest.mark.parametrize(
    ("file", "folder", "expected"),
    [
        ("qnn.yaml", "", {"file": "qnn.yaml", "line": "7"}),
        ("qnn.yaml", "models/vad", {"file": "models/vad/qnn.yaml", "line": "7"}),
        ("../strict.yml", "models/vad", {"file": "models/strict.yml", "line": "7"}),
        ("../other.yaml", "", {}),
        ("qnn.yaml", "../elsewhere", {}),
        ("/elsewhere/qnn.yaml", "", {}),
        ("build/vad/logs/compile.log", "", {}),
        ("model.onnx", "", {}),
        ("export.py", "", {}),
        ("", "", {}),
    ],
)
def test_only_a_project_file_is_annotated(file: str, folder: str, expected: dict[str, str]) -> None:
    (line,) = annotate([finding("parity", "off", file=file, line=7)], folder=folder)
    _, properties, message = parse(line)
    assert {key: value for key, value in properties.items() if key != "title"} == expected
    assert (f"in {file}:7" in message) == (bool(file) and not expected)


def test_a_failed_export_points_at_its_script() -> None:
    found = finding("export-failed", "exit code 1", file="tools/export.py", line=3)
    inside, outside = (parse(annotate([found], folder=folder)[0]) for folder in ("models/vad", "../elsewhere"))
    assert (inside[1]["file"], inside[1]["line"]) == ("models/vad/tools/export.py", "3")
    assert "file" not in outside[1]
    assert "in tools/export.py:3" in outside[2]


def test_a_long_message_leaves_what_to_do() -> None:
    (line,) = annotate([finding("parity", "x" * 5000, hint="look at the feeds")])
    assert parse(line)[2].endswith("…\n→ look at the feeds")
    assert len(parse(line)[2]) == 4000


def test_the_closing_notice_links_this_job_s_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = [finding("parity", letter) for letter in "abcdefghijkl"]
    env = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"}
    page = "https://github.com/o/r/actions/runs/7"
    for more, link in (
        ({"QNNCI_CHECK_RUN": "99"}, f": {page}#summary-99"),
        ({"QNNCI_CHECK_RUN": ""}, f": {page}"),  # as on GitHub Enterprise Server
        ({"QNNCI_CHECK_RUN": "9)\n::x::"}, f": {page}"),
    ):
        github.report_findings("net", found, passed=False, env=env | more)
        notice = runner.obeyed(capsys.readouterr().out)[-1]
        assert (notice.name, notice.data) == ("notice", f"2 more errors. The step summary lists every finding{link}")
    assert github.summary_link({}) == ""
    assert github.summary_link(env | {"GITHUB_REPOSITORY": "o/r\n::x \udc80"}).endswith(
        "/o/r%0A::x%20%3F/actions/runs/7"
    )


def test_the_steps_of_a_job_share_the_fifty_that_github_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    found = [finding(rule, letter) for rule in ("parity", "costly-op", "int64-io") for letter in "abcdefghijkl"]
    said = []
    for _ in range(4):
        github.report_findings("net", found, passed=False, env=env)
        said.append([each.name for each in runner.obeyed(capsys.readouterr().out)])
    assert said[0] == ["error"] * 10 + ["warning"] * 10 + ["notice"] * 10
    assert said[1] == ["error"] * 10 + ["warning"] * 9 + ["notice"]
    assert said[2:] == [["notice"], ["notice"]]
    assert (tmp_path / "summary").read_text().count("`parity` a") == 4


def test_an_error_of_the_project_file_points_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    error = UsageError("unknown key", hint="did you mean `socs`?", where="qnn.yaml:12")
    github.report_failure(error, env={"GITHUB_WORKSPACE": str(tmp_path)})
    kind, properties, message = parse(capsys.readouterr().out.rstrip("\n"))
    assert (kind, properties["file"], properties["line"]) == ("error", "a/qnn.yaml", "12")
    assert message == "qnn.yaml:12: unknown key\n→ did you mean `socs`?"


# summary


def test_summary_shows_the_worst_figures_rounded_down() -> None:
    text = summary(manifest(entry(), entry(soc="SM8550", parity=None, vtcm_bytes=None, passed=False), passed=False))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert rows[2] == ["✅", "vad", "SM8750 (v79)", "fp16", "1.4 MiB", "0 B", "8 MiB", "0.989999", "17.1 dB", "0.4 s"]
    assert rows[3][0] == "❌"
    assert rows[3][6:9] == ["—", "—", "—"]
    assert "❌ silero: 1 of 2" in text
    assert "checks numbers, not speed" in text


def test_an_output_that_is_not_finite_is_the_worst() -> None:
    figures = Figures(cosine=None, snr_db=None, max_abs=None, max_rel=None)
    good = Figures(cosine=1, snr_db=200, max_abs=0, max_rel=0)
    parity = Parity(inputs="seeded", samples=1, outputs={"a": good, "b": figures})
    assert "| not finite | not finite |" in summary(manifest(entry(parity=parity)))


def test_a_target_without_a_binary_has_a_row() -> None:
    found = finding("cpu-fallback", "node Det", graph="det", soc="SM8550")
    text = summary(manifest(entry(), findings=(found,), passed=False))
    assert "| ❌ | det | SM8550 | — |" in text
    assert "1 of 2 binaries" in text
    assert "node Det" in text
    assert found.hint.split("`")[0].strip() in text


@given(texts, texts, texts)
@settings(max_examples=100, deadline=None)
def test_nothing_in_a_summary_is_obeyed(name: str, message: str, file: str) -> None:
    name, message = f"n{name}", f"m{message}"
    found = Finding("parity", "error", message, message, name, name, "verify", name, file, 2)
    tokens = rendered(summary(manifest(entry(graph=name, precision=message), findings=(found,), tools={name: name})))
    tags = [token.tag for token in tokens if token.tag]
    assert tags == rendered_tags(), (name, message)
    html = [token.content for token in tokens if token.type in {"html_inline", "html_block"}]
    assert [each for each in html if each != "<!-- -->"] == ["<br>", "<sub>", "</sub>"]
    text = "".join(token.content for token in tokens if token.type == "text")
    assert " ".join(clean(message).split()) in text


def rendered(text: str) -> list[Token]:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return [child for token in parser.parse(text) for child in (token, *(token.children or ()))]


def rendered_tags() -> list[str]:
    found = Finding("parity", "error", "m", "h", "n", "s", "verify", "n", "f", 2)
    tokens = rendered(summary(manifest(entry(graph="n", precision="m"), findings=(found,), tools={"n": "n"})))
    return [token.tag for token in tokens if token.tag]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_github_makes_links_and_mentions_of_is_parted(text: str) -> None:
    """It looks for them in each piece of text as rendered, character references read."""
    pieces = [token.content for token in rendered(markdown(text)) if token.type == "text"]
    assert " ".join(clean(text).split()) == "".join(pieces)
    marks = re.compile(r"@\w|#\d|\w://|\bwww\.|:[\w+-]+:")
    assert [piece for piece in pieces if marks.search(piece)] == []


def test_a_build_that_nothing_can_fail_does_not_read_as_good() -> None:
    found = (finding("spill-fill", "y", severity="error", graph="vad", soc="SM8550"),)
    text = summary(manifest(entry(), entry(soc="SM8550"), findings=found))
    assert "## ⚠️ silero: 2 of 2 binaries passed, only because nothing fails this build (fail-on never): 1 error" in text
    assert "| ✅ | vad | SM8750" in text
    assert "| ⚠️ | vad | SM8550" in text


def test_markdown_leaves_ordinary_names_readable() -> None:
    assert markdown("ch_ppocr_mobile_v2.0-det /conv/Conv_3") == "ch_ppocr_mobile_v2.0-det /conv/Conv_3"


@given(st.text(alphabet="aé漢🤖\n", max_size=400), st.integers(0, 600))
@settings(max_examples=200, deadline=None)
def test_capped_text_fits_and_says_that_it_was_cut(text: str, room: int) -> None:
    cut = capped(text, room)
    assert len(cut.encode()) <= room
    assert cut == text or not cut or "was cut" in cut
    assert text.startswith(cut.split("\n\n**The summary was cut")[0])


def test_the_summary_is_appended_and_stays_below_one_mib(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("before\n")
    env = {"GITHUB_STEP_SUMMARY": str(path)}
    for _ in range(3):
        github.write_summary("漢字🤖|\n" * 90_000, env)
    text = path.read_bytes().decode()
    assert text.startswith("before\n漢字🤖|\n")
    assert 900_000 < len(text.encode()) < 1 << 20
    assert text.count("was cut") == 1
    github.write_summary("x", {})


# outputs


@given(st.dictionaries(st.sampled_from(["a", "b-c", "_d1"]), st.one_of(texts, st.just("x\ny\n\n"))))
@settings(max_examples=100, deadline=None)
def test_outputs_read_back_as_they_were_given(values: dict[str, str]) -> None:
    text = "".join(github._output(name, value) for name, value in values.items())
    assert runner.outputs(text) == values


def test_outputs_are_appended_as_utf8(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text("before<<E\n1\nE\n")
    github.write_outputs({"manifest": "b/ü.json"}, {"GITHUB_OUTPUT": str(path)})
    github.write_outputs({"half": "\udc80"}, {"GITHUB_OUTPUT": str(path)})
    assert runner.outputs(path.read_bytes().decode()) == {"before": "1", "manifest": "b/ü.json", "half": "?"}
    github.write_outputs({"manifest": "x"}, {})


def test_a_delimiter_in_the_value_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = iter(["aa", "bb"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(tokens))
    value = "x\nqnnci-aa\nresult<<E\npass\nE"
    assert runner.outputs(github._output("v", value)) == {"v": value}


@pytest.mark.parametrize("name", ["", "a=b", "a<<b", "a\nb", "1a", "a b"])
def test_odd_output_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        github._output(name, "x")


def test_the_outputs_of_a_build(tmp_path: Path) -> None:
    built = manifest(
        entry(), entry(soc="SM8550", passed=False), findings=(finding("parity", "x"), finding("spill-fill", "y"))
    )
    values = github.outputs(built, tmp_path / "build/manifest.json", env={"GITHUB_WORKSPACE": str(tmp_path)})
    (binary,) = json.loads(values.pop("binaries"))
    assert binary["path"] == "build/vad/SM8750/vad_fp16_sm8750_v79.bin"
    assert (binary["soc"], binary["graph"]) == ("SM8750", "vad")
    assert values == {
        "result": "pass", "manifest": "build/manifest.json", "directory": "build", "errors": "1", "warnings": "1",
    }  # fmt: skip
    elsewhere = github.outputs(built, tmp_path / "manifest.json", env={"GITHUB_WORKSPACE": str(tmp_path / "x")})
    assert elsewhere["manifest"] == str(tmp_path / "manifest.json")


def test_report_never_touches_env_or_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
    env = {name: str(tmp_path / name) for name in names} | {"GITHUB_WORKSPACE": str(tmp_path)}
    github.report(manifest(entry(), findings=(finding("spill-fill", "y"),)), tmp_path / "b/manifest.json", env=env)
    assert parse(capsys.readouterr().out.rstrip("\n"))[0] == "warning"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"]


def test_errors_that_are_no_findings_are_reported_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    error = MachineError("no space | left", hint="free some", where="det")
    github.report(manifest(entry(), passed=False), tmp_path / "manifest.json", errors=[error], env=env)
    assert capsys.readouterr().out == "::error title=qnnci::det: no space | left%0A→ free some\n"
    assert runner.outputs((tmp_path / "GITHUB_OUTPUT").read_text())["errors"] == "1"
    assert (
        "- **error** `qnnci` det: no space &#124; left<br>→ free some" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    )


def test_a_run_that_ended_early_still_has_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    github.report_failure(UsageError("no such file"), env={"GITHUB_OUTPUT": str(tmp_path / "o")})
    assert capsys.readouterr().out == "::error title=qnnci::no such file\n"
    assert runner.outputs((tmp_path / "o").read_text())["result"] == "fail"


# all of it


@given(texts, texts, texts)
@settings(max_examples=60, deadline=None)
def test_nothing_in_a_build_is_obeyed_or_forges_an_output(name: str, message: str, path: str) -> None:
    """Everything that comes out of a model, a project file or a folder's name, through the whole report."""
    built = manifest(
        entry(graph=name, source=path, license=message, binary="b" + path.replace("\0", " "), built_by=name),
        findings=(Finding("parity", "error", message, path, name, name, "verify", message, path, 3),),
        name=name, license=message, tools={name: path},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as log:
        env = {each: f"{folder}/{each}" for each in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        env |= {"GITHUB_WORKSPACE": folder, "RUNNER_TEMP": folder}
        with github.stopped_commands(), github.group(name):
            print(message)
            github.report(built, Path(folder, "build/manifest.json"), env=env)
            print(path, end="")
        set_ = runner.outputs(Path(env["GITHUB_OUTPUT"]).read_text())
    assert [each.name for each in runner.obeyed(log.getvalue())] == ["group", "error", "endgroup"]
    title, told, _ = runner.obeyed(log.getvalue())
    assert title.data == clean(name)
    assert set(told.properties) <= {"title", "file", "line"}
    assert told.properties["title"] == "The binary's numbers are off"
    assert set(set_) == {"result", "manifest", "directory", "binaries", "errors", "warnings"}
    assert (set_["result"], set_["manifest"], set_["errors"]) == ("pass", "build/manifest.json", "1")
    (binary,) = json.loads(set_["binaries"])
    assert binary["graph"] == name


# the log


def test_groups_are_never_nested(capsys: pytest.CaptureFixture[str]) -> None:
    with github.group("a"):
        with github.group("##[error]b\n::error::c"):
            pass
        with pytest.raises(KeyError), github.group("d"):
            raise KeyError
    with github.group("e"):
        pass
    assert capsys.readouterr().out.splitlines() == [
        "::group::a", "- ## [error]b ::error::c", "- d", "::endgroup::", "::group::e", "::endgroup::",
    ]  # fmt: skip


def test_vendor_output_stands_between_unguessable_marks(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = set()
    for _ in range(2):
        with contextlib.suppress(KeyError), github.stopped_commands():
            sys.stdout.write("::error::forged")
            raise KeyError
        first, *rest = capsys.readouterr().out.splitlines()
        token = first.removeprefix("::stop-commands::")
        assert rest == ["::error::forged", f"::{token}::"]
        assert re.fullmatch("[0-9a-f]{32}", token)
        tokens.add(token)
    assert len(tokens) == 2


def test_our_own_commands_are_obeyed_between_the_marks(capsys: pytest.CaptureFixture[str]) -> None:
    with github.stopped_commands(), github.group("Build"), github.stopped_commands():
        sys.stdout.write("::error::forged")
        github.report_failure(UsageError("no"), env={})
        sys.stdout.write("::error::forged\n")
    sys.stdout.write("::notice::after\n")
    assert [(each.name, each.data) for each in runner.obeyed(capsys.readouterr().out)] == [
        ("group", "Build"),
        ("error", "no"),
        ("endgroup", ""),
        ("notice", "after"),
    ]
