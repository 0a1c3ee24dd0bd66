"""The command line: what each small verb prints, and that every error is one message with its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import yaml
from onnx import helper
from support import graphs
from support.command import environment

from qnnci import __version__
from qnnci.cli.main import _main, cli
from qnnci.errors import MachineError, UsageError
from qnnci.plan import CHIPS_PER_JOB, plan
from qnnci.project_file import load, validate
from qnnci.soc import all_socs, htp_socs

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def qnnci(monkeypatch, capsys, tmp_path):
    """Run `qnnci` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)

    def run(*args: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["qnnci", *map(str, args)])
        before = signal.getsignal(signal.SIGTERM)
        try:
            code = _main()
        finally:
            signal.signal(signal.SIGTERM, before)
        return Ended(code, *capsys.readouterr())

    return run


def test_help_lists_every_verb(qnnci):
    ended = qnnci("--help")
    assert ended.code == 0
    assert all(f"\n  {verb} " in ended.out for verb in cli.commands)


@pytest.mark.parametrize("verb", sorted(cli.commands))
def test_every_verb_and_option_is_explained(qnnci, verb):
    assert qnnci(verb, "--help").code == 0
    assert cli.commands[verb].help
    options = [each for each in cli.commands[verb].params if isinstance(each, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_version(qnnci):
    assert qnnci("--version").out == f"qnnci, version {__version__}\n"


def test_socs_lists_chips_with_htp_or_all(qnnci):
    lines = qnnci("socs").out.splitlines()
    assert {line.split()[0] for line in lines[1:]} == {soc.name for soc in htp_socs()}
    assert len(qnnci("socs", "--all").out.splitlines()) == len(all_socs()) + 1


def test_socs_looks_names_up(qnnci):
    found = json.loads(qnnci("socs", "SM8750P", "qcs6490", "--json").out)
    assert [(soc["name"], soc["id"], soc["dsp_arch"], soc["fp16"]) for soc in found] == [
        ("SM8750", 69, "v79", True),
        ("QCS6490", 93, "v68", False),
    ]


def test_the_schema_is_the_one_in_the_repository(qnnci):
    assert qnnci("schema").out == (ROOT / "qnn.schema.json").read_text(encoding="utf-8")


SHOWN = {
    "name": "demo",
    "license": "MIT – see https://example.org: 1",
    "socs": ["SM8750P", "69", "QCS6490"],
    "precision": {"v68": "w8a16", "SM8550": "w8a8"},
    "graphs": {
        "a": {
            "source": "hf://o/r/ä.onnx@main",
            "sha256": "0" * 64,
            "inputs": {
                "x:0": [1, 3],
                "sr": {"value": 16000},
                "m": {"value": [[-1e-5, True]]},
                "r": {"range": [0, 255]},
            },
        },
        "1e3": {"source": "b.onnx", "simplify": False, "verify": {"enabled": False}, "gates": {"parity": []}},
    },
    "gates": {"parity": {"metric": "snr_db", "min": 20}, "binary_mb": {"max": 9}},
}


def test_show_prints_a_project_file_again(qnnci, tmp_path):
    (tmp_path / "qnn.yaml").write_text(yaml.safe_dump(SHOWN))
    shown = qnnci("show").out
    (tmp_path / "again.yaml").write_text(shown, encoding="utf-8")
    assert load(tmp_path / "again.yaml").project == load(tmp_path / "qnn.yaml").project == validate(SHOWN, "")
    assert qnnci("show", "-c", "again.yaml").out == shown


def test_show_does_not_put_defaults_over_the_projects_settings(qnnci, tmp_path):
    graph = {"source": "a.onnx", "convert": {"out_nodes": ["y"]}, "quantize": {"io": "float16"}}
    given = {**SHOWN, "graphs": {"a": graph}, "convert": {"bias_bitwidth": 32, "input_dtypes": {"x": "float32"}}}
    given["quantize"] = {"calibrate": "entropy"}
    (tmp_path / "qnn.yaml").write_text(yaml.safe_dump(given))
    (tmp_path / "again.yaml").write_text(qnnci("show").out, encoding="utf-8")
    assert load(tmp_path / "again.yaml").project.quantize_for("a").calibrate == "entropy"
    settings = load(tmp_path / "again.yaml").project.convert_for("a")
    assert settings == load(tmp_path / "qnn.yaml").project.convert_for("a")
    assert (settings.bias_bitwidth, settings.input_dtypes, settings.out_nodes) == (32, {"x": "float32"}, ("y",))


def test_show_lists_targets_and_what_is_refused(qnnci):
    shown = qnnci("show", "--model", "net.onnx", "--soc", "SM8750,QCS6490", "--fail-on", "warning").out
    assert "#   net_fp16_SM8750_v79.bin\n" in shown
    assert "#   net_fp16_QCS6490_v68.bin  refused: v68 has no fp16\n" in shown
    assert yaml.safe_load(shown)["fail_on"] == "warning"


def test_matrix_is_one_line_for_github(qnnci):
    ended = qnnci("matrix", "--model", "net.onnx", "--soc", "SM8750", "--soc", "SM8650 SM8550", "--max-jobs", 2)
    assert ended.out.count("\n") == 1
    assert json.loads(ended.out) == {
        "graphs": [{"graph": "net"}],
        "prepare": [{"graph": "net"}],
        "shards": [
            {"id": "net-000", "graph": "net", "socs": "SM8750,SM8650", "prepared": True},
            {"id": "net-001", "graph": "net", "socs": "SM8550", "prepared": True},
        ],
    }


def test_matrix_says_how_many_chips_a_job_has(qnnci):
    assert f"as few as hold {CHIPS_PER_JOB} SoCs of a graph each" in " ".join(qnnci("matrix", "--help").out.split())


@pytest.mark.parametrize("model", ["silero_vad.onnx", "ch_PP-OCRv4_det_infer.onnx", "320n.onnx"])
def test_init_writes_a_project_of_a_real_model(qnnci, models, tmp_path, model):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / model).write_bytes(models(model).read_bytes())
    assert qnnci("init", f"in/{model}", "--soc", "SM8550P").code == 0
    text = (tmp_path / "qnn.yaml").read_text()
    assert "FILL IN" in text
    # What is left open is no shape that happens to build, but a complaint that names its line.
    ended = qnnci("show")
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "FILL IN" in each)
    assert (ended.code, f"qnn.yaml:{line}" in ended.err) == (2, True)
    (tmp_path / "qnn.yaml").write_text(text.replace("fill-in", "64"))
    project = load(tmp_path / "qnn.yaml").project
    [graph] = project.graphs.values()
    assert (project.socs, graph.source) == (("SM8550",), f"in/{model}")
    assert graph.inputs
    assert qnnci("show").code == 0


