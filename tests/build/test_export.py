"""The export of a model repository, as part of a build: run, kept, held against the original, and told of."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support import graphs, runner
from support.command import project, qnnci

from qnnci import manifest
from qnnci.arrays import load_samples
from qnnci.build.export import export
from qnnci.errors import UsageError
from qnnci.project import Export

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

COPIER = "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])"
RUN = "python export.py cnn.onnx {output}"

# A model of numpy alone, made into a graph with onnx: what torch is to a real repository.
EXPORTER = """
import sys
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

out, reference = sys.argv[1:]
rng = np.random.default_rng(0)
table = rng.standard_normal((50, 16)).astype(np.float32)
weight = rng.standard_normal((16, 8)).astype(np.float32)
nodes = [
    helper.make_node("Gather", ["table", "token"], ["embedded"], name="embed"),
    helper.make_node("Add", ["embedded", "state"], ["next"], name="add"),
    helper.make_node("MatMul", ["next", "weight"], ["logits"], name="project"),
]
port = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "step",
    [port("token", TensorProto.INT32, [1]), port("state", TensorProto.FLOAT, [1, 16])],
    [port("logits", TensorProto.FLOAT, [1, 8]), port("next", TensorProto.FLOAT, [1, 16])],
    [numpy_helper.from_array(table, "table"), numpy_helper.from_array(weight, "weight")],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), out)
token = rng.integers(0, 50, (3, 1), dtype=np.int32)
state = rng.standard_normal((3, 1, 16)).astype(np.float32)
new = table[token] + state
np.savez(reference, feed_token=token, feed_state=state, want_logits=new @ weight, want_next=new)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository whose export copies a graph; nothing is installed for it."""
    graphs.cnn(tmp_path / "cnn.onnx")
    (tmp_path / "export.py").write_text(COPIER)
    return tmp_path


def exporting(folder: Path, run: str = RUN, *, socs: tuple[str, ...] = ("SM8550",), more=None, **settings) -> None:
    project(folder, {"net": {"export": {"run": run, **settings}, **(more or {})}}, list(socs))


def script(folder: Path, text: str) -> None:
    (folder / "export.py").write_text(text)


def reference(folder: Path, scale: float = 1.0, **more) -> None:
    """What the `original model` of `repo` gives: three samples of the graph itself, times `scale`."""
    session = onnxruntime.InferenceSession(str(folder / "cnn.onnx"), providers=["CPUExecutionProvider"])
    feeds = np.random.default_rng(3).standard_normal((3, 1, 3, 8, 8)).astype(np.float32)
    wants = np.stack([session.run(None, {"image": feed})[0] for feed in feeds])
    np.savez(folder / "ref.npz", **{"feed_image": feeds, "want_features": wants * np.float32(scale), **more})


def log(folder: Path) -> str:
    return (folder / "build/net/logs/export.log").read_text(encoding="utf-8")


def test_an_export_with_packages_of_its_own_becomes_a_binary(tmp_path):
    script(tmp_path, EXPORTER)
    (tmp_path / "requirements-export.txt").write_text("onnx>=1.18\n")
    run = "python export.py {output} {reference}"
    exporting(tmp_path, run, requirements="requirements-export.txt", more={"inputs": {"token": {"range": [0, 49]}}})
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    [entry] = manifest.load(tmp_path / "build/manifest.json").entries
    assert entry.source == f"export: {run}"
    assert [(tensor.name, tensor.dtype) for tensor in entry.inputs] == [("token", "INT_32"), ("state", "FLOAT_32")]
    assert set(entry.export_parity) == {"logits", "next"}
    assert all(figures.snr_db > 100 for figures in entry.export_parity.values())
    assert entry.parity.outputs["logits"].snr_db > 30
    again = qnnci("build", cwd=tmp_path)
    assert again.code == 0
    assert " done in " not in again.said
    script(tmp_path, EXPORTER + "print('changed')\n")
    assert "net: export done" in qnnci("build", "--no-verify", cwd=tmp_path).said
    assert "changed" in log(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('loading'); raise ValueError('no such checkpoint')", "exit code 1: "),
        ("import os; os.abort()", "exit code 134: "),
        ("print('all is well')", "it wrote no {output}: all is well"),
        ("import sys; open(sys.argv[2], 'w').write('hello')", "what it wrote cannot be used: "),
    ],
)
def test_a_failed_export_is_told_with_its_last_words_and_log(repo, text, said):
    exporting(repo)
    script(repo, text)
    ended = qnnci("build", cwd=repo)
    assert ended.code == 4
    message = " ".join(ended.said.split())
    assert "export-failed" in message
    assert said in message
    assert "build/net/logs/export.log" in message
    if "checkpoint" in text:
        assert "ValueError: no such checkpoint" in message
    assert not list((repo / "build/net").glob("exported*"))
    assert not list((repo / "build/net").glob(".scratch*"))
    assert "net: export failed" in qnnci("build", cwd=repo).said  # it is tried again


WEIGHTS = """
def weights(name):
    raise FileNotFoundError(f"no checkpoint {name}")
