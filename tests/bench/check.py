"""`qnnci check` of a model whose weights must not be read, and how soon small verbs are done."""

from __future__ import annotations

from pathlib import Path

from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed


def measure(folder: Path) -> list[Figure]:
    check = timed(qnnci("check", str(four_gigabytes(folder)), "--fail-on", "never"), folder)
    start = min(timed(qnnci("--help"), folder).seconds for _ in range(5))
    chips = min(timed(qnnci("socs"), folder).seconds for _ in range(5))
    return [
        Figure("check of a 4 GB model, time", f"{check.seconds:.2f} s", "< 2 s", met=check.seconds < 2),
        Figure(
            "check of a 4 GB model, memory with its child", f"{check.tree_mb} MB", "< 300 MB", met=check.tree_mb < 300
        ),
        Figure("qnnci --help", f"{start:.2f} s", "< 0.3 s", met=start < 0.3),
        Figure("qnnci socs", f"{chips:.2f} s", "< 0.3 s", met=chips < 0.3),
    ]


def four_gigabytes(folder: Path) -> Path:
    """A model of 256 MatMuls whose 4 GB of weights are a hole in a sparse file."""
    import onnx

    side, count = 2048, 256
    size = side * side * 4
    graph = onnx.GraphProto(name="large")
    for index in range(count):
        weight = graph.initializer.add(name=f"w{index}", dims=[side, side], data_type=onnx.TensorProto.FLOAT)
        weight.data_location = onnx.TensorProto.EXTERNAL
        for key, value in {"location": "large.data", "offset": index * size, "length": size}.items():
            weight.external_data.add(key=key, value=str(value))
        graph.node.add(op_type="MatMul", name=f"m{index}", input=[f"x{index}", f"w{index}"], output=[f"x{index + 1}"])
    for ports, name in ((graph.input, "x0"), (graph.output, f"x{count}")):
        ports.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, side]))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "large.onnx"))
    with (folder / "large.data").open("wb") as data:
        data.truncate(size * count)
    return folder / "large.onnx"
