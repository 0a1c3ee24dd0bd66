"""Real binaries out of the stand-in, by both routes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

from qnnci.context.read import inspect
from sdk import binary, carry
from sdk.make import VERSION
from sdk.running import config_for


def test_model_lib_route_to_a_quantized_binary(sdk, library, samples, tmp_path):
    config = sdk.config(tmp_path, config_for(69, "my_net", vtcm_mb=8, O=3))
    ended = sdk.generate(tmp_path, "--model", library, "--output_dir", "out", "--config_file", config)
    assert ended.code == 0, ended.said
    assert "spill_bytes=0" in ended.said
    info = inspect(tmp_path / "out/net.bin")
    graph = info.graphs[0]
    assert (info.soc_id, info.dsp_arch, info.build_id) == (69, 79, f"v{VERSION}")
    assert (graph.name, graph.vtcm_bytes, graph.optimization) == ("my_net", 8 << 20, 3)
    assert [port.dtype for port in (*graph.inputs, *graph.outputs)] == ["UFIXED_POINT_16"] * 2
    assert graph.inputs[0].shape == (1, 8, 8, 3)  # the legacy converter turns it to channel-last

    run = ("--backend", sdk.htp, "--retrieve_context", "out/net.bin", "--input_list", samples / "list.txt")
    ended = sdk("qnn-net-run", *run, cwd=tmp_path)
    assert "Finished Executing Graphs" in ended.said
    emulated = np.fromfile(tmp_path / "output/Result_0/features.raw", np.float32)
    assert np.corrcoef(emulated, reference(samples))[0, 1] > 0.999


def reference(samples: Path) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(samples / "cnn.onnx"), providers=["CPUExecutionProvider"])
    image = np.fromfile(samples / "0.raw", np.float32).reshape(1, 8, 8, 3).transpose(0, 3, 1, 2)
    return session.run(None, {"image": np.ascontiguousarray(image)})[0].ravel()


def test_dlc_route_to_a_float_binary(sdk, dlc, tmp_path):
    config = sdk.config(tmp_path, config_for(43, vtcm_mb=4, O=2))
    model = ("--model", "libQnnModelDlc.so", "--dlc_path", dlc)
    assert sdk.generate(tmp_path, *model, "--config_file", config).code == 0
    info = inspect(tmp_path / "output/net.bin")
    assert (info.soc_id, info.dsp_arch, info.graphs[0].vtcm_bytes, info.graphs[0].optimization) == (43, 73, 4 << 20, 2)
    assert info.graphs[0].inputs[0].dtype == "FLOAT_32"
    assert info.graphs[0].inputs[0].shape == (1, 3, 8, 8)  # this converter keeps the source's order


def test_dlc_route_to_a_quantized_binary(sdk, dlc, samples, tmp_path):
    arguments = ("-i", dlc, "-o", tmp_path / "q.dlc", "-l", "list.txt", "--act_bitwidth", 8)
    ended = sdk("qairt-quantizer", *arguments, cwd=samples)
    assert "Quantization completed successfully" in ended.said
    socs = ("--dlc_path", "q.dlc", "--htp_socs", "sm8550,qcs6490")
    assert sdk.generate(tmp_path, *socs).code == 0
    for name, arch in (("SM8550", 73), ("QCS6490", 68)):
        info = inspect(tmp_path / f"output/net.{name}.bin")
        assert info.dsp_arch == arch
        assert info.graphs[0].outputs[0].dtype == "UFIXED_POINT_8"


def test_encodings_and_float_fallback(sdk, samples, tmp_path):
    encoding = [{"bitwidth": 16, "scale": 0.001, "offset": -32768, "min": -32.768, "max": 32.767}]
    names = dict.fromkeys(("image", "c", "nowhere"), encoding)
    (tmp_path / "enc.json").write_text(json.dumps({"activation_encodings": names, "param_encodings": {}}))
    convert = ("-i", samples / "cnn.onnx", "-o", "net.dlc", "-q", "enc.json")
    assert "Processed 2 quantization encodings" in sdk("qairt-converter", *convert, cwd=tmp_path).said
    ended = sdk("qairt-quantizer", "-i", "net.dlc", "-o", "q.dlc", "-f", "--act_bitwidth", 16, cwd=tmp_path)
    assert "Following OPs fallback to float: relu." in ended.said
    config = sdk.config(tmp_path, config_for(30))  # v68
    assert sdk.generate(tmp_path, "--dlc_path", "q.dlc", "--config_file", config).code == -6
    config = sdk.config(tmp_path, config_for(43))
    assert sdk.generate(tmp_path, "--dlc_path", "q.dlc", "--config_file", config).code == 0
    made = inspect(tmp_path / "output/net.bin").graphs[0]
    assert (made.inputs[0].quantization.scale, made.inputs[0].quantization.offset) == (pytest.approx(0.001), -32768)
    assert made.outputs[0].dtype == "FLOAT_32"


def test_overrides_that_match_nothing(sdk, samples, tmp_path):
    (tmp_path / "enc.json").write_text(json.dumps({"activation_encodings": {}, "param_encodings": {}}))
    arguments = ("-i", samples / "cnn.onnx", "-o", "net.dlc", "--quantization_overrides", "enc.json")
    ended = sdk("qairt-converter", *arguments, cwd=tmp_path)
    assert (ended.code, "Processed 0 quantization encodings" in ended.said) == (0, True)


def test_without_an_input_list_nothing_is_quantized(sdk, dlc, tmp_path):
    ended = sdk("qairt-quantizer", "-i", dlc, "-o", "q.dlc", cwd=tmp_path)
    assert (ended.code, "Skipping quantization, no input_list provided" in ended.said) == (0, True)
    assert not carry.unpacked(tmp_path / "q.dlc").about.quantized


def test_a_soc_without_the_precision_refuses_the_graph(sdk, dlc, tmp_path):
    config = sdk.config(tmp_path, config_for(93))
    ended = sdk.generate(tmp_path, "--dlc_path", dlc, "--config_file", config)
    assert (ended.code, "3110" in ended.said, "Graph Compose failure" in ended.said) == (1, True, True)
    assert not (tmp_path / "output/net.bin").exists()


def test_a_soc_that_does_not_exist(sdk, dlc, tmp_path):
    config = sdk.config(tmp_path, config_for(44))
    ended = sdk.generate(tmp_path, "--dlc_path", dlc, "--config_file", config)
    assert (ended.code, "Device Creation failure" in ended.said) == (9, True)


def test_graph_names(sdk, library, tmp_path):
    config = sdk.config(tmp_path, config_for(43, "my.net", O=3))
    ended = sdk.generate(tmp_path, "--model", library, "--config_file", config)
    assert (ended.code, "unable to find graphName:my_net" in ended.said) == (1, True)
    config = sdk.config(tmp_path, {"graphs": [{"O": 3, "vtcm_mb": 8}], "devices": [{"dsp_arch": "v73"}]})
    assert sdk.generate(tmp_path, "--model", library, "--config_file", config).code == 0
    info = inspect(tmp_path / "output/net.bin")
    assert (info.soc_id, info.graphs[0].optimization, info.graphs[0].vtcm_bytes) == (43, 0, 4 << 20)  # no effect


def test_names_of_binaries(sdk, library, tmp_path):
    ended = sdk.generate(tmp_path, "--model", library, "--binary_file", "net.bin", "--soc_model", 43)
    assert (ended.code, (tmp_path / "output/net.bin.bin").exists()) == (0, True)
    ended = sdk.generate(tmp_path, "--model", str(library).replace("x86_64-linux-clang", "aarch64-android"))
    assert (ended.code, "Graph Compose failure" in ended.said) == (1, True)
    ended = sdk.generate(tmp_path, "--model", library, "--backend", "libQnnHtp.so")
    assert (ended.code, "Unable to load backend" in ended.said) == (9, True)


@pytest.mark.usefixtures("library")
def test_a_library_without_its_weights(sdk, samples, tmp_path):
    arguments = ("-c", samples / "made/my.net.cpp", "-t", "x86_64-linux-clang")
    assert sdk("qnn-model-lib-generator", *arguments, cwd=tmp_path).code == 0
    ended = sdk.generate(tmp_path, "--model", "lib/x86_64-linux-clang/libqnn_model.so")
    assert (ended.code, "Graph Compose failure" in ended.said) == (1, True)


def test_the_utility_reads_a_binary(sdk, library, tmp_path):
    assert sdk.generate(tmp_path, "--model", library, "--soc_model", 57).code == 0
    arguments = ("--context_binary", "output/net.bin", "--json_file", "net.json")
    assert sdk("qnn-context-binary-utility", *arguments, cwd=tmp_path).code == 0
    info = json.loads((tmp_path / "net.json").read_text())["info"]
    assert (info["socModel"], info["contextMetadata"]["info"]["dspArch"]) == (57, 75)


@pytest.mark.parametrize("size", [32, 36, 176, 180])
def test_a_dimension_that_looks_like_the_way_to_the_build_id_stays(tmp_path, size):
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, size, size, 3]) for name in "xy"]
    relu = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:])
    model = onnx.helper.make_model(relu, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    settings = binary.Settings(soc_id=43, vtcm_mb=8, optimization=1, fp16=True)
    info, _ = binary.compile_to(tmp_path / "relu.bin", model, "relu", f"v{VERSION}", settings)
    assert info.build_id == f"v{VERSION}"
    assert [port.shape for port in (*info.graphs[0].inputs, *info.graphs[0].outputs)] == [(1, size, size, 3)] * 2
