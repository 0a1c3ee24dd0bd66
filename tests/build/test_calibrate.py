"""Calibration inputs as part of a build: every form gives the same file, and what is wrong with them is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci.arrays import Feeds
from qnnci.build.cache import load
from qnnci.build.calibrate import unpack
from qnnci.model.calibration import judged, keep
from qnnci.model.feeds import Spec, read
from qnnci.project_file import validate

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

IMAGES = np.random.default_rng(0).uniform(-1, 1, (8, 1, 3, 8, 8)).astype(np.float32)
SPECS = [Spec("image", (1, 3, 8, 8), np.dtype(np.float32)), Spec("n:0", (2,), np.dtype(np.int32))]


def write_list(folder: Path, images=IMAGES, name="image:=") -> Path:
    (folder / "raw").mkdir(parents=True)
    for index, image in enumerate(images):
        image.tofile(folder / f"raw/{index}.raw")
    (folder / "input_list.txt").write_text("".join(f"{name}raw/{index}.raw\n" for index in range(len(images))))
    return folder / "input_list.txt"


def test_all_forms_are_one_file(tmp_path):
    np.savez(tmp_path / "one.npz", image=IMAGES)
    (tmp_path / "many").mkdir()
    for index, image in enumerate(IMAGES):
        np.savez(tmp_path / f"many/{index}.npz", image=image)
    (tmp_path / "rows").mkdir()
    np.save(tmp_path / "rows/image.npy", IMAGES)
    write_list(tmp_path / "list")
    write_list(tmp_path / "unnamed", name="")
    made = set()
    for form in ("one.npz", "many", "rows", "list", "list/input_list.txt", "unnamed"):
        count = keep(read(tmp_path / form, SPECS[:1]), SPECS[:1], tmp_path / "out.npz", most=99, constant=[])
        assert count == len(Feeds(tmp_path / "out.npz")) == 8, form
        made.add((tmp_path / "out.npz").read_bytes())
    assert len(made) == 1
    assert np.array_equal(Feeds(tmp_path / "out.npz")[7]["image"], IMAGES[7])


def test_a_list_of_floats_of_wide_integers_and_of_the_graph_s_own(tmp_path):
    (tmp_path / "a").mkdir()
    IMAGES[0].tofile(tmp_path / "a/i.raw")
    for name, dtype in (("own", np.int32), ("wide", np.int64), ("real", np.float32)):
        np.array([3, 4], dtype).tofile(tmp_path / f"a/{name}.raw")
        (tmp_path / "a/input_list.txt").write_text(f"#out\n\nn:0:=a/{name}.raw image:=a/i.raw\n")
        (feed,) = read(tmp_path / "a", SPECS, base=tmp_path, native=name != "real")
        assert feed["n:0"].tolist() == [3, 4]
        assert feed["n:0"].dtype == np.int32


BAD = {
    "holds NaN or infinity in image": np.where(IMAGES > 0.99, np.nan, IMAGES),
    "image is the same in all 8": np.broadcast_to(IMAGES[0], IMAGES.shape),
    "image is the same in all 1": np.zeros((1, 1, 3, 8, 8), np.float32),
    "image has shape [8, 1, 3, 8, 9], the graph wants [1, 3, 8, 8]": np.zeros((8, 1, 3, 8, 9), np.float32),
    "image is complex64, the graph wants float32": IMAGES.astype(np.complex64),
}


@pytest.mark.parametrize(("said", "images"), BAD.items(), ids=["nan", "constant", "flat", "shape", "type"])
def test_what_is_no_calibration(tmp_path, said, images):
    np.savez(tmp_path / "c.npz", image=images)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its text is what counts
        keep(read(tmp_path / "c.npz", SPECS[:1]), SPECS[:1], tmp_path / "out.npz", most=99, constant=[])
    assert said in str(caught.value)
    assert not (tmp_path / "out.npz").exists()


def test_an_input_may_be_constant_on_purpose(tmp_path):
    samples = [{"image": image, "n:0": np.array([1, 2], np.int32)} for image in IMAGES]
    assert keep(samples, SPECS, tmp_path / "out.npz", most=5, constant=["n:0"]) == 5
    with pytest.raises(Exception, match=r"constant: \[n:0\]"):
        keep(samples, SPECS, tmp_path / "out.npz", most=99, constant=[])
    with pytest.raises(Exception, match=r"`constant` names 'n'"):
        keep(samples, SPECS, tmp_path / "out.npz", most=99, constant=["n"])


def test_few_or_random_samples_are_warned_of():
    assert [each.rule for each in judged(7, drawn=False)] == ["calibration-few"]
    assert [each.rule for each in judged(8, drawn=True)] == ["calibration-random"]
    assert judged(8, drawn=False) == []


def test_what_the_sdk_s_tools_get(tmp_path):
    keep(({"image": image} for image in IMAGES), SPECS[:1], tmp_path / "c.npz", most=9, constant=[])
    for order, kept, turned in (("same", [], False), ("channel-last", [], True), ("channel-last", ["image"], False)):
        room = tmp_path / f"{order}{turned}"
        room.mkdir()
        unpack(room, samples=str(tmp_path / "c.npz"), text="l.txt", order=order, kept=kept)
        lines = (room / "l.txt").read_text().splitlines()
        assert len(lines) == 8
        first = np.fromfile(room / lines[0].removeprefix("image:="), np.float32)
        assert np.array_equal(first, (IMAGES[0].transpose(0, 2, 3, 1) if turned else IMAGES[0]).ravel())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"files": "a", "random": 9}, "give `files`, or `run`"),
        ({}, "give `files`, or `run`"),
        ({"files": "a", "python": "3.11"}, "are of a `run`"),
        ({"run": "python make.py"}, "say with `{output}`"),
    ],
)
def test_settings_that_do_not_go_together(settings, said):
    with pytest.raises(Exception, match=r".*") as caught:
        validate({"name": "t", "socs": ["SM8550"], "graphs": {"g": {"source": "a.onnx", "calibration": settings}}}, "f")
    assert said in str(caught.value)


WRITE = """
import array, random, sys
from pathlib import Path
rng = random.Random(int(Path("seed.txt").read_text()))
values = array.array("f", (rng.uniform(-1, 1) for _ in range(9 * 3 * 8 * 8)))
(Path(sys.argv[1]) / "image.raw").write_bytes(values.tobytes())
"""


def test_a_command_writes_them_and_they_are_what_binaries_are_verified_on(tmp_path):
    graphs.cnn(tmp_path / "cnn.onnx")
    (tmp_path / "make.py").write_text(WRITE)
    (tmp_path / "seed.txt").write_text("1")
    run = {"run": "python make.py {output}", "inputs": ["seed.txt"]}
    project(tmp_path, {"cnn": {"source": "cnn.onnx", "calibration": run}}, ["SM8550"])
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 0, ended.said
    assert "cnn: calibrate done" in ended.said
    feeds = Feeds(tmp_path / "build/cnn/calibration.npz")
    assert len(feeds) == 9
    assert '"inputs": "calibration inputs"' in (tmp_path / "build/manifest.json").read_text()
    assert " done in " not in qnnci("build", cwd=tmp_path).said
    (tmp_path / "build/cnn/calibration.npz").unlink()  # nothing reads it any more
    assert " done in " not in qnnci("build", cwd=tmp_path).said
    (tmp_path / "seed.txt").write_text("2")
    again = qnnci("build", cwd=tmp_path).said
    assert "cnn: calibrate done" in again
    assert "cnn: reference done" in again
    (tmp_path / "make.py").write_text("raise SystemExit('no data here')")
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 4
    assert "error calibration-failed" in ended.said
    assert "no data here" in ended.said


def test_bad_files_are_a_mistake_of_the_project(tmp_path):
    graphs.cnn(tmp_path / "cnn.onnx")
    np.savez(tmp_path / "c.npz", picture=IMAGES)
    project(tmp_path, {"cnn": {"source": "cnn.onnx", "calibration": "c.npz"}}, ["SM8550"])
    ended = qnnci("build", cwd=tmp_path)
    assert ended.code == 2
    assert "no array for the input 'image'; there are picture" in ended.said
    assert load(tmp_path / "build/cnn", "calibrate", "") is None
