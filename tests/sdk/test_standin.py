"""The stand-in SDK against what is known of the real one: layout, flags, names of files, ways to end."""

from __future__ import annotations

import subprocess
import sys
import tarfile

import pytest
from support import graphs

pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")

from sdk import flags
from sdk.make import VERSION, make, make_compilers
from sdk.running import Sdk

OLD, NEW = (2, 25), (2, 50)


def test_the_layout_is_the_real_one(sdk, tmp_path):
    assert sdk.root.parts[-2:] == ("qairt", VERSION)
    assert (sdk.root / "lib/hexagon-v81/unsigned/libQnnHtpV81Skel.so").read_bytes()[:4] == b"\x7fELF"
    assert "version: 2.40.0\nbuild_id: 251030-standin" in (sdk.root / "sdk.yaml").read_text()
    broken = make(tmp_path, fail="lib/hexagon-v81,bin/x86_64-linux-clang/qairt-quantizer")
    assert not (broken / "lib/hexagon-v81").exists()
    assert not (broken / "bin/x86_64-linux-clang/qairt-quantizer").exists()
    with pytest.raises(ValueError, match="-standin"):
        make(tmp_path, "2.40.0.251030")


def test_envsetup_wants_to_be_sourced(sdk):
    script = sdk.root / "bin/envsetup.sh"
    assert subprocess.run([script], check=False, capture_output=True).returncode == 1
    command = f"source {script} && echo $QNN_SDK_ROOT && which qnn-net-run"
    done = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True)
    assert f"{sdk.root}\n{sdk.root}/bin/x86_64-linux-clang/qnn-net-run" in done.stdout


