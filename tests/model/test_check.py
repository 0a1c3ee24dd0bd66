"""What is said of graphs without compiling them."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser
from support.harm import harmed

from qnnci.errors import QnnciError, UsageError
from qnnci.model import ops
from qnnci.model.check import check
from qnnci.model.forecast import forecast, in_words
from qnnci.model.graph import describe
from qnnci.project import Input

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def write(folder, text, *, head=HEAD):
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(f"{head} {text}"), str(path))
    return path


def told(path, **inputs):
    found = check(path, inputs=inputs)
    assert all(each.stage == "check" for each in found)
    return [(each.rule, each.message, each.node) for each in found]


def test_a_clean_graph(tmp_path):
    assert told(write(tmp_path, "g (float[1, 8] x) => (float[1, 8] y) { y = Relu(x) }")) == []


def test_silero_without_shapes_names_inputs_and_dims(models):
    assert told(models("silero_vad.onnx")) == [
        ("int64-io", "input sr is int64 and becomes int32", ""),
        ("dynamic-dim", "input input [?, ?]: dimensions 0, 1 are not fixed", ""),
        ("dynamic-dim", "input state [2, ?, 128]: dimension 1 is not fixed", ""),
        (
            "control-flow",
            "If is left in the graph; what it does depends on sr; it may fold once the inputs are fixed",
            "If_0",
        ),
    ]
    flow = check(models("silero_vad.onnx"))[-1]
    assert (flow.severity, flow.hint) == ("warning", "give sr as a constant: `sr: {value: …}` or `--input sr:=…`")


def test_silero_with_shapes_is_left_with_its_if(models):
    inputs = {"input": Input(shape=(1, 576)), "state": Input(shape=(2, 1, 128))}
    found = check(models("silero_vad.onnx"), inputs=inputs)
    assert [(each.rule, each.severity) for each in found] == [
        ("int64-io", "notice"),
        ("control-flow", "error"),
    ]


def test_silero_with_everything_given_is_only_costly(models):
    inputs = {"input": Input(shape=(1, 576)), "state": Input(shape=(2, 1, 128)), "sr": Input(value=16000)}
    found = check(models("silero_vad.onnx"), inputs=inputs)
    assert [each.rule for each in found] == ["costly-op"]
    assert "LSTM" in found[0].message


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("ch_PP-OCRv4_rec_infer.onnx", "0 (p2o.DynamicDimension.0), 2 (?), 3 (p2o.DynamicDimension.1)"),
        ("ch_ppocr_mobile_v2.0_cls_infer.onnx", "0, 2 (?), 3 (?)"),
        ("320n.onnx", "0 (batch), 2 (height), 3 (width)"),
    ],
)
def test_shape_arithmetic_is_no_finding_of_its_own(name, dims, models):
    (only,) = check(models(name))
    assert only.rule == "dynamic-dim"
    assert f"dimensions {dims} are not fixed" in only.message


@pytest.mark.parametrize("kind", ["double", "string", "uint64", "bfloat16", "int8", "int16", "complex64"])
def test_types_that_htp_has_not(kind, tmp_path):
    path = write(tmp_path, f"g ({kind}[2] x) => ({kind}[2] y) {{ y = Identity(x) }}")
    name = {"double": "float64"}.get(kind, kind)
    assert told(path) == [("unsupported-input-type", f"{side} is {name}", "") for side in ("input x", "output y")]


@pytest.mark.parametrize("kind", ["float", "float16", "int32", "uint8", "bool"])
def test_types_that_htp_has(kind, tmp_path):
    assert told(write(tmp_path, f"g ({kind}[2] x) => ({kind}[2] y) {{ y = Identity(x) }}")) == []


def test_fixed_point_may_come_in_through_dequantize(tmp_path):
    text = "g (uint16[2] x) => (float[2] y) <float s = {0.5}, uint16 z = {0}> { y = DequantizeLinear(x, s, z) }"
    head = '<ir_version: 10, opset_import: ["" : 21]>'
    assert told(write(tmp_path, text, head=head)) == []


def test_sequences_are_no_inputs(tmp_path):
    text = "g (seq(float[2]) x) => (float[2] y) <int64 i = {0}> { y = SequenceAt(x, i) }"
    found = told(write(tmp_path, text))
    assert ("unsupported-input-type", "input x is sequence", "") in found
    assert ("unsupported-op", "HTP has no SequenceAt", "y") in found


def test_int64_is_noticed_on_both_sides(tmp_path):
    assert told(write(tmp_path, "g (int64[2] x) => (int64[2] y) { y = Add(x, x) }")) == [
        ("int64-io", "input x is int64 and becomes int32", ""),
        ("int64-io", "output y is int64 and becomes int32", ""),
    ]


def test_ops_are_counted_by_kind(tmp_path):
    text = "g (float[1, 3, 3] x) => (float[1] y) { a = Det(x) b = Det(x) c = Atanh(b) y = Add(a, c) }"
    assert told(write(tmp_path, text)) == [
        ("unsupported-op", "HTP has no Det (2 nodes)", "a"),
        ("unsupported-op", "HTP has no Atanh", "c"),
    ]


def test_an_op_of_unknown_size_is_told_once(tmp_path):
    text = "g (float[4] x, bool[4] c) => (float[n] y) { y = Compress<axis = 0>(x, c) }"
    assert told(write(tmp_path, text)) == [("unsupported-op", "HTP has no Compress", "y")]


def test_an_op_in_a_branch_not_taken_is_not_told(tmp_path):
    text = """g (float[1, 3, 3] x) => (float[n] y) <bool no = {0}> {
        y = If(no) <
            then_branch = t () => (float[1] p) { p = Det(x) },
            else_branch = e () => (float[1] p) <int64[2] a = {1, 2}> { p = ReduceMax<axes = [1, 2], keepdims = 0>(x) }
        > }"""
    assert told(write(tmp_path, text)) == []


def test_a_large_constant_mask_is_not_an_op_of_the_graph(tmp_path):
    text = """g (float[1, 256, 256] x) => (float[1, 256, 256] y) <int64[2] s = {256, 256}> {
        ones = ConstantOfShape(s) mask = Trilu(ones) y = Mul(x, mask) }"""
    assert told(write(tmp_path, text)) == []


@pytest.mark.parametrize("op", ["DynamicQuantizeLinear"])
def test_dynamic_quantization(op, tmp_path):
    text = f"g (float[4] x) => (float[4] y) {{ q, s, z = {op}(x) y = DequantizeLinear(q, s, z) }}"
    assert told(write(tmp_path, text)) == [("dynamic-quantize", f"{op} quantizes at run time", "q")]


def test_costly_ops(tmp_path):
    text = """g (float[1, 1, 4, 4, 4] x) => (float[1, 1, 4, 4, 4] y) <float[1, 1, 1, 1, 1] w = {1}, int64 a = {1}> {
        c = CumSum(x, a) y = Conv(c, w) }"""
    assert told(write(tmp_path, text)) == [
        ("costly-op", "CumSum is slow on HTP: it has no fast kernel", "c"),
        ("costly-op", "Conv over three axes is slow on HTP", "y"),
    ]


SHUFFLE = """g (float[1, 8, 4, 4] x) => (float[1, 2, 8, 8] y)
    <int64[6] a = {1, 2, 2, 2, 4, 4}, int64[4] b = {1, 2, 8, 8}> {
    p = Reshape(x, a) q = Transpose<perm = [0, 1, 4, 2, 5, 3]>(p) LAST }"""


def test_six_axes_between_reshapes_are_fine(tmp_path):
    assert told(write(tmp_path, SHUFFLE.replace("LAST", "y = Reshape(q, b)"))) == []


def test_six_axes_elsewhere_are_not(tmp_path):
    found = told(write(tmp_path, SHUFFLE.replace("LAST", "r = Relu(q) y = Reshape(r, b)")))
    assert found == [
        ("high-rank", "Transpose works on rank 6", "q"),
        ("high-rank", "Relu works on rank 6", "r"),
    ]


def test_six_axes_outside_are_not(tmp_path):
    found = told(write(tmp_path, "g (float[1, 1, 1, 1, 2, 2] x) => (float[1, 4] y) { y = Flatten(x) }"))
    assert found == [("high-rank", "x has rank 6", ""), ("high-rank", "Flatten works on rank 6", "y")]


@pytest.mark.parametrize(
    ("opset", "ir", "want"),
    [
        (10, 5, [("old-opset", "the graph has opset 10", "")]),
        (11, 6, []),
        (22, 10, []),
        (
            23,
            11,
            [("old-opset", "the graph has opset 23", ""), ("new-ir", "the graph has IR version 11", "")],
        ),
    ],
)
def test_versions(opset, ir, want, tmp_path):
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}]>'
    assert told(write(tmp_path, "g (float[2] x) => (float[2] y) { y = Neg(x) }", head=head)) == want


@pytest.mark.parametrize(
    ("value", "is_told"), [(-np.inf, True), (-3.4e38, True), (-65505, True), (-65504, False), (-1e4, False)]
)
@pytest.mark.parametrize("op", ["Add(x, m)", "Where(c, x, m)", "Mul(x, m)"])
def test_masks(value, is_told, op, tmp_path):
    path = write(tmp_path, f"g (float[2] x, bool[2] c) => (float[2] y) <float[2] m = {{0, 0}}> {{ y = {op} }}")
    model = onnx.load(str(path))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([0, value], np.float32), "m"))
    onnx.save(model, str(path))
    found = told(path)
    assert [rule for rule, _, _ in found] == ["infinite-mask"] * is_told
    assert all("the constant m holds" in message and node == "y" for _, message, node in found)


def test_limits_of_clip_are_no_masks(tmp_path):
    path = write(tmp_path, "g (float[2] x) => (float[2] y) <float low = {-3.4e38}> { y = Clip(x, low) }")
    assert told(path) == []


def stretched(folder, *, layers=64, width=4096, opset=17):
    """64 MatMuls of 4096 x 4096: 4 GiB of weights in a sparse file, with shape arithmetic between."""
    nodes, stored, last = [], [], "x"
    for layer in range(layers):
        tensor = TensorProto(
            name=f"w{layer}",
            data_type=TensorProto.FLOAT,
            dims=[width, width],
            data_location=TensorProto.EXTERNAL,
        )
        place = {
            "location": "w.data",
            "offset": str(layer * width * width * 4),
            "length": str(width * width * 4),
        }
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        stored.append(tensor)
        nodes.append(helper.make_node("MatMul", [last, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Shape", [f"m{layer}"], [f"s{layer}"]))
        nodes.append(helper.make_node("Reshape", [f"m{layer}", f"s{layer}"], [f"r{layer}"]))
        last = f"r{layer}"
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in (("x", ["n", width]), (last, ["k", width]))
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path = folder / "large.onnx"
    path.write_bytes(model.SerializeToString())
    with (folder / "w.data").open("wb") as file:
        file.truncate(layers * width * width * 4)
    return path


def test_four_gigabytes_are_not_read(tmp_path):
    path = stretched(tmp_path)
    code = (
        "import sys, pathlib; from qnnci.model.check import check; from qnnci.project import Input;"
        "from qnnci.toolchain.worker import peak_mb;"
        "found = check(pathlib.Path(sys.argv[1]), inputs={'x': Input(shape=(1, 4096))});"
        "print([each.message for each in found]); print(peak_mb())"  # getrusage counts the parent before exec too
    )
    output = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True).stdout
    messages, peak = output.splitlines()
    assert messages == "['1.1 billion parameters are 2.1 GB in fp16']"
    assert int(peak) < 300


def test_weights_missing_leave_the_other_checks(tmp_path):
    path = stretched(tmp_path, layers=2, width=64)
    (tmp_path / "w.data").unlink()
    assert told(path, x=Input(shape=(1, 64))) == [
        ("weights-missing", "the graph keeps weights in 'w.data', which is not beside it", "")
    ]


def test_a_constant_input_is_no_int64_input(tmp_path):
    path = write(tmp_path, "g (float[2] x, int64 n) => (float[2] y) { c = Cast<to = 1>(n) y = Add(x, c) }")
    assert told(path, n=Input(value=3)) == []


def test_an_unknown_input(tmp_path):
    path = write(tmp_path, "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(UsageError, match="no input 'z'"):
        check(path, inputs={"z": Input(shape=(2,))})


def test_hints_of_unsupported_ops_say_what_to_do():
    assert all(len(hint) > 20 for hint in ops.UNSUPPORTED.values())
    assert not ops.UNSUPPORTED.keys() & ops.DYNAMIC_QUANTIZE
    assert not ops.UNSUPPORTED.keys() & ops.COSTLY.keys()


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        (
            "silero_vad_16k_op15.onnx",
            ["input float32[batch, sequence]", "state float32[2, batch, 128]", "sr int64[]"],
            ["output float32[batch, 1]", "stateN float32[AddstateN_dim_0, batch, AddstateN_dim_2]"],
        ),
        (
            "ch_ppocr_mobile_v2.0_cls_infer.onnx",
            ["x float32[?, 3, ?, ?]"],
            ["save_infer_model/scale_0.tmp_1 float32[?, 2]"],
        ),
    ],
)
def test_describe(name, inputs, outputs, models):
    seen = describe(models(name))
    assert [str(port) for port in seen.inputs] == inputs
    assert [str(port) for port in seen.outputs] == outputs


@settings(max_examples=60, deadline=None)
@given(junk=st.binary(max_size=300))
def test_random_bytes(junk, tmp_path_factory):
    path = tmp_path_factory.mktemp("junk") / "junk.onnx"
    path.write_bytes(junk)
    with pytest.raises(UsageError):
        check(path)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_harmed_models_are_errors_or_findings(data, models, tmp_path):
    whole = models("silero_vad_16k_op15.onnx").read_bytes()
    path = tmp_path / "harmed.onnx"
    path.write_bytes(harmed(data, whole))
    with contextlib.suppress(QnnciError):
        found = check(path, inputs={"input": Input(shape=(1, 576)), "state": Input(shape=(2, 1, 128))})
        assert all(each.message for each in found)


def test_a_forecast_of_what_weights_make_in_each_precision(tmp_path):
    made = forecast(stretched(tmp_path))
    floats = 64 * 4096 * 4096
    assert made["parameters"] >= floats
    assert made["bytes"]["float32"] - made["bytes"]["fp16"] == 2 * (made["bytes"]["fp16"] - made["bytes"]["w8"])
    assert 0 <= made["bytes"]["w4"] - floats // 2 < 10_000
    assert "4.3 GB in float32, 2.1 GB in fp16, 1.1 GB in w8, 0.5 GB in w4" in in_words(made)
