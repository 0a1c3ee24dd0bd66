"""An EPContext model is believed only where it points at the very binary that it is verified for."""

from __future__ import annotations

import pytest
from onnx import helper
from support import graphs

from qnnci.context.ep_context import refuse_other_binary
from qnnci.errors import UsageError


def wrapper(path, *nodes):
    made = [
        helper.make_node(
            kind, ["x"], [f"y{index}"], domain="com.microsoft" if kind == "EPContext" else "", **attributes
        )
        for index, (kind, attributes) in enumerate(nodes)
    ]
    return graphs.save(path / "a_ctx.onnx", made, {"x": [1]}, {f"y{index}": [1] for index in range(len(made))})


GOOD = {"embed_mode": 0, "main_context": 1, "ep_cache_context": "a.bin"}


def test_one_that_points_at_the_binary(tmp_path):
    refuse_other_binary(wrapper(tmp_path, ("EPContext", GOOD)), "a.bin")
    second = {"embed_mode": 0, "main_context": 0, "ep_cache_context": ""}  # a further graph of the same binary
    refuse_other_binary(wrapper(tmp_path, ("EPContext", GOOD), ("EPContext", second)), "a.bin")


@pytest.mark.parametrize(
    "nodes",
    [
        [("EPContext", {**GOOD, "ep_cache_context": "b.bin"})],
        [("EPContext", {**GOOD, "ep_cache_context": "../a.bin"})],
        [("EPContext", {**GOOD, "ep_cache_context": b"\xff"})],
        [("EPContext", {**GOOD, "embed_mode": 1})],
        [("EPContext", {"ep_cache_context": "a.bin"})],  # ONNX Runtime's default is to embed
        [("EPContext", {**GOOD, "main_context": 0})],
        [("EPContext", GOOD), ("EPContext", {**GOOD, "ep_cache_context": "b.bin"})],
        [("EPContext", GOOD), ("Relu", {})],
        [("Relu", {})],
    ],
)
def test_one_that_would_run_something_else(tmp_path, nodes):
    with pytest.raises(UsageError) as caught:
        refuse_other_binary(wrapper(tmp_path, *nodes), "a.bin")
    assert caught.value.where.endswith("a_ctx.onnx")
    assert caught.value.hint


def test_one_that_is_no_onnx(tmp_path):
    (tmp_path / "a_ctx.onnx").write_bytes(b"\x08\x08\xff")
    with pytest.raises(UsageError, match="not an EPContext model"):
        refuse_other_binary(tmp_path / "a_ctx.onnx", "a.bin")
