"""The reference outputs of an original model: their form, and what is said of another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import graphs

from qnnci.errors import UsageError
from qnnci.model.exported import compare, load_reference, take

ROWS = np.zeros((2, 1, 3, 8, 8), np.float32)
WANT = np.zeros((2, 1, 4, 8, 8), np.float32)


def test_rows_are_samples(tmp_path):
    np.savez(tmp_path / "r.npz", feed_a_b=np.arange(6).reshape(3, 2), want_y=np.arange(3))
    samples = load_reference(tmp_path / "r.npz")
    assert [(feed["a_b"].tolist(), int(want["y"])) for feed, want in samples] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"image": ROWS, "want_features": WANT}, "an array has the name 'image'"),
        ({"feed_image": ROWS}, "there is no want_<output>"),
        ({"feed_image": ROWS, "want_features": WANT[:1]}, "feed_image has 2, want_features has 1"),
        ({"feed_image": ROWS[:0], "want_features": WANT[:0]}, "one or more"),
        ({"feed_image": np.float32(1), "want_features": WANT}, "feed_image has no axis of samples"),
        ({"feed_img": ROWS, "want_features": WANT}, "there is no feed_image, an input of the exported graph"),
        ({"feed_image": ROWS, "feed_x": ROWS, "want_features": WANT}, "the exported graph has no 'x'"),
        ({"feed_image": ROWS, "want_feature": WANT}, "the exported graph has no 'feature'"),
        ({"feed_image": ROWS[:, 0], "want_features": WANT}, "the exported graph does not run on the CPU"),
        ({"feed_image": ROWS.astype(complex), "want_features": WANT}, "feed_image is complex128"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, arrays, said):
    np.savez(tmp_path / "r.npz", **arrays)
    with pytest.raises(UsageError) as caught:
        compare(graphs.cnn(tmp_path / "cnn.onnx"), tmp_path / "r.npz", {})
    assert said in str(caught.value)
    assert "r.npz" in str(caught.value)


def test_figures_are_over_all_samples(tmp_path):
    np.savez(tmp_path / "r.npz", feed_image=ROWS, want_features=WANT)
    samples, outputs, found = compare(graphs.cnn(tmp_path / "cnn.onnx"), tmp_path / "r.npz", {})
    assert (samples, found) == (2, [])
    assert outputs["features"]["max_abs"] == 0


def test_another_shape_has_no_figures(tmp_path):
    np.savez(tmp_path / "r.npz", feed_image=ROWS, want_features=WANT[..., :7])
    _, outputs, [found] = compare(graphs.cnn(tmp_path / "cnn.onnx"), tmp_path / "r.npz", {})
    assert outputs == {}
    assert (found.rule, found.severity) == ("export-parity", "error")
    assert "[1, 4, 8, 8] in the exported graph, [1, 4, 8, 7] in the original" in found.message


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_bring_it_down(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bad") / "r.npz"
    path.write_bytes(data)
    with pytest.raises(UsageError, match="not an archive of numpy arrays"):
        load_reference(path)


def test_weights_that_are_missing_take_the_export_down(tmp_path):
    import onnx

    (tmp_path / "made").mkdir()
    made = graphs.cnn(tmp_path / "made/exported.onnx")
    onnx.save(onnx.load(made), str(made), save_as_external_data=True, location="w", size_threshold=0)
    (tmp_path / "made/w").unlink()
    with pytest.raises(UsageError, match="keeps weights in 'w', which is not beside it"):
        take(made, tmp_path)
    assert not (tmp_path / "exported.onnx").exists()
