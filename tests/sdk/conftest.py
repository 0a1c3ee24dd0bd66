"""One made SDK, and what its tools made of one CNN, for all tests of the stand-in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import graphs

from sdk.make import make, make_compilers
from sdk.running import Sdk


@pytest.fixture(scope="session")
def sdk(tmp_path_factory) -> Sdk:
    folder = tmp_path_factory.mktemp("sdk")
    return Sdk(make(folder), make_compilers(folder))


@pytest.fixture(scope="session")
def samples(tmp_path_factory) -> Path:
    """A folder with a CNN and an input list of raw files, 8 x 8 x 3 each."""
    folder = tmp_path_factory.mktemp("cnn")
    graphs.cnn(folder / "cnn.onnx")
    paths = []
    for at in range(2):
        paths.append(folder / f"{at}.raw")
        np.random.default_rng(at).standard_normal((8, 8, 3), np.float32).tofile(paths[-1])
    (folder / "list.txt").write_text("".join(f"image:={path}\n" for path in paths))
    return folder


@pytest.fixture(scope="session")
def library(sdk, samples) -> Path:
    """The quantized CNN as model libraries."""
    quantized = ("--input_list", "list.txt", "--act_bitwidth", 16, "--bias_bitwidth", 32, "--out_node", "features")
    ended = sdk("qnn-onnx-converter", "-i", "cnn.onnx", "-o", "made/my.net.cpp", *quantized, cwd=samples)
    assert ended.code == 0, ended.said
    assert "Conversion complete!" in ended.said
    ended = sdk("qnn-model-lib-generator", "-c", "made/my.net.cpp", "-b", "made/my.net.bin", cwd=samples)
    assert ended.code == 0, ended.said
    return samples / "lib/x86_64-linux-clang/libmy.net.so"


@pytest.fixture(scope="session")
def dlc(sdk, samples) -> Path:
    ended = sdk("qairt-converter", "-i", "cnn.onnx", "-o", "net.dlc", cwd=samples)
    assert ended.code == 0, ended.said
    assert "INFO_WRITE_SUCCESS" in ended.said
    return samples / "net.dlc"
