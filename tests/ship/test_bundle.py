"""`qnnci bundle` on real builds: what goes into each archive, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import qnnci

from qnnci import manifest
from qnnci.context.ep_context import refuse_other_binary
from qnnci.context.info import Quantization
from qnnci.context.read import inspect
from qnnci.ship.sherpa_contract import CONTRACTS, check

SHERPA = ("--layout", "sherpa-onnx", "--family", "sense-voice")


def only(folder: Path, *graphs: str) -> None:
    """Leave these graphs in the manifest, as a build of them would."""
    path = folder / "build/manifest.json"
    whole = manifest.load(path)
    entries = tuple(entry for entry in whole.entries if entry.graph in graphs)
    targets = tuple(target for target in whole.targets if target.graph in graphs)
    manifest.save(path, whole.model_copy(update={"entries": entries, "targets": targets}))


def change(folder: Path, **values: object) -> None:
    """Change the first entry of the manifest."""
    path = folder / "build/manifest.json"
    data = json.loads(path.read_text())
    data["entries"][0].update(values)
    path.write_text(json.dumps(data))


def names(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


def bundles(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "build/bundles").glob("*"))


def test_plain(built):
    ended = qnnci("bundle", "--add", "LICENSE", "--archive", "zip", cwd=built)
    assert ended.code == 0, ended.said
    assert bundles(built) == ["test-SM8550-fp16-w8a8.zip", "test-SM8750-fp16.zip"]
    with zipfile.ZipFile(built / "build/bundles/test-SM8750-fp16.zip") as zipped:
        for name in zipped.namelist():
            zipped.extract(name, built / "out")
    folder = built / "out/test-SM8750-fp16"
    own = manifest.load(folder / "manifest.json")
    assert [entry.graph for entry in own.entries] == ["good", "renamed", "turned"]
    assert {device.soc for device in own.devices} == {"SM8750"}
    for entry in own.entries:
        assert inspect(folder / entry.binary).soc_id == entry.soc_id
    assert (folder / "LICENSE").read_text() == "licence\n"


def test_onnxruntime(built):
    only(built, "good")
    ended = qnnci("bundle", "--layout", "onnxruntime", "--name", "{project}-{arch}", cwd=built)
    assert ended.code == 0, ended.said
    assert bundles(built) == ["test-v73.tar.bz2", "test-v79.tar.bz2"]
    with tarfile.open(built / "build/bundles/test-v79.tar.bz2") as tar:
        tar.extractall(built / "out", filter="data")
    folder = built / "out/test-v79"
    refuse_other_binary(folder / "good_fp16_SM8750_v79_ctx.onnx", "good_fp16_SM8750_v79.bin")
    page = (folder / "ONNXRUNTIME.md").read_text()
    assert "| input | `x` | FLOAT_32 | [1, 6, 560] |" in page
    assert "libQnnHtpV79Skel.so" in page
    assert "@" not in page


def test_the_page_opens_the_model(built):
    """The Python that it shows, with the chip to emulate; the device has one of its own."""
    only(built, "good")
    assert qnnci("bundle", "--layout", "onnxruntime", cwd=built).code == 0
    with tarfile.open(built / "build/bundles/test-SM8550-fp16-onnxruntime.tar.bz2") as tar:
        tar.extractall(built, filter="data")
    folder = built / "test-SM8550-fp16-onnxruntime"
    code = (folder / "ONNXRUNTIME.md").read_text().split("```python\n")[1].split("```")[0]
    code = code.replace('"burst"}', '"burst", "soc_model": "43"}')
    (folder / "run.py").write_text(f"{code}\nprint([each.name for each in session.get_inputs()])\n")
    done = subprocess.run([sys.executable, "run.py"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['x', 'prompt']"


def test_sherpa_onnx(built):
    only(built, "good")
    name = "sherpa-onnx-qnn-{soc}-binary-5-seconds-sense-voice-zh-en-ja-ko-yue-2024-07-17-int8"
    ended = qnnci("bundle", *SHERPA, "--name", name, "--add", "tokens.txt", cwd=built)
    assert ended.code == 0, ended.said
    top = name.replace("{soc}", "SM8750")
    path = built / f"build/bundles/{top}.tar.bz2"
    assert names(path) == [top, *(f"{top}/{each}" for each in ("info.txt", "model.bin", "tokens.txt"))]
    with tarfile.open(path) as tar:
        assert tar.extractfile(f"{top}/info.txt").read() == b"num_frames=6\n"
    assert len(bundles(built)) == 2


@pytest.mark.parametrize(
    ("graph", "rule", "said"),
    [
        ("renamed", "bundle-io-names", "it has no input x[1,T,560]; it has audio"),
        (
            "turned",
            "bundle-axes",
            "input x is [1, 560, 6], the loader takes [1, T, 560]: the same axes in",
        ),
        ("bytes", "bundle-io-type", "input x is UFIXED_POINT_8"),
    ],
)
def test_what_the_loader_cannot_use_is_refused(built, graph, rule, said):
    only(built, "good", graph)
    ended = qnnci("bundle", *SHERPA, cwd=built)
    assert ended.code == 1
    assert f"error {rule} {graph} on SM8550" in ended.said
    assert said in ended.said
    assert bundles(built) == [f"sherpa-onnx-qnn-{soc}-binary-good.tar.bz2" for soc in ("SM8550", "SM8750")]


def test_the_contract_reads_what_the_binary_says(built):
    good = inspect(built / "build/good/SM8550/good_fp16_SM8550_v73.bin")
    assert check("sense-voice", "model", good) == []
    graph = good.graphs[0]

    def rules(**changed: object) -> set[str]:
        return {each.rule for each in check("sense-voice", "model", replace(good, **changed))}

    def io(**changed: object) -> set[str]:
        x = replace(graph.inputs[0], **changed)
        return rules(graphs=(replace(graph, inputs=(x, *graph.inputs[1:])),))

    assert rules(info_version=2) == {"bundle-info-version"}
    assert rules(graphs=(graph, graph)) == {"bundle-graphs"}
    assert rules(graphs=()) == {"bundle-graphs"}
    assert io() == set()
    assert io(dtype="FLOAT_16") == set()
    assert io(dtype="INT_64") == io(dtype="INT_32") == io(dtype="SFIXED_POINT_16") == {"bundle-io-type"}
    one = Quantization("SCALE_OFFSET", scale=0.1, offset=-3)
    assert io(dtype="UFIXED_POINT_16", quantization=one) == set()
    assert io(dtype="UFIXED_POINT_16", quantization=replace(one, axis=1, scale=None)) == {"bundle-io-type"}
    assert io(dtype="UFIXED_POINT_16") == {"bundle-io-type"}
    assert io(shape=(1, 6, 561)) == io(shape=(6, 560)) == {"bundle-axes"}


def test_letters_are_one_size_in_the_whole_graph(built):
    good = inspect(built / "build/good/SM8550/good_fp16_SM8550_v73.bin")
    tensor = good.graphs[0].inputs[0]

    def decoder(last: int) -> list[str]:
        inputs = tuple(replace(tensor, name=name, shape=(1, 512, 7)) for name in ("encoder_out", "acoustic_embedding"))
        mask = replace(tensor, name="mask", dtype="INT_32", shape=(7,))
        out = replace(tensor, name="decoder_out", shape=(1, 8404, last))
        graph = replace(good.graphs[0], inputs=(*inputs, mask), outputs=(out,))
        return [each.message for each in check("paraformer", "decoder", replace(good, graphs=(graph,)))]

    assert decoder(7) == []
    assert decoder(8) == ["output decoder_out is [1, 8404, 8], the loader takes [1, *, T] with T = 7"]

    def nemotron(width: int) -> set[str]:
        inputs = [replace(tensor, name="x_65_56_NA", shape=(1, width, 128))]
        inputs += [replace(tensor, name="cache_last_channel_len", dtype="INT_32", shape=(1,))]
        graph = replace(good.graphs[0], inputs=tuple(inputs))
        return {each.rule for each in check("nemotron", "encoder", replace(good, graphs=(graph,)))}

    assert nemotron(65) == set()
    assert nemotron(64) == {"bundle-axes"}


def test_every_contract_can_be_read():
    for family, graphs in CONTRACTS.items():
        for sides in graphs.values():
            assert all(side.strip() for side in sides), family


def test_failed_binaries_stay_out(built):
    only(built, "good")
    change(built, passed=False)
    ended = qnnci("bundle", cwd=built)
    assert ended.code == 1
    assert "error bundle-failed good on SM8550" in ended.said
    assert bundles(built) == ["test-SM8750-fp16.tar.bz2"]
    assert qnnci("bundle", "--include-failed", cwd=built).code == 0
    assert len(bundles(built)) == 2


def test_a_graph_that_was_not_built(built):
    path = built / "build/manifest.json"
    data = json.loads(path.read_text())
    data["entries"] = data["entries"][1:]
    path.write_text(json.dumps(data))
    ended = qnnci("bundle", cwd=built)
    assert ended.code == 1
    assert "error bundle-incomplete good on SM8550: the build made no binary of it" in ended.said


@pytest.mark.parametrize("harm", ["changed", "short", "gone"])
def test_what_differs_from_its_manifest_is_refused(built, harm):
    only(built, "good")
    path = built / "build/good/SM8550/good_fp16_SM8550_v73.bin"
    data = path.read_bytes()
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if harm == "short" else data[:-1] + bytes([data[-1] ^ 1]))
    ended = qnnci("bundle", cwd=built)
    assert ended.code == 2
    assert "differs from its manifest" in ended.said or harm == "gone"
    assert str(path.relative_to(built)) in ended.said
    assert "Traceback" not in ended.said
    assert [name for name in bundles(built) if "SM8550" in name] == []


@pytest.mark.parametrize(
    "values",
    [
        {"binary": "/etc/passwd"},
        {"binary": "good/\n.bin"},
        {"soc": "../SM8550"},
        {"precision": "$(id)"},
        {"qairt": "v2\n"},
        {"context_model": "/x.onnx"},
    ],
)
def test_a_hostile_manifest(built, values):
    only(built, "good")
    change(built, **values)
    ended = qnnci("bundle", "--layout", "onnxruntime", "--name", "x-{soc}-{precision}-{qairt}", cwd=built)
    assert ended.code in {1, 2}
    assert "Traceback" not in ended.said
    assert not [path for path in built.rglob("*.tar.bz2") if path.parent != built / "build/bundles"]


def test_the_project_file_says_it_all(built):
    only(built, "good")
    data = json.loads((built / "qnn.yaml").read_text())
    data["bundle"] = {
        "layout": "sherpa-onnx",
        "family": "sense-voice",
        "groups": "{kind}d",
        "name": "{soc}-{kind}-{group}",
        "add": ["LICEN*", "tok{kind}.txt"],
        "archive": "tar.zst",
        "info": {"language": "zh"},
    }
    (built / "qnn.yaml").write_text(json.dumps(data))
    (built / "tokgoo.txt").write_text("tokens")
    ended = qnnci("bundle", "--json", cwd=built)
    assert ended.code == 0, ended.said
    archives = json.loads(ended.said)["archives"]
    assert [Path(each["path"]).name for each in archives] == ["SM8550-goo-good.tar.zst", "SM8750-goo-good.tar.zst"]
    assert archives[0]["graphs"] == ["good"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--layout", "sherpa-onnx"], "needs the family"),
        (["--name", "same"], "two archives would be called same"),
        (["--name", "../{soc}"], "cannot be called"),
        (["--add", "nothing"], "nothing is 'nothing'"),
        (["--add", "../*"], "leads out"),
        (["nowhere"], "cannot read nowhere"),
    ],
)
def test_complaints(built, arguments, said):
    ended = qnnci("bundle", *arguments, cwd=built)
    assert ended.code == 2
    assert said in ended.said
    assert "Traceback" not in ended.said


def test_another_projects_file(built):
    (built / "qnn.yaml").write_text((built / "qnn.yaml").read_text().replace('"test"', '"other"'))
    ended = qnnci("bundle", cwd=built)
    assert ended.code == 2
    assert "of the project other" in ended.said


def test_outputs_on_github(built):
    only(built, "good")
    out = built / "outputs"
    ended = qnnci("bundle", cwd=built, GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(out), GITHUB_WORKSPACE=str(built))
    assert ended.code == 0, ended.said
    told = out.read_text()
    archives = json.loads(next(line for line in told.splitlines() if line.startswith("[")))
    assert [each["soc"] for each in archives] == ["SM8550", "SM8750"]
    assert archives[0]["path"] == "build/bundles/test-SM8550-fp16.tar.bz2"
    assert archives[0]["bytes"] == (built / archives[0]["path"]).stat().st_size
    assert "build/bundles" in told.splitlines()