def test_init_keeps_odd_names_and_does_not_overwrite(qnnci, tmp_path):
    odd = 'x:0 #"\x7f\x85\u2028😀'
    node = helper.make_node("Identity", [odd], ["y"])
    graphs.save(tmp_path / "my net.onnx", [node], {odd: ["N\u2028: [", 3], "z": []}, {"y": [1, 3]})
    assert qnnci("init", "my net.onnx").code == 0
    graph = load(tmp_path / "qnn.yaml").project.graphs["my_net"]
    assert {name: each.shape for name, each in graph.inputs.items()} == {odd: (1, 3), "z": ()}
    ended = qnnci("init", "my net.onnx")
    assert (ended.code, "qnn.yaml is there already" in ended.err) == (2, True)
    assert qnnci("init", "my net.onnx", "--force").code == 0


@pytest.mark.parametrize(
    ("socs", "precision"),
    [
        (["QCS6490"], "w8a16"),
        (["SM8550", "QCS6490", "SM8350"], "{default: fp16, v68: w8a16}"),
        (["SM8550"], None),
    ],
)
def test_init_asks_for_calibration_inputs_where_a_chip_has_no_fp16(qnnci, tmp_path, socs, precision):
    graphs.cnn(tmp_path / "cnn.onnx")
    said = qnnci("init", "cnn.onnx", "--soc", ",".join(socs)).out
    text = (tmp_path / "qnn.yaml").read_text()
    assert (f"precision: {precision} #" in text) == bool(precision)
    assert ("    calibration: fill-in  # FILL IN" in text) == bool(precision) == ("fill in" in said)
    project = load(tmp_path / "qnn.yaml").project
    assert all(each.refusal is None for each in plan(project))


