"""An exported graph by a task metric: a command of the repository compares texts, the build computes and judges."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError
from support import graphs
from support.command import Ended, project, qnnci

from qnnci import manifest
from qnnci.build.export import measure
from qnnci.project import Export

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python compare.py texts.json {model} {report}"
# What recognises speech in a real repository: it takes the graph, and tells what it and the original make of the data.
COMPARER = """
import json, os, pathlib, sys
texts, model, report = sys.argv[1:]
assert pathlib.Path(model).read_bytes() == pathlib.Path('cnn.onnx').read_bytes()
print('token', os.environ.get('TOKEN'))
pathlib.Path(report).write_text(pathlib.Path(texts).read_text())
"""


def test_the_example_in_onnxscript_reads_the_texts_of_the_original(tmp_path):
    ignored = shutil.ignore_patterns("build", "__pycache__")
    folder = shutil.copytree(ROOT / "examples/letters-export", tmp_path / "letters", ignore=ignored)
    ended = qnnci("build", "--soc", "SM8750", cwd=folder)
    assert ended.code == 0, ended.said
    [entry] = manifest.load(folder / "build/manifest.json").entries
    assert entry.export_metrics == {"cer": manifest.Measured(value=0, samples=8)}
    assert entry.export_parity["logits"].snr_db > 100
    assert (entry.parity.inputs, entry.parity.samples) == ("the export's reference", 4)
    texts = json.loads((folder / "build/reader/measured.json").read_text())
    assert len(set(texts["reference"])) == 8


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    graphs.cnn(tmp_path / "cnn.onnx")
    (tmp_path / "export.py").write_text("import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])")
    (tmp_path / "compare.py").write_text(COMPARER)
    texts(tmp_path, ["the cat sat", "on a mat"], ["the cat sat", "on the mat"])
    return tmp_path


def texts(folder: Path, reference: list, hypothesis: list) -> None:
    (folder / "texts.json").write_text(json.dumps({"reference": reference, "hypothesis": hypothesis}))


def build(folder: Path, *args: str, env: dict[str, str | None] | None = None, **compare) -> Ended:
    given = {"command": COMMAND, "metric": "wer", "max": 0.2, **compare}
    run = {"run": "python export.py cnn.onnx {output}", "compare": given, "env": env or {}}
    project(folder, {"net": {"export": run}}, ["SM8550"])
    return qnnci("build", "--no-verify", *args, cwd=folder)


def test_texts_are_measured_judged_and_told(repo, tmp_path_factory):
    ended = build(repo)
    assert ended.code == 0, ended.said
    assert "the export of net against the original, on the CPU: wer 0.1667 over 2 samples" in ended.said
    [entry] = manifest.load(repo / "build/manifest.json").entries
    assert entry.export_metrics["wer"].value == pytest.approx(1 / 6)
    assert entry.export_metrics["wer"].samples == 2
    assert json.loads((repo / "build/net/measured.json").read_text())["hypothesis"] == ["the cat sat", "on the mat"]
    assert "nothing to do" in build(repo).said
    summary = tmp_path_factory.mktemp("github") / "summary.md"
    ended = qnnci(
        "build", "--no-verify", cwd=repo, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary), GITHUB_OUTPUT=""
    )
    assert ended.code == 0
    assert "- net: wer 0.1667 over 2 samples" in summary.read_text()


@pytest.mark.parametrize(
    ("compare", "code", "said"),
    [
        ({"max": 0.1}, 1, "error export-metric net: wer must be at most 0.1: it is 0.1667 over 2 samples"),
        ({"max": 0.1, "severity": "warning"}, 0, "warning export-metric net: wer must be at most 0.1"),
        ({"metric": "top1", "max": None, "min": 0.75}, 1, "top1 must be at least 0.75: it is 0.5 over 2 samples"),
    ],
)
def test_a_bound_that_is_missed_is_a_gate(repo, compare, code, said):
    ended = build(repo, "--until", "prepare", **compare)
    assert ended.code == code, ended.said
    assert said in " ".join(ended.said.split())


def test_a_gate_stops_no_compile_and_what_the_command_reads_decides(repo):
    assert build(repo, max=0.1).code == 1
    made = manifest.load(repo / "build/manifest.json")
    assert len(made.entries) == 1
    assert not made.passed
    texts(repo, ["a"], ["a"])
    ended = build(repo, max=0.1)
    assert ended.code == 0, ended.said
    assert [line.split(" done in")[0] for line in ended.said.splitlines() if " done in " in line] == ["net: measure"]


def test_a_value_of_the_command_s_own_has_any_name(repo):
    (repo / "texts.json").write_text('{"value": 31.5}')
    assert build(repo, "--until", "prepare", metric="bleu", max=None, min=30).code == 0
    ended = build(repo, "--until", "prepare", metric="bleu", max=None, min=32)
    assert ended.code == 1, ended.said
    assert "bleu must be at least 32: it is 31.5\n" in ended.said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit('no such corpus')", "exit code 1: no such corpus"),
        ("print('fine')", "it wrote no {report}: fine"),
        (
            "import sys; open(sys.argv[3], 'w').write('{\"wer\": 1}')",
            "its report cannot be used: the report has an unk",
        ),
    ],
)
def test_a_command_that_fails_is_told_and_tried_again(repo, text, said):
    (repo / "compare.py").write_text(text)
    ended = build(repo, "--until", "prepare")
    assert ended.code == 4, ended.said
    assert f"error compare-failed net: {said}" in " ".join(ended.said.split())
    assert not list((repo / "build/net").glob(".scratch*"))
    if text.startswith("raise"):
        ended = build(repo)
        assert ended.code == 4
        assert "net: measure failed" in ended.said
        made = manifest.load(repo / "build/manifest.json")
        assert made.entries[0].export_metrics is None
        assert not made.passed


def test_a_token_reaches_the_command_and_not_its_log(repo, monkeypatch):
    monkeypatch.setenv("TOKEN", "s3cret-value")
    ended = build(repo, "--until", "prepare", env={"TOKEN": None})
    assert ended.code == 0, ended.said
    assert "token ***\n" in (repo / "build/net/logs/measure.log").read_text()


@pytest.mark.parametrize(
    ("compare", "said"),
    [
        ({"command": "python compare.py {model}"}, "say with `{report}` where it is to write its report"),
        ({"command": "python compare.py {report}"}, "say with `{model}` which model it is to run"),
        ({"command": "python 'compare.py {report}"}, "not a command: No closing quotation"),
        ({"max": None}, "give `min` or `max`"),
        ({"min": 0}, "give `min` or `max`"),
        ({"metric": "w e r"}, "metric"),
    ],
)
def test_settings_that_do_not_hold(compare, said):
    given = {"command": COMMAND, "metric": "wer", "max": 0.2, **compare}
    with pytest.raises(ValidationError) as caught:
        Export(run="python export.py {output}", compare=given)
    assert said in str(caught.value)


def test_what_decides_a_measure(repo):
    def key(exported="1", command=COMMAND, metric="wer", bound=0.1, **settings) -> str:
        compare = {"command": command, "metric": metric, "max": bound}
        given = Export(run="python export.py cnn.onnx {output}", compare=compare, **settings)
        return measure("net", given, repo / "build/net", repo, repo / "cache", {"exported.onnx": exported}).key

    seen = {key(), key("2"), key(command=f"{COMMAND} fast"), key(metric="cer"), key(env={"A": "1"}), key(python="3.12")}
    assert len(seen) == 6
    assert key(bound=0.5) == key()  # the gate is not part of it
    (repo / "compare.py").write_text("other")
    assert key() not in seen
