"""The compiler's log to root causes. The lines have the form that onnxruntime-qnn 2.7.0 was seen to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qnnci.toolchain.ort_log import compile_findings, last_errors, original, read_log

ORT = "2026-12-01 03:11:36.638 [E:onnxruntime:, qnn_execution_provider.cc:2453 GetCapabilityImpl] "
QNN = "2026-12-01 03:11:32.581 [V:onnxruntime:Default, qnn_backend_manager.cc:519 QnnLogging] "


def refused(*nodes: tuple[str, str]) -> str:
    return f"{ORT}Unsupported nodes in QNN EP: " + "".join(f"{{ name: {name}, type: {kind} }}" for name, kind in nodes)


def untiled(name: str, size: int) -> str:
    said = f"Operator named {name} (0x54f2200000002) not sufficiently tiled to fit in TCM. Requires {size} bytes"
    return f"{QNN}tcm_migration.cc:2394::ERROR:{said}"


def single(name: str, need: int, have: int) -> str:
    said = f'A single op, "{name}" (Op ID: 54f2200000002), requires {need:#x} bytes of TCM'
    return f"{QNN}allocator.cc:327::ERROR:{said}, which is greater than the TCM size of {have:#x}!"


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ([("block/Det", "Det")], [("block/Det", "Det node 'block/Det'")]),
        ([("a", "Det"), ("b", "NonZero")], [("a", "Det node 'a'"), ("b", "NonZero node 'b'")]),
        ([("odd, type: {Det}", "Det")], [("odd, type: {Det}", "Det node 'odd, type: {Det}'")]),
        ([("", "Loop")], [("", "an unnamed Loop node")]),
        ([("conv_token_12", "Conv")], [("conv", "Conv node 'conv'")]),
    ],
)
def test_nodes_that_the_compiler_does_not_take(nodes, told):
    found = compile_findings([refused(*nodes)], {"conv"})
    assert [(each.node, each.message) for each in found] == [
        (node, f"{which} is not supported by the QNN compiler") for node, which in told
    ]
    assert {each.rule for each in found} == {"cpu-fallback"}


@pytest.mark.parametrize(
    ("line", "node", "message"),
    [
        (untiled("norm", 32 << 20), "norm", "norm needs 32.0 MB of VTCM at once"),
        (untiled("a norm", 32 << 20), "a norm", "a norm needs 32.0 MB of VTCM at once"),
        (untiled("norm_nhwc_7", 3 << 20), "norm", "norm needs 3.0 MB of VTCM at once"),
        (untiled("q::*InputSlicePad", 1 << 20), "", "q::*InputSlicePad needs 1.0 MB of VTCM at once"),
        (
            untiled("norm", 5).replace("TCM. Requires 5", "TCM (0x8388608). Requires 0x9437184"),
            "norm",
            "norm needs 9.0 MB of VTCM at once",
        ),
        (single("norm", 36 << 20, 8 << 20), "norm", "norm needs 36.0 MB of VTCM at once, the chip has 8 MB"),
        (single("q::Add", 36 << 20, 2 << 20), "", "q::Add needs 36.0 MB of VTCM at once, the chip has 2 MB"),
    ],
)
def test_an_op_that_needs_more_vtcm_than_there_is(line, node, message):
    [found] = compile_findings([line], {"norm", "a norm"})
    assert (found.rule, found.node, found.message) == ("vtcm-exceeded", node, message)


def test_each_cause_is_told_once_and_in_order():
    lines = [refused(("a", "Det")), "noise", untiled("b", 1 << 20), untiled("b", 2 << 20), refused(("a", "Det"))]
    assert [(each.rule, each.node) for each in compile_findings(lines)] == [
        ("cpu-fallback", "a"),
        ("vtcm-exceeded", "b"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"{QNN}tcm_migration.cc:2205:WARNING:no properties registered for q::layernorm",
        f"{QNN}tcm_migration.cc:1817::ERROR:Inside TCMMigration::run() function: scan_input_graph() call failed",
        f"{ORT}Unsupported nodes in QNN EP: none of ours",
        f"{ORT}Failed to finalize QNN graph.",
    ],
)
def test_other_lines_are_no_cause(line):
    assert compile_findings([line]) == []


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("conv", "conv"),
        ("conv_token_3", "conv"),
        ("conv_nhwc", "conv"),
        ("conv_nchw_2_token_14", "conv"),
        ("conv_1", "conv_1"),  # a node of its own
        ("conv_1_token_3", "conv_1"),
        ("conv_9", "conv"),
        ("other_token_3", "other_token_3"),
        ("", ""),
        ("_7", "_7"),
    ],
)
def test_the_compilers_names_lead_back_to_the_graphs_own(name, node):
    assert original(name, {"conv", "conv_1"}) == node


def test_the_last_distinct_errors_stand_for_an_unknown_failure():
    lines = [f"{ORT}first", f"{QNN}a.cc:1::ERROR:native", f"{QNN}a.cc:1:WARNING:no", f"{ORT}last", f"{ORT}last"]
    assert last_errors(lines) == ["first", "a.cc:1::ERROR:native", "last"]
    assert last_errors(lines, 1) == ["last"]
    assert last_errors(["nothing"]) == []


def test_a_log_is_read_whatever_its_bytes(tmp_path):
    log = tmp_path / "compile.log"
    log.write_bytes(b"\x1b[1;31mred\x1b[m\r\nbroken \xff\n\n\0nul\0\n")
    assert read_log(log) == ["red", "broken \ufffd", "nul", ""]
    assert read_log(tmp_path / "none.log") == []


@given(
    st.lists(
        st.text() | st.text().map(lambda name: refused((name, "Det"))) | st.text().map(lambda name: untiled(name, 1))
    )
)
def test_no_log_does_more_than_say_nothing(lines):
    assert all(each.message for each in compile_findings(lines, {"conv"}))
    assert len(last_errors(lines)) <= 3
