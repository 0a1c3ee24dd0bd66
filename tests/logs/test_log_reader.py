"""Logs to findings. Lines have the tools' form; models, tensors and times are our own."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qnnci.logs import LogReport, Reader, read
from qnnci.logs.clean import LINE
from qnnci.logs.lines import original
from qnnci.logs.reader import _CHUNK

ORT = "2033-03-04 05:06:07.890123456 [E:onnxruntime:, qnn_execution_provider.cc:77 GetCapabilityImpl] "
QNN = "2033-03-04 05:06:07.890123456 [V:onnxruntime:Default, qnn_backend_manager.cc:88 QnnLogging] "
PY = "2033-03-04 05:06:07,890 - 321 - "
CPP = "   123.4ms [ ERROR ] "
NEEDS = "requires {:#x} bytes of TCM, which is greater than the TCM size of {:#x}!"
UNTILED = "not sufficiently tiled to fit in TCM. Requires"
NO_SYMBOLS = "Symbolic shape inference Failed. Exception: odd"


def rules(report: LogReport) -> list[tuple[str, str]]:
    return [(each.severity, each.rule) for each in report.findings]


@pytest.mark.parametrize(
    ("line", "severity", "rule", "said"),
    [
        (
            f'{QNN}tiler.cc:7:ERROR:A single op, "enc/norm" (Op ID: 1f), {NEEDS.format(0x1800000, 0x400000)}',
            "error",
            "vtcm-exceeded",
            "enc/norm needs 24.0 MB of VTCM at once, the chip has 4.0 MB",
        ),
        (
            f"{QNN}tcm.cc:9::ERROR:Operator named a norm (0x54f2) {UNTILED} 9437184 bytes",
            "error",
            "vtcm-exceeded",
            "a norm needs 9.0 MB of VTCM at once",
        ),
        (
            f"{CPP}fa_alloc.cc:1:ERROR:graph requires estimated allocation of 3145728 KB, limit is 2097152 KB",
            "error",
            "graph-too-large",
            "the graph wants 3.00 GB, the limit is 2.00 GB",
        ),
        (f"{CPP} <E> Failed to finalize graph (id: 9) with err 0x3ea", "error", "finalize-failed", "1002 QNN_COMMON"),
        ("KeyError: 'No translation registered for op type onnx_einsum.'", "error", "unsupported-op", "op onnx_einsum"),
        (f"{PY}ERROR - Encountered Error: SOC model SM1234 is not supported.", "error", "soc-unsupported", "SM1234"),
        (f"{CPP}QnnDsp <E> Transport layer setup failed: 14001", "error", "device-create-failed", "QNN_DEVICE_ERROR"),
        (f"{CPP}Something that nobody has seen", "error", "unknown-error", "Something that nobody has seen"),
        ("Failed to whisper.", "error", "unknown-error", "Failed to whisper."),
        (f"{PY}WARNING - {NO_SYMBOLS}", "warning", "symbolic-shape-inference-failed", NO_SYMBOLS),
        (f"{CPP}Invalid key: graph_configs/3/speed", "warning", "config-key-ignored", "graph_configs/3/speed"),
        ("[WARNING] --old_flag is deprecated, use --new_flag option.", "notice", "deprecated-flag", "--old_flag"),
        (f"{QNN}spill_bytes=3145728", "notice", "spill-fill", "3.0 MB spill from VTCM to DDR"),
    ],
)  # fmt: skip
def test_lines_become_findings(line: str, severity: str, rule: str, said: str) -> None:
    [found] = read([line]).findings
    assert (found.severity, found.rule, found.line) == (severity, rule, 1)
    assert said in found.message
    assert found.hint


@pytest.mark.parametrize(
    "line",
    [
        f"{CPP}Device property is not supported",
        f"{CPP}WindowsFileIO couldn't open libcdsprpc.dll",
        f"{QNN} <E> unexpected GraphHtpSettings option 99",
        f"{CPP} <E> DspTransport.openSession qnn_open failed, 0x80000406, prio 7",
        f"{CPP} <E> Supported I/O datatype sets for the configuration: INT4",
        f"{QNN} <W> Arch 69 set by custom config is different from arch associated with SoC 8, will overwrite it to 75",
        f"{QNN}tcm.cc:5:WARNING:no properties registered for q::my_op",
        "Genie:  1.0ms [WARNING]  <W> Failed to load skel, error: 1002",
        f"{PY}WARNING - Unused Input nodes found: []",
        f"{PY}INFO - failed: 0",
        "2033-03-04 05:06:07.1 7-8 app app  E  apps_std_imp.c:3: Error 0x2: apps_std_fopen_fd failed for ./x.so",
        f"{QNN}spill_bytes=0",
        "   0.0ms [  INFO ] QnnDsp <I> QnnGraph_finalize done. status 0x0",
        "warnings.warn(",
        "",
    ],
)
def test_harmless_lines_give_none(line: str) -> None:
    report = read([line])
    assert report.findings == ()
    assert report.outcome == "success"


def test_the_root_cause_comes_first_with_its_fallout_under_it() -> None:
    report = read(
        [
            f"{CPP} <E> Unsupported input/output datatypes requested for the HTP Op 'Cast' in the node '/m/Cast_8'. x",
            f"{CPP} <E> Requested I/O datatype set:",
            f"{CPP} <E> QnnBackend_validateOpConfig failed 3110",
            f"{CPP} <E> Failed to validate op /m/Cast_8 with error 0xc26",
            "Graph Compose failure",
        ],
        exit_code=14,
    )
    [seen] = report.seen
    assert (seen.finding.rule, seen.finding.node) == ("unsupported-dtype-combination", "/m/Cast_8")
    assert [each.kind for each in seen.fallout] == ["op-validation-failed", "op-validation-failed", "compose-failed"]
    assert seen.total.message.endswith("[then 3 more errors with 3110 QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE]")
    assert report.outcome == "failed"


def test_fallout_that_comes_before_its_cause_is_folded_too() -> None:
    report = read(["Graph Compose failure", f"{CPP} <E> [7] has incorrect Value 68, expected >= 73."])
    assert [each.finding.rule for each in report.seen] == ["op-validation-failed"]
    assert [each.kind for each in report.seen[0].fallout] == ["compose-failed"]


def test_fallout_without_a_cause_stands_for_it() -> None:
    report = read([f"{QNN} <E> RouterX86 graph prepare failed 12", "Graph Finalize failure"])
    assert [(each.kind, len(each.fallout)) for each in report.seen] == [("prepare-failed", 1)]
    assert report.causes == ()
    assert report.last_errors() == ["RouterX86 graph prepare failed 12", "Graph Finalize failure"]


def test_the_compilers_own_op_and_the_graphs_node_are_one_cause() -> None:
    size = NEEDS.format(0x2400000, 0x800000)
    first = f'{CPP}s.cc:1:ERROR:A single op, "q::Norm" (Op ID: 1), {size}'
    report = read([first, f'{CPP}QnnDsp <E> "norm_3" generated: R{size[1:]}'])
    [seen] = report.seen
    assert (seen.finding.node, seen.finding.line, len(seen.fallout)) == ("norm_3", 1, 1)


def test_nodes_that_the_compiler_leaves_are_told_one_by_one() -> None:
    line = f"{ORT}Unsupported nodes in QNN EP: {{ name: conv_token_12, type: Conv }}{{ name: , type: Loop }}"
    found = read([line, line], nodes={"conv"}).causes
    assert [(each.rule, each.node, each.message) for each in found] == [
        ("cpu-fallback", "conv", "Conv node 'conv' is not supported by the QNN compiler"),
        ("cpu-fallback", "", "Loop node without a name is not supported by the QNN compiler"),
    ]


def test_an_exception_that_repeats_the_log_is_fallout() -> None:
    said = "Failed to load from EpContext model. Failed to get context binary info."
    trace = ["Traceback (most recent call last):", '  File "run.py", line 1, in <module>', "    load()"]
    exception = (
        f"onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph: [ONNXRuntimeError] : 10 : INVALID_GRAPH : {said}"
    )
    report = read([ORT + said, *trace, exception])
    assert [(each.finding.rule, len(each.fallout)) for each in report.seen] == [("context-load-failed", 1)]


@pytest.mark.parametrize("bar", ["", "| "])
def test_a_traceback_is_one_finding_with_its_last_line(bar: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/sdk/lib/python/convert.py", line 12, in main',
        "    raise ValueError('Failed to do it')",
        f"{CPP}Device property is not supported",
        "    ^^^^^^^",
        "odd.place.OddError: it did not work out",
    ]
    [found] = read([bar + line for line in lines]).findings
    assert (found.rule, found.line) == ("python-exception", 6)
    assert found.message.endswith("odd.place.OddError: it did not work out")


def test_equal_lines_are_one_finding() -> None:
    lines = [f"{ms}.5ms [ ERROR ] QnnDsp <E> Error in verify skel version" for ms in range(5000)]
    [seen] = read(lines).seen
    assert seen.count == 5000
    assert seen.total.message.endswith("[5000 times]")


def test_findings_do_not_grow_without_end() -> None:
    many = [f"KeyError: 'No translation registered for op type onnx_op{number}.'" for number in range(3000)]
    fallout = [f"[ ERROR ] <E> Failed to validate op n{number} with error 0xc26" for number in range(3000)]
    report = read([*many, *fallout])
    assert len(report.seen) == 50
    assert sum(each.count + each.others for each in report.seen) == 3000
    assert sum(each.count + each.others for seen in report.seen for each in seen.fallout) == 3000


@pytest.mark.parametrize(
    ("lines", "exit_code", "outcome", "found"),
    [
        (["quiet"], 0, "success", []),
        (["quiet"], None, "success", []),
        (["quiet"], 3, "failed", [("error", "silent-failure")]),
        (["quiet"], 139, "failed", [("error", "stage-crashed")]),
        (["quiet"], -11, "failed", [("error", "stage-crashed")]),
        ([f"{PY}INFO - INFO_WRITE_SUCCESS:"], 139, "warning", [("warning", "exit-after-success")]),
        (["Completed stage: Completion (2 us)"], 1, "warning", [("warning", "exit-after-success")]),
        (["Completed stage: Completion (2 us)"], 139, "failed", [("error", "stage-crashed")]),
        ([f"{QNN} <E> Unknown config socModel 0"], 0, "failed", [("error", "soc-unknown")]),
        (["[ ERROR ] who knows", f"{PY}INFO - INFO_WRITE_SUCCESS:"], None, "success", [("warning", "unknown-error")]),
        (["[ ERROR ] who knows"], 1, "failed", [("error", "unknown-error")]),
        (["\tREASON : Cannot get shape"], 0, "warning", [("warning", "dynamic-shape")]),
        ([f"{PY}INFO - Processed 0 quantization encodings"], None, "success", [("warning", "encodings-unmatched")]),
        ([f"{PY}INFO - Processed 0 quantization encodings"], 0, "failed", [("error", "encodings-unmatched")]),
    ],
)
def test_outcomes(lines: list[str], exit_code: int | None, outcome: str, found: list[tuple[str, str]]) -> None:
    report = read(lines, exit_code=exit_code)
    assert (report.outcome, rules(report)) == (outcome, found)


def test_success_after_a_failure_is_not_believed() -> None:
    done = "[INFO] Successfully compiled HTP metadata into DLC."
    assert read([done]).findings == ()
    report = read(["net.cc:1:ERROR:couldn't create op: q::Pad.tcm", done])
    assert rules(report) == [("error", "op-create-failed"), ("notice", "misleading-success")]


@pytest.mark.parametrize(("quantized", "severity"), [(True, "error"), (False, "notice")])
def test_a_float_model_where_a_quantized_one_was_asked_for(quantized: bool, severity: str) -> None:  # noqa: FBT001 # a parameter
    report = read([f"{PY}INFO - Skipping quantization, no input_list provided"], exit_code=0, quantized=quantized)
    assert rules(report) == [(severity, "quantization-skipped")]
    assert (report.outcome == "failed") == quantized
    assert report.facts.quantization_skipped


def test_facts() -> None:
    report = read(
        [
            f"{PY}INFO - Processed 12 quantization encodings",
            f"{PY}WARNING - Quantization override for tensor 'enc.w_3' not found in the graph",
            "Following OPs fallback to float: ",
            "  /enc/Softmax_1",
            "  /enc/Erf_2 (Erf)",
            "====== DDR bandwidth summary ======",
            "spill_bytes=4096",
            "fill_bytes=8192",
            "Completed stage: VTCM Allocation (40 us)",
            "Completed stage: VTCM Allocation (2 us)",
        ]
    )
    assert report.facts.to_json() == {
        "encodings": 12,
        "unmatched": ["enc.w_3"],
        "float_ops": ["/enc/Softmax_1", "/enc/Erf_2"],
        "ddr": {"spill_bytes": 4096, "fill_bytes": 8192},
        "stages_us": {"VTCM Allocation": 42},
    }
    assert rules(report)[:2] == [("warning", "encodings-unmatched"), ("warning", "float-fallback")]


@pytest.mark.parametrize(("own", "found"), [(True, []), (False, [("error", "vendor-skel")])])
def test_the_phones_own_skel_is_told_where_the_apps_folder_was_not_looked_in(own, found) -> None:
    head = "2033-03-04 05:06:07.1 7-8 app app  "
    probes = ["/odm/lib/rfsa/adsp", *(["/data/app/x"] if own else [])]
    lines = [
        f"{head}E  apps_std_imp.c:3: Error 0x2: apps_std_fopen_fd failed for {place}/libQnnHtpV75Skel.so (No such file)"
        for place in probes
    ]
    report = read([*lines, f"{head}I  apps_std_imp.c:9: Successfully opened file /vendor/dsp/libQnnHtpV75Skel.so"])
    assert rules(report) == found


def test_the_tool_names_itself() -> None:
    assert read(["qnn-context-binary-generator pid:4711", "x"]).tool == "qnn-context-binary-generator"
    assert read(["qnn-net-run pid:1"], "snpe-net-run").tool == "snpe-net-run"
    crash = ["Segmentation fault"]
    assert rules(read(crash, "qnn-throughput-net-run")) == [("notice", "stage-crashed")]
    assert rules(read(crash, "qnn-net-run")) == [("error", "stage-crashed")]


def test_kinds_of_harmless_lines_are_counted_on_request() -> None:
    lines = [
        "Starting stage: Completion",
        f"{QNN} <W> Initializing HtpProvider",
        *[f"{CPP}Device property is not supported"] * 3,
    ]
    assert read(lines).kinds == {}
    assert read(lines, wanted="all").kinds == {"progress": 1, "benign-warning": 1, "benign-error": 3}


# bytes as they come

ERROR = f"{ORT}Failed to load from EpContext model. It is odd."


@pytest.mark.parametrize(
    "data",
    [
        ERROR.encode(),
        f"\x1b[1;31m{ERROR}\x1b[m\r\n".encode(),
        f"\x1b]0;title\x07[##  ] 40%\r[####] 100%\r{ERROR}\n".encode(),
        f"plain\r\n{ERROR}\r\n".encode("utf-16-le"),
        b"before\n" + f"{ERROR}\r\n".encode("utf-16-le") + b"after\n",
        ERROR.replace("EpContext", "EpCon\0text").encode() + b"\0\0\n",
        b"\xff\xfe\xc3\x28 " + ERROR.encode() + b" \xf0\x9f\n",
        f" 19.1ms [  INFO ] c{ERROR}\nleaning up\n".encode(),
        b"x" * (3 * LINE) + b"\n" + ERROR.encode(),
        ERROR.encode() + b" " + b"x" * (3 * LINE) + b"\n",
        b"x " * 5000 + ERROR.encode() + b"\n",
    ],
    ids=["plain", "ansi", "cr", "utf16", "mixed", "nul", "invalid", "torn", "after-long", "long", "deep"],
)  # fmt: skip
def test_an_error_is_found_whatever_is_around_it(data: bytes) -> None:
    [found] = read(io.BytesIO(data)).findings
    assert found.rule == "context-load-failed"


def whole(data: bytes, *cuts: int) -> str:
    reader = Reader(wanted="all")
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        reader.feed(data[start:end])
    return json.dumps(reader.close(1).to_json())


PIECES = [
    ERROR, f"{QNN}spill_bytes=77", "Traceback (most recent call last):", "  File x", "OddError: no", "\r", "\r\n",
    "Following OPs fallback to float:", "/a/b", "\x1b[31m", "\x1b", "\0", "qnn-net-run pid:3", "E", "\u00e9",
    "Graph Compose failure", f"{QNN} <E> Failed to validate op n with error 0xc26", "y" * 5000,
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.integers(0, 2000), max_size=6), st.booleans())
def test_how_it_is_cut_makes_no_difference(pieces: list[str], cuts: list[int], wide: bool) -> None:  # noqa: FBT001 # drawn
    data = "\n".join(pieces).encode("utf-16-le" if wide else "utf-8")
    assert whole(data, *sorted(min(cut, len(data)) for cut in cuts)) == whole(data)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.integers(-20, 300))
def test_no_bytes_are_too_odd(data: bytes, exit_code: int) -> None:
    report = read(io.BytesIO(data), exit_code=exit_code)
    assert report.outcome in {"success", "warning", "failed"}
    assert all(each.message and each.rule for each in report.findings)
    json.dumps(report.to_json())


def test_chunks_larger_than_the_readers_own_are_cut_up() -> None:
    line = b"Starting stage: X\n"
    data = line * (2 * _CHUNK // len(line)) + ERROR.encode()
    assert whole(data) == whole(data, 1, 7, _CHUNK + 3)
    assert json.loads(whole(data))["findings"][0]["line"] == 2 * _CHUNK // len(line) + 1


def test_a_long_list_of_nodes_is_read_to_the_end_of_the_line() -> None:
    nodes = "".join(f"{{ name: node_number_{number}, type: Erf }}" for number in range(40, 500))
    report = read([f"{ORT}Unsupported nodes in QNN EP: {nodes}"])
    assert sum(1 + each.others for each in report.seen) == 460


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("conv", "conv"), ("conv_token_3", "conv"), ("conv_nhwc", "conv"), ("conv_nchw_2_token_14", "conv"),
        ("conv_1", "conv_1"), ("conv_1_token_3", "conv_1"), ("conv_9", "conv"), ("other_token_3", "other_token_3"),
        ("", ""), ("_7", "_7"),
    ],
)  # fmt: skip
def test_the_compilers_names_lead_back_to_the_graphs_own(name: str, node: str) -> None:
    assert original(name, {"conv", "conv_1"}) == node