"""
SCRIPT = """
from lib.weights import weights

def main():
    weights("tiny")

main()
"""


@pytest.mark.parametrize(
    ("files", "where"),
    [
        ({"tools/export.py": SCRIPT, "tools/lib/weights.py": WEIGHTS}, "tools/lib/weights.py:3"),
        ({"tools/export.py": "import json\n\njson.loads('{')\n"}, "tools/export.py:3"),  # not the library's own line
        ({"tools/export.py": "x = 1\ny = (\n"}, "tools/export.py:2"),
        ({"tools/export.py": "raise SystemExit(3)"}, "tools/export.py"),
        ({"tools/export.py": "print('  File \"/etc/passwd\", line 3'); raise SystemExit(3)"}, "tools/export.py"),
        ({"tools/export.py": ""}, "tools/export.py"),  # it writes nothing
    ],
)
def test_a_failed_export_is_annotated_at_its_script_s_line(repo, files, where):
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    exporting(repo, "python tools/export.py {output}")
    runs = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(repo), "GITHUB_OUTPUT": str(repo / "outputs")}
    (told,) = runner.obeyed(qnnci("build", cwd=repo, **runs).said)
    file, _, line = where.partition(":")
    assert (told.name, told.properties["file"], told.properties.get("line", "")) == ("error", file, line)
    assert told.properties["title"]
    assert told.data.startswith("net: ")


def test_a_reference_that_is_not_written_is_a_failed_export(repo):
    exporting(repo, f"{RUN} {{reference}}")
    ended = qnnci("build", cwd=repo)
    assert ended.code == 4
    assert "it wrote no {reference}" in ended.said


def test_a_failed_export_is_tried_again_even_where_its_reference_was_good(repo):
    reference(repo)
    exporting(repo, f"{RUN} {{reference}}")
    script(repo, "import shutil, sys; shutil.copy('ref.npz', sys.argv[3]); open(sys.argv[2], 'w').write('no model')")
    assert qnnci("build", cwd=repo).code == 4
    ended = qnnci("build", cwd=repo)
    assert ended.code == 4
    assert "net: export failed" in ended.said


def test_an_export_travels_to_the_jobs_that_compile(repo, tmp_path_factory):
    reference(repo)
    exporting(repo, reference="ref.npz")
    prepared = qnnci("build", "--until", "prepare", "--no-verify", cwd=repo)
    assert prepared.code == 0, prepared.said
    assert "net: compare done" in prepared.said
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "checkout"
    shutil.copytree(repo, elsewhere, copy_function=shutil.copyfile)
    shutil.rmtree(repo)
    ended = qnnci("build", "--no-verify", cwd=elsewhere)
    assert ended.code == 0, ended.said
    done = [line.split(" done in")[0] for line in ended.said.splitlines() if " done in " in line]
    assert done == ["net-SM8550: compile", "net-SM8550: inspect"]
    assert manifest.load(elsewhere / "build/manifest.json").entries[0].export_parity


def test_no_shell_and_the_repository_s_folder(repo):
    exporting(repo, f"{RUN} '$(touch pwned)' ; touch pwned & `touch pwned`")
    script(repo, f"import os, sys; print('args', sys.argv[3:], os.getcwd())\n{COPIER}")
    ended = qnnci("build", "--no-verify", cwd=repo)
    assert ended.code == 0, ended.said
    words = ["$(touch pwned)", ";", "touch", "pwned", "&", "`touch", "pwned`"]
    assert f"args {words} {repo}" in log(repo)
    assert not (repo / "pwned").exists()


def test_only_the_tokens_that_are_named_reach_the_export_and_none_the_log(repo):
    script(repo, f"import os\nfor item in os.environ.items(): print(*item)\n{COPIER}")
    exporting(repo, env={"TOKEN": None, "MODE": "fast"})
    secrets = {"TOKEN": "s3cret-value", "HF_TOKEN": "other-secret", "GITHUB_TOKEN": "third-secret"}
    ended = qnnci("build", "--no-verify", cwd=repo, **secrets)
    assert ended.code == 0, ended.said
    assert "TOKEN ***\n" in log(repo)
    assert "MODE fast\n" in log(repo)
    assert "HF_TOKEN" not in log(repo)
    assert "GITHUB_TOKEN" not in log(repo)
    kept = [path.read_bytes() for path in (repo / "build").rglob("*") if path.is_file()]
    assert not any(value.encode() in data for value in secrets.values() for data in kept)
    ended = qnnci("build", "--no-verify", cwd=repo)
    assert ended.code == 0  # done already: the value decides nothing
    (repo / "build/net/exported.onnx").unlink()
    ended = qnnci("build", "--no-verify", cwd=repo)
    assert ended.code == 2
    assert "the export needs TOKEN from the environment" in ended.said


@pytest.mark.parametrize(
    ("scale", "more", "code", "said"),
    [
        (1, {}, 0, "passed"),
        (1.2, {}, 0, "warning export-parity"),
        (-1, {}, 1, "error export-parity"),
        (1, {"want_feature": np.zeros((3, 1), np.float32)}, 2, "did you mean 'features'?"),
    ],
)
def test_the_exported_graph_is_held_against_the_original(repo, scale, more, code, said):
    reference(repo, scale, **more)
    exporting(repo, reference="ref.npz")
    ended = qnnci("build", "--no-verify", cwd=repo)
    assert ended.code == code, ended.said
    assert said in ended.said
    made = manifest.load(repo / "build/manifest.json")
    assert len(made.entries) == 1  # a gate, so the binary stands
    assert made.passed == (code == 0)
    if scale == 1.2:
        assert made.entries[0].export_parity["features"].max_rel == pytest.approx(1 / 6, rel=1e-3)
        reference(repo)
        assert "net: compare done" in qnnci("build", "--no-verify", cwd=repo).said  # and nothing else is done anew


def test_binaries_are_verified_on_the_inputs_of_the_original_where_they_fit(repo, tmp_path_factory):
    def parity_inputs() -> str:
        return manifest.load(repo / "build/manifest.json").entries[0].parity.inputs

    reference(repo)
    exporting(repo, reference="ref.npz")
    ended = qnnci("build", cwd=repo)
    assert ended.code == 0, ended.said
    assert parity_inputs() == "the export's reference"
    feeds = [feed["image"] for feed, _ in load_samples(repo / "build/net/reference.npz")]
    np.testing.assert_array_equal(feeds, np.load(repo / "ref.npz")["feed_image"])
    given = tmp_path_factory.mktemp("given") / "image.npz"
    np.savez(given, image=np.zeros((1, 3, 8, 8), np.float32))
    exporting(repo, reference="ref.npz", more={"verify": {"inputs": str(given)}})
    assert qnnci("build", cwd=repo).code == 0
    assert parity_inputs() == str(given)
    graphs.cnn(repo / "cnn.onnx", batch="n")  # exported with a dynamic batch, and compiled for one that is larger
    exporting(repo, reference="ref.npz", more={"inputs": {"image": [2, 3, 8, 8]}})
    ended = qnnci("build", cwd=repo)
    assert ended.code == 0, ended.said
    assert parity_inputs() == "seeded (0)"
    assert "notice reference-unfit net: image has shape [3, 1, 3, 8, 8], the graph wants [2, 3, 8, 8]" in ended.said


def test_weights_in_other_files_become_one(repo):
    script(
        repo,
        "import pathlib, shutil, sys\n"
        "out = pathlib.Path(sys.argv[2])\n"
        "shutil.copy(sys.argv[1], out)\n"
        "shutil.copytree('weights', out.parent / 'weights')\n",
    )
    model = onnx.load(graphs.cnn(repo / "cnn.onnx"))
    (repo / "weights").mkdir()
    onnx.save(model, str(repo / "cnn.onnx"), save_as_external_data=True, location="weights/w", size_threshold=0)
    reference(repo)
    exporting(repo, reference="ref.npz")
    ended = qnnci("build", "--no-verify", cwd=repo)
    assert ended.code == 0, ended.said
    made = sorted(path.name for path in (repo / "build/net").glob("exported*"))
    assert made == ["exported.onnx", "exported.onnx.data"]
    assert "warning" not in ended.said.replace("warning parity", "")
    graphs.cnn(repo / "cnn.onnx")  # all in one again: the file beside it goes
    assert qnnci("build", "--no-verify", cwd=repo).code == 0
    assert [path.name for path in (repo / "build/net").glob("exported*")] == ["exported.onnx"]


def test_an_endless_export_is_stopped_with_all_that_it_started(repo):
    script(repo, "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])")
    project(repo, {"net": {"export": {"run": RUN}}}, ["SM8550"], limits={"seconds": 2})
    ended = qnnci("build", cwd=repo)
    assert ended.code == 4
    assert "export was stopped after 2 s" in ended.said


def test_what_an_export_reads_decides_whether_it_is_done_anew(repo):
    def key(**settings) -> str:
        given = Export(run=RUN, **settings)
        return export("net", given, repo / "build/net", repo, repo / "cache").key

    (repo / "lib").mkdir()
    (repo / "lib/a.py").write_text("1")
    (repo / "r.txt").write_text("onnx")
    seen = {key(), key(inputs=("lib/*.py",)), key(python="3.12"), key(env={"A": "1"}), key(requirements="r.txt")}
    assert len(seen) == 5
    assert key(inputs=("lib/*.py",)) in seen
    (repo / "lib/a.py").write_text("12")
    assert key(inputs=("lib/*.py",)) not in seen
    assert key() in seen  # what is not named is not looked at
    (repo / "lib/b.py").write_text("1")
    assert key(inputs=("lib/*.py",)) not in seen
    (repo / "r.txt").write_text("onnx==1.23.2")
    assert key(requirements="r.txt") not in seen
    script(repo, "other")
    assert key() not in seen
    with pytest.raises(UsageError, match=r"no file fits 'src/\*.py'"):
        key(inputs=("src/*.py",))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"run": "./nowhere.sh {output}"}, "cannot run ./nowhere.sh: No such file or directory"),
        ({"requirements": "nowhere.txt"}, "nowhere.txt"),
        ({"reference": "nowhere.npz"}, "nowhere.npz"),
    ],
)
def test_what_is_not_there_is_told(repo, settings, said):
    exporting(repo, **{"run": RUN, **settings})
    ended = qnnci("build", "--no-verify", cwd=repo)
    assert ended.code == 2
    assert said in ended.said


def test_packages_that_cannot_be_installed_are_the_machine_s_or_the_network_s(repo):
    (repo / "requirements.txt").write_text("./no-such-package\n")
    exporting(repo, requirements="requirements.txt")
    ended = qnnci("build", "--no-verify", cwd=repo, QNNCI_CACHE=str(repo / "cache"))
    assert ended.code == 5
    assert "pip cannot install requirements.txt" in ended.said


def test_another_python(repo):
    other = repo / "bin/python3.77"
    other.parent.mkdir()
    make = f'exec "{sys.executable}" -m venv --without-pip "$4"'
    other.write_text(f'#!/bin/sh\ncase "$1" in -c) echo 3.77 ;; *) {make} ;; esac\n')
    other.chmod(0o755)
    exporting(repo, python="3.77")
    path = f"{other.parent}{os.pathsep}{os.environ['PATH']}"
    ended = qnnci("build", "--no-verify", cwd=repo, PATH=path, QNNCI_CACHE=str(repo / "cache"))
    assert ended.code == 0, ended.said
    assert str(other) in log(repo)
    assert json.loads((repo / "build/manifest.json").read_text())["passed"]
