"""Feeds that users give, good and bad, and seeded ones."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qnnci.errors import UsageError
from qnnci.model.feeds import Spec, load, seeded

IMAGE = Spec("image", (1, 3), np.dtype(np.float32))
LENGTH = Spec("n:0", (), np.dtype(np.int32))
ROW = np.array([[1, 2, 3]], np.float32)


def packed(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def values(feeds, name="image"):
    return [feed[name].ravel().tolist() for feed in feeds]


LAYOUTS = {
    "one .npz": {"a.npz": packed(image=np.stack([ROW, ROW + 1]))},
    "a .npz each": {"x/1.npz": packed(image=ROW), "x/2.npz": packed(image=ROW + 1)},
    "a folder of .npy": {"x/image.npy": npy(np.stack([ROW, ROW + 1]))},
    "a folder of .raw": {"x/image.raw": np.stack([ROW, ROW + 1]).tobytes()},
    "a folder each": {"x/1/image.npy": npy(ROW), "x/2/image.raw": (ROW + 1).tobytes()},
    "one .npy": {"image.npy": npy(np.stack([ROW, ROW + 1]))},
    "one .raw": {"image.raw": np.stack([ROW, ROW + 1]).tobytes()},
    "doubles": {"a.npz": packed(image=np.stack([ROW, ROW + 1]).astype(np.float64))},
    "integers": {"a.npz": packed(image=np.stack([ROW, ROW + 1]).astype(np.int64))},
    "big-endian": {"a.npz": packed(image=np.stack([ROW, ROW + 1]).astype(">f4"))},
    "more arrays than inputs": {"a.npz": packed(image=np.stack([ROW, ROW + 1]), other=ROW)},
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_is_read(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    feeds = load(tmp_path / next(iter(files)).split("/", maxsplit=1)[0], [IMAGE], count=9)
    assert values(feeds) == [[1, 2, 3], [2, 3, 4]]
    assert {feed["image"].dtype for feed in feeds} == {np.dtype(np.float32)}


def test_no_more_than_asked_for(tmp_path):
    (tmp_path / "a.npz").write_bytes(packed(image=np.stack([ROW] * 5)))
    assert len(load(tmp_path / "a.npz", [IMAGE], count=2)) == 2


@pytest.mark.parametrize("name", ["n:0", "n_0"])
def test_scalars_and_names_that_no_file_can_have(tmp_path, name):
    (tmp_path / "a.npz").write_bytes(packed(image=ROW, **{name: np.int64(7)}))
    [feed] = load(tmp_path / "a.npz", [IMAGE, LENGTH], count=9)
    assert feed["n:0"].shape == ()
    assert feed["n:0"].dtype == np.int32
    assert feed["n:0"] == 7


BAD = {
    "missing name": ({"imag": ROW}, "no array for the input 'image'; there are imag", "did you mean 'imag'?"),
    "no name near": ({"x": ROW}, "no array for the input 'image'; there are x", "name it image"),
    "no arrays": ({}, "no array for the input 'image'; there are none", "name it image"),
    "no samples": ({"image": np.zeros((0, 1, 3), np.float32)}, "no inputs in", "give a .npz file"),
    "wrong shape": ({"image": np.zeros((1, 4), np.float32)}, "image has shape [1, 4], the graph wants [1, 3]", ""),
    "wrong rank": ({"image": np.float32(1)}, "image has shape [], the graph wants [1, 3]", ""),
    "text": ({"image": np.array([["a", "b", "c"]])}, "image is <U1, the graph wants float32", "the graph's dtype"),
    "complex": ({"image": ROW.astype(np.complex64)}, "image is complex64, the graph wants float32", ""),
    "dates": ({"image": ROW.astype("M8[s]")}, "image is datetime64[s], the graph wants float32", ""),
    "records": ({"image": ROW.astype([("a", "f4")])}, "image is [('a', '<f4')], the graph wants float32", ""),
    "objects": ({"image": np.array([[{}, 1, 2]], object)}, "Object arrays cannot be loaded", "give a .npz file"),
}


@pytest.mark.parametrize(("arrays", "said", "hint"), BAD.values(), ids=BAD)
def test_arrays_that_do_not_fit(tmp_path, arrays, said, hint):
    (tmp_path / "a.npz").write_bytes(packed(**arrays))
    with pytest.raises(UsageError) as caught:
        load(tmp_path / "a.npz", [IMAGE], count=9)
    assert said in caught.value.message
    assert hint in caught.value.hint
    assert str(tmp_path / "a.npz") in str(caught.value)


def test_inputs_must_have_as_many_samples(tmp_path):
    (tmp_path / "a.npz").write_bytes(packed(image=np.stack([ROW] * 2), n_0=np.arange(3)))
    with pytest.raises(UsageError, match="number of samples: image has 2, n:0 has 3"):
        load(tmp_path / "a.npz", [IMAGE, LENGTH], count=9)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**62])
def test_integers_do_not_wrap(tmp_path, number):
    (tmp_path / "a.npz").write_bytes(packed(n_0=np.array([1, number])))
    with pytest.raises(UsageError, match=f"{number}.*int32 does not"):
        load(tmp_path / "a.npz", [LENGTH], count=9)


def test_a_raw_file_holds_whole_samples(tmp_path):
    (tmp_path / "image.raw").write_bytes(bytes(13))
    with pytest.raises(UsageError, match=r"image has 13 bytes, one sample of .* float32 has 12"):
        load(tmp_path, [IMAGE], count=9)


WHOLE = packed(image=ROW)
HUGE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3), }"
BROKEN = {
    "empty.npz": b"",
    "words.npz": b"these are no arrays",
    "cut.npz": WHOLE[: len(WHOLE) // 2],
    "rotten.npz": WHOLE[:120] + b"\xff" + WHOLE[121:],
    "array.npz": npy(ROW),
    "pickle.npz": pickle.dumps({"image": 1}),
    "image.npy": pickle.dumps([1, 2, 3]),
    "cut.npy": npy(ROW)[:-1],
    "huge.npy": b"\x93NUMPY\x01\x00v\x00" + HUGE.ljust(117) + b"\n",
}


@pytest.mark.parametrize(("name", "content"), BROKEN.items(), ids=BROKEN)
def test_what_is_no_archive_is_told(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=r"not an archive of numpy arrays|not a numpy array") as caught:
        load(tmp_path / name, [IMAGE], count=9)
    assert "allow_pickle=" not in str(caught.value)
    assert caught.value.where == str(tmp_path / name)


def test_other_files_in_an_archive_are_no_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("image", "hello")
    with pytest.raises(UsageError, match="not an archive of numpy arrays"):
        load(tmp_path / "a.npz", [IMAGE], count=9)


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_nothing_there(tmp_path, place):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError) as caught:
        load(tmp_path / place, [IMAGE], count=9)
    assert "folder of <input>.npy" in caught.value.hint


@given(st.binary(max_size=80) | st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(max_size=3)))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore::UserWarning")  # numpy's, of headers that Python 2 wrote
def test_no_bytes_do_more_than_complain(tmp_path, content):
    if isinstance(content, tuple):
        place, other = content
        content = WHOLE[:place] + other + WHOLE[place + len(other) :]
    (tmp_path / "a.npz").write_bytes(content)
    try:
        feeds = load(tmp_path / "a.npz", [IMAGE], count=9)
    except UsageError as error:
        assert "a.npz" in str(error)  # noqa: PT017 - whether it is raised depends on the bytes
    else:
        assert {feed["image"].shape for feed in feeds} == {(1, 3)}


def test_seeded_feeds_are_sensible_and_the_same_each_time():
    specs = [IMAGE, LENGTH, Spec("half", (9,), np.dtype(np.float16)), Spec("on", (9,), np.dtype(np.bool_))]
    ranges = {"half": (5.0, 6.0), "n:0": (3.0, 4.0)}
    feeds = seeded(specs, ranges, count=20, seed=1)
    for spec in specs:
        made = np.stack([feed[spec.name] for feed in feeds])
        assert made.shape == (20, *spec.shape)
        assert made.dtype == spec.dtype
        low, high = ranges.get(spec.name, (-1 if spec is IMAGE else 0, 1))
        assert low <= made.min() < made.max() <= high
    again, other = seeded(specs, ranges, count=20, seed=1), seeded(specs, ranges, count=20, seed=2)
    assert values(feeds) == values(again) != values(other)