def test_init_says_what_is_left_to_do(qnnci, tmp_path):
    for name, dims in (("open", ["N", "seconds"]), ("batch", ["N", 3]), ("closed", [1, 3])):
        graphs.save(tmp_path / f"{name}.onnx", [helper.make_node("Identity", ["x"], ["y"])], {"x": dims}, {"y": dims})
    assert qnnci("init", "open.onnx").out == "wrote qnn.yaml: fill in what is marked, then `qnnci build`\n"
    assert qnnci("init", "batch.onnx", "--force").out == "wrote qnn.yaml: next: `qnnci build`\n"
    assert qnnci("init", "closed.onnx", "-o", "c.yaml").out == "wrote c.yaml: next: `qnnci build -c c.yaml`\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("socs SM8751", "unknown SoC 'SM8751'"),
        ("socs SM8250", "SM8250 has no HTP"),
        ("show", "there is no project file qnn.yaml"),
        ("show --model a.onnx --config b.yaml --soc SM8750", "not both"),
        ("show --model a.onnx", "needs the chips"),
        ("show --model a.onnx --soc SM8751", "unknown SoC 'SM8751'"),
        ("show --model a.onnx --soc SM8750 --input x=a", "cannot read the input 'x=a'"),
        ("show --fail-on sometimes", "'sometimes' is not one of 'error', 'warning', 'never'"),
        ("show --precision fp32", "'fp32' is not one of"),
        ("matrix --model a.onnx --soc SM8750 --graph b", "no graph 'b'"),
        ("matrix --max-jobs 257", "257 is not in the range"),
        ("build --jobs 0", "0 is not in the range"),
        ("build --nonsense", "No such option"),
        ("frobnicate", "No such command"),
        ("init nothing.onnx", "nothing.onnx"),
        ("check nothing.onnx", "nothing.onnx"),
        ("prepare nothing.onnx", "nothing.onnx"),
        ("inspect nothing.bin", "nothing.bin"),
        ("verify nothing.bin --against nothing.onnx", "no nothing_ctx.onnx beside nothing.bin"),
        ("verify nothing.bin --against nothing.onnx --samples 5000", "verify.samples: must be less than"),
        ("verify nothing.bin --against nothing.onnx --seed -1", "verify.seed: must be greater than"),
        ("verify nothing.bin --against nothing.onnx --min-cosine nan", "must be a finite number"),
    ],
)
def test_a_mistake_is_told_once_without_a_traceback(qnnci, tmp_path, args, said):
    ended = qnnci(*args.split())
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.lower().count("error: ") == 1
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where_an_error_comes_from(qnnci, monkeypatch):
    assert "Traceback" in qnnci("--debug", "show").err
    monkeypatch.setenv("QNNCI_DEBUG", "1")
    assert "Traceback" in qnnci("show").err
    monkeypatch.setenv("QNNCI_DEBUG", "0")
    assert "Traceback" not in qnnci("show").err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MachineError("disk full", hint="free some"), 5, "error: disk full\n  → free some"),
        (PermissionError(13, "Permission denied", "/x"), 5, "error: Permission denied: /x"),
        (KeyboardInterrupt(), 130, "finished stages stand"),
        (ZeroDivisionError("odd"), 4, "qnnci itself failed: ZeroDivisionError: odd\n  → this is a bug"),
        (UsageError("no such input \x1b]0;title\x07"), 2, "error: no such input  ]0;title \n"),
    ],
)
def test_what_is_nobodys_mistake_has_its_own_code(qnnci, monkeypatch, error, code, said):
    def fail(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("qnnci.report.chips.show", fail)
    ended = qnnci("socs")
    assert ended.code == code
    assert said in ended.err


def test_a_reader_that_has_gone_is_no_success_and_no_noise(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "qnnci", "socs"]
    done = subprocess.run(argv, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(), check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (130, b"")


def test_closed_streams_and_a_poor_encoding_are_no_failure(tmp_path):
    graphs.cnn(tmp_path / "m.onnx", batch="N")
    script = '"$0" -m qnnci check m.onnx'
    for closed in (">&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{script} {closed}", sys.executable], cwd=tmp_path, env=environment(), check=False
        )
        assert done.returncode == 1  # a gate, as with open ones
    argv = [sys.executable, "-m", "qnnci", "check", "m.onnx"]
    env = environment(PYTHONIOENCODING="ascii")
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert r"\u2717 error dynamic-dim" in done.stdout
    assert done.stderr == ""