def test_tools_run_with_any_python(sdk, samples, tmp_path):
    """The product runs them with a Python of its own choice, which has none of the stand-in's libraries."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    tool = sdk.root / "bin/x86_64-linux-clang/qnn-onnx-converter"
    argv = [tmp_path / "venv/bin/python", tool, "-i", samples / "cnn.onnx", "-o", tmp_path / "a.cpp"]
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("tool", "version", "arguments", "taken"),
    [
        ("qnn-onnx-converter", OLD, "--act_bitwidth 16 --weights_bitwidth 4", True),
        ("qnn-onnx-converter", NEW, "--target_soc_model SM8750", False),
        ("qnn-onnx-converter", NEW, "--no_simpl", True),  # unique beginnings are taken
        ("qnn-onnx-converter", NEW, "--act_quantizer_", False),  # not unique
        ("qnn-onnx-converter", NEW, "stray", False),
        ("qnn-onnx-converter", NEW, "--bias_bitwidth many", False),
        ("qnn-onnx-converter", NEW, "-p name -opc a.xml", False),
        ("qairt-converter", OLD, "--desired_input_shape image 1,3,8,8 --io_config a.yaml --onnx_batch 1", True),
        ("qairt-converter", OLD, "--source_model_input_shape image 1,3,8,8", False),
        ("qairt-converter", OLD, "--target_backend HTP", False),
        ("qairt-converter", NEW, "-s image 1,3,8,8 --config a.yaml -oss --onnx_override_batch 1", True),
        ("qairt-converter", NEW, "--desired_input_shape image 1,3,8,8 --onnx_no_simplification", True),
        ("qairt-converter", NEW, "--target_backend HTP --target_soc_model SM8750", True),
        ("qairt-converter", NEW, "--preserve_io_datatype image features", True),
        ("qairt-converter", OLD, "--preserve_io_datatype image", False),
        ("qairt-converter", NEW, "--input_list list.txt", False),
        ("qairt-quantizer", OLD, "--float_fallback --algorithms cle --config_file a", True),
        ("qairt-quantizer", OLD, "--enable_float_fallback", False),
        ("qairt-quantizer", NEW, "-f --apply_algorithms cle --ignore_quantization_overrides -c a", True),
        ("qairt-quantizer", NEW, "--float_fallback", True),
    ],
)
def test_flags_by_version(tool, version, arguments, taken, samples, monkeypatch, capsys):
    monkeypatch.chdir(samples)
    source = "--input_dlc" if tool == "qairt-quantizer" else "--input_network"
    parser = flags.parser(tool, version, set())
    try:
        parser.parse_args([source, "cnn.onnx", *arguments.split()])
        code = 0
    except SystemExit as end:
        code = int(str(end.code))
    assert code == (0 if taken else 2), capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "arguments", "refusal"),
    [
        (NEW, "--backend b --binary_file=f --soc_model 69 --htp_socs sm8750", ""),
        (OLD, "--backend b --binary_file f --soc_model 69", "Unused Arguments: --soc_model"),
        (NEW, "--backend b", "Missing required argument: --binary_file"),
        (NEW, "--backend b --binary f", "Unused Arguments: --binary"),  # no abbreviations here
        (NEW, "--backend b -O 3", "Unused Arguments: -O"),
    ],
)
def test_flags_of_native_tools(version, arguments, refusal):
    try:
        flags.native("qnn-context-binary-generator", version, set(), arguments.split())
        said = ""
    except flags.NativeUsageError as error:
        said = str(error)
    assert refusal in said
    assert bool(refusal) == bool(said)


def test_help_lists_what_is_known(sdk, tmp_path):
    for tool, flag in (("qairt-converter", "--target_soc_model"), ("qnn-context-binary-generator", "--htp_socs")):
        assert flag in sdk(tool, "--help", cwd=tmp_path).said
        assert flag not in sdk(tool, "--help", cwd=tmp_path, fail=f"{tool}:forget={flag}").said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--wrong"], 2, "usage: qnn-onnx-converter"),
        (["-i", "none.onnx"], 1, "FileNotFoundError"),
        (
            ["-i", "cnn.onnx", "--input_list", "list.txt", "--float_fallback"],
            1,
            "Encountered Error: Invalid combination: --input_list and --float_fallback cannot be provided at",
        ),
        (
            ["-i", "cnn.onnx", "--input_list", "list.txt", "--act_bw", "8", "--act_bitwidth", "8"],
            1,
            "Invalid combination: --act_bw and --act_bitwidth cannot be provided at the same time.",
        ),
        (["-i", "cnn.onnx", "--act_bw", "8", "--act_bitwidth", "8"], 0, "Skipping quantization"),
        (["-i", "cnn.onnx", "--float_bitwidth", "8"], 1, "Invalid float bitwidth = 8"),
        (["-i", "dynamic.onnx"], 1, "Missing command line inputs for dynamic inputs ['image']"),
        (["-i", "dynamic.onnx", "-d", "image", "1,3,8,8"], 0, "Conversion complete!"),
    ],
)
def test_how_the_converter_ends(arguments, code, said, sdk, samples):
    graphs.cnn(samples / "dynamic.onnx", batch="n")
    ended = sdk("qnn-onnx-converter", *arguments, cwd=samples)
    assert ended.code == code, ended.said
    assert said in ended.said


@pytest.mark.usefixtures("library")
def test_the_converter_writes_where_it_is_told(samples):
    made = samples / "made"
    assert sorted(path.name for path in made.iterdir()) == ["my.net.bin", "my.net.cpp", "my.net_net.json"]
    assert f'QNN_SDK_VERSION "qaisw-v{VERSION}"' in (made / "my.net.cpp").read_text()
    with tarfile.open(made / "my.net.bin") as tar:
        assert all(name.endswith(".raw") for name in tar.getnames())


@pytest.mark.usefixtures("library")
def test_the_library_generator_refuses_another_suffix(sdk, samples):
    (samples / "made/my.net").write_bytes((samples / "made/my.net.cpp").read_bytes())
    ended = sdk("qnn-model-lib-generator", "-c", "made/my.net", "-b", "made/my.net.bin", cwd=samples)
    assert (ended.code, "is not a cpp model file" in ended.said) == (1, True)
    ended = sdk("qnn-model-lib-generator", "-c", "made/my.net.cpp", "-t", "x86_64-linux-clang mips", cwd=samples)
    assert "RuntimeError: Unsupported target(s): mips" in ended.said


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("ndk", "align"), [("29.0.1", 16384), ("26.3.1", 4096)])
def test_pages_of_the_android_library(ndk, align, sdk, samples, tmp_path):
    other = Sdk(sdk.root, make_compilers(tmp_path, ndk=ndk))
    arguments = ("-c", "made/my.net.cpp", "-b", "made/my.net.bin", "-t", "aarch64-android", "-o", tmp_path, "-l", "n")
    assert other("qnn-model-lib-generator", *arguments, cwd=samples).code == 0
    segment = (tmp_path / "aarch64-android/libn.so").read_bytes()[64:120]
    assert int.from_bytes(segment[48:], "little") == align
