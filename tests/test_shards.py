"""Manifests of many jobs become one, contradictions are refused, and what is missing is told."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import qnnci

from qnnci.errors import UsageError
from qnnci.manifest import Entry, FindingRecord, Manifest, StageTime, Wanted, devices, load, save
from qnnci.plan import matrix, plan
from qnnci.project import Project
from qnnci.rules import finding
from qnnci.shards import Shard, find, join, missing, planned
from qnnci.soc import find_soc


def entry(graph: str, soc: str, *, passed: bool = True, sha256: str = "0" * 64) -> Entry:
    chip = find_soc(soc)
    text = dict.fromkeys(("graph_name", "source", "source_sha256", "built_at", "built_by"), "")
    unknown = dict.fromkeys(("optimization", "vtcm_bytes", "spill_fill_bytes", "const_bytes", "op_data_bytes"))
    more = {"io_bytes": None, "license": None, "parity": None, "compile_peak_mb": None, "compile_seconds": 1.0}
    names = {"binary": f"{graph}/{soc}/{graph}.bin", "context_model": f"{graph}/{soc}/{graph}_ctx.onnx"}
    judged = {"passed": passed, "sha256": sha256, "bytes": 1, "precision": "fp16", "route": "ort", "qairt": "v2.51.0"}
    where = {"graph": graph, "soc": soc, "soc_id": chip.id, "dsp_arch": chip.dsp_arch, "inputs": (), "outputs": ()}
    return Entry.model_validate({**where, **judged, **names, **text, **unknown, **more})


def manifest(*entries: Entry, name: str = "p", passed: bool = True, **more: object) -> Manifest:
    wanted = tuple(Wanted(graph=each.graph, soc=each.soc) for each in entries)
    settings = {"tools": {"onnx": "1"}, "findings": (), "targets": wanted, **more}
    return Manifest(name=name, license=None, passed=passed, entries=entries, devices=devices(entries), **settings)


@pytest.fixture
def builds(tmp_path):
    """Two jobs' folders, as they are downloaded."""
    for graph, soc in (("enc", "SM8550"), ("dec", "SM8750")):
        save(tmp_path / f"qnn-{graph}/manifest.json", manifest(entry(graph, soc)))
    return tmp_path


def test_one_manifest_of_many_leads_to_every_binary(builds):
    ended = qnnci("manifest", "join", "qnn-dec", "qnn-enc/manifest.json", "-o", "all/manifest.json", cwd=builds)
    assert ended.code == 0, ended.said
    joined = load(builds / "all/manifest.json")
    assert [each.binary for each in joined.entries] == [
        "../qnn-dec/dec/SM8750/dec.bin",
        "../qnn-enc/enc/SM8550/enc.bin",
    ]
    assert joined.entries[0].context_model == "../qnn-dec/dec/SM8750/dec_ctx.onnx"
    assert joined.passed
    assert {row.soc for row in joined.devices} == {"SM8550", "SM8750"}
    assert [target.graph for target in joined.targets] == ["dec", "enc"]


def test_a_folder_stands_for_the_builds_in_it(builds):
    assert qnnci("manifest", "join", ".", "-o", "manifest.json", cwd=builds).code == 0
    assert next(each.binary for each in load(builds / "manifest.json").entries) == "qnn-dec/dec/SM8750/dec.bin"
    # Once joined, the joined one is what the folder says.
    assert len(find([builds])) == 1


def test_findings_that_all_say_are_said_once_and_versions_of_tools_are_all_told(tmp_path):
    same = FindingRecord.model_validate(finding("int64-io", "x is int64", graph="enc").to_json())
    parts = [
        Shard(tmp_path / soc / "manifest.json", manifest(entry("enc", soc), findings=(same,), tools={"onnx": version}))
        for soc, version in (("SM8550", "1"), ("SM8650", "1"), ("SM8750", "2"))
    ]
    joined = join(parts, tmp_path)
    assert joined.findings == (same,)
    assert joined.tools == {"onnx": "1, 2"}


def test_what_one_job_did_and_others_found_done_is_told_once(tmp_path):
    did = StageTime(graph="enc", stage="prepare", state="done", began="2026-12-01T10:00:00.000+00:00", seconds=9)
    found = did.model_copy(update={"state": "cached"})
    own = [
        StageTime(graph="enc", soc=soc, stage="compile", state="done", began=began, seconds=1)
        for soc, began in (("SM8550", "2026-12-01T10:02:00.000+00:00"), ("SM8650", "2026-12-01T10:01:00.000+00:00"))
    ]
    parts = [
        Shard(tmp_path / "a", manifest(stages=(found, own[0]), settings={"route": "ort", "graphs": {"enc": {}}})),
        Shard(tmp_path / "b", manifest(stages=(did, own[1]), settings={"route": "ort", "graphs": {"dec": {}}})),
    ]
    joined = join(parts, tmp_path)
    assert joined.stages == (did, own[1], own[0])
    assert joined.settings == {"route": "ort", "graphs": {"enc": {}, "dec": {}}}


def test_one_that_failed_fails_all(tmp_path):
    parts = [Shard(tmp_path / "a", manifest(entry("enc", "SM8550"))), Shard(tmp_path / "b", manifest(passed=False))]
    assert not join(parts, tmp_path).passed


def test_the_worse_judgement_of_one_binary_holds(tmp_path):
    good, bad = (manifest(entry("enc", "SM8550", passed=passed), passed=passed) for passed in (True, False))
    for order in ([good, bad], [bad, good]):
        joined = join([Shard(tmp_path / str(number), each) for number, each in enumerate(order)], tmp_path)
        assert [each.passed for each in joined.entries] == [False]
        assert joined.devices == ()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            manifest(entry("enc", "SM8550", sha256="1" * 64)),
            "enc for SM8550 is another binary in qnn-enc/manifest.json",
        ),
        (manifest(entry("enc", "SM8650"), name="q"), "different projects: qnn-enc/manifest.json (p) and"),
    ],
    ids=["binary", "project"],
)
def test_contradictions_are_refused(builds, other, said):
    save(builds / "other/manifest.json", other)
    ended = qnnci("manifest", "join", "qnn-enc", "other", cwd=builds)
    assert ended.code == 2
    assert said in " ".join(ended.said.split())
    assert not (builds / "manifest.json").exists()


@pytest.mark.parametrize("what", ["nothing", "qnn-enc/enc", "."])
def test_no_manifest_is_a_usage_error(tmp_path, what):
    (tmp_path / "qnn-enc/enc").mkdir(parents=True)
    ended = qnnci("manifest", "join", what, cwd=tmp_path)
    assert ended.code == 2
    assert "manifest.json" in ended.said or "nothing" in ended.said


PLAN = json.dumps(
    {
        "graphs": [{"graph": "enc"}, {"graph": "dec"}],
        "shards": [
            {"id": "enc-000", "graph": "enc", "socs": "SM8550"},
            {"id": "dec-000", "graph": "dec", "socs": "SM8750"},
        ],
    }
)


def test_the_gate_passes_what_is_all_there(builds):
    ended = qnnci("gate", ".", "--plan", PLAN, cwd=builds)
    assert ended.code == 0, ended.said
    assert "passed: 2 of 2 binaries are good" in ended.said


def test_the_gate_writes_a_report_of_all_with_the_logs_of_each(builds):
    where = {"graph": "dec", "soc": "SM8750", "file": "build/dec/SM8750/logs/compile.log", "line": 2}
    found = FindingRecord.model_validate(finding("parity", "cosine is low", **where).to_json())
    save(builds / "qnn-dec/manifest.json", manifest(entry("dec", "SM8750"), findings=(found,)))
    log = builds / "qnn-dec/dec/SM8750/logs/compile.log"
    log.parent.mkdir(parents=True)
    log.write_text("before\nwhat the tool said\nafter\n")
    ended = qnnci("gate", ".", "--plan", PLAN, "-o", "all/manifest.json", cwd=builds)
    assert ended.code == 0, ended.said
    page = (builds / "all/report.html").read_text()
    assert "passed: 2 of 2 binaries are good" in page
    assert "what the tool said" in page
    assert qnnci("report", ".", "-o", "again.html", cwd=builds).code == 0
    assert (builds / "again.html").read_text() == page.replace("../", "")
    # Of a manifest alone, whose logs are elsewhere, all but these.
    assert qnnci("report", "all/manifest.json", "-o", "later.html", cwd=builds).code == 0
    assert "what the tool said" not in (builds / "later.html").read_text()
    assert qnnci("report", "nothing", cwd=builds).code == 2


def test_a_shard_that_is_missing_fails(builds):
    (builds / "qnn-dec/manifest.json").unlink()
    ended = qnnci("gate", ".", "--plan", PLAN, cwd=builds)
    assert ended.code == 1
    assert "target-missing" in ended.said
    assert "dec on SM8750: it was planned" in ended.said
    assert "enc on SM8550" not in ended.said
    assert qnnci("gate", ".", cwd=builds).code == 0  # nothing says what should be there


def test_a_build_that_failed_fails_and_says_why(builds):
    found = FindingRecord.model_validate(finding("parity", "cosine is low", graph="dec", soc="SM8750").to_json())
    save(
        builds / "qnn-dec/manifest.json",
        manifest(entry("dec", "SM8750", passed=False), passed=False, findings=(found,)),
    )
    for how in ([], ["--fail-on", "never"]):
        ended = qnnci("gate", ".", *how, cwd=builds)
        assert ended.code == 1
        assert "cosine is low" in ended.said


@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("error", 0), ("warning", 1)])
def test_the_gate_can_be_stricter_than_the_builds(builds, fail_on, code):
    found = FindingRecord.model_validate(finding("spill-fill", "much", graph="dec", severity="warning").to_json())
    save(builds / "qnn-dec/manifest.json", manifest(entry("dec", "SM8750"), findings=(found,)))
    assert qnnci("gate", ".", "--fail-on", fail_on, cwd=builds).code == code


def test_on_github_the_gate_reports_all(builds):
    env = {name: str(builds / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    (builds / "qnn-enc/manifest.json").unlink()
    ended = qnnci("gate", ".", "--plan", PLAN, cwd=builds, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(builds), **env)
    assert ended.code == 1
    assert "::error title=Nothing is known of a target::enc on SM8550: it was planned" in ended.said
    summary = (builds / "GITHUB_STEP_SUMMARY").read_text()
    assert "| ✅ | dec | SM8750 (v79) |" in summary
    assert "| ❌ | enc | SM8550 |" in summary
    outputs = (builds / "GITHUB_OUTPUT").read_text()
    assert '"path": "qnn-dec/dec/SM8750/dec.bin"' in outputs
    assert "\nfail\n" in outputs


def test_what_an_error_or_a_graph_tells_of_is_not_missing():
    targets = tuple(Wanted(graph="enc", soc=soc) for soc in ("SM8550", "SM8650"))
    error = FindingRecord(rule="unsupported-op", severity="error", message="no", graph="enc", soc="SM8550")
    made = manifest(targets=targets, findings=(error,))
    assert [each.soc for each in missing(made)] == ["SM8650"]
    of_graph = error.model_copy(update={"soc": ""})
    assert missing(manifest(targets=targets, findings=(of_graph,))) == []
    warning = of_graph.model_copy(update={"severity": "warning"})
    assert len(missing(manifest(targets=targets, findings=(warning,)))) == 2


def test_a_plan_is_what_matrix_prints():
    graphs = {"enc": {"source": "e.onnx"}, "dec": {"source": "d.onnx", "socs": ["SM8750"]}}
    project = Project.model_validate({"name": "n", "socs": ["SM8550", "SM8650", "SM8750"], "graphs": graphs})
    targets = plan(project)
    for jobs in (2, 4):
        wanted = planned(json.dumps(matrix(targets, jobs)))
        assert [(each.graph, each.soc) for each in wanted] == [(each.graph, each.soc.name) for each in targets]


@settings(max_examples=50)
@given(
    st.text()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["shards", "graph", "socs", "x"]), inner),
    ).map(json.dumps)
)
def test_what_is_no_plan_is_refused_in_words(text):
    with contextlib.suppress(UsageError):
        assert isinstance(planned(text), list)
