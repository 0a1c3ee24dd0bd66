"""A model library that is compiled on the device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sdk.make import make, make_compilers
from sdk.running import Sdk
from support import fake_device, graphs, runtime

from qnnci.context.read import inspect

ROOT = "qairt/2.51.0.260929"


@pytest.fixture
def library(built) -> Path:
    """A model library of the CNN for Android, by the stand-in SDK's tools."""
    kit = Sdk(make(built / "tools"), make_compilers(built / "tools"))
    graphs.cnn(built / "net.onnx")
    ended = kit("qnn-onnx-converter", "-i", "net.onnx", "-o", "net.cpp", cwd=built)
    assert ended.code == 0, ended.said
    ended = kit("qnn-model-lib-generator", "-c", "net.cpp", "-b", "net.bin", "-t", "aarch64-android", cwd=built)
    assert ended.code == 0, ended.said
    (built / ROOT / "lib/aarch64-android/libQnnHtpNetRunExtensions.so").write_bytes(runtime.host("2.51.0.260929181845"))
    return built / "lib/aarch64-android/libnet.so"


def test_a_library_becomes_a_binary_for_this_chip(built, phone, library, qnnci):
    def generate(*more: object):
        arguments = ("device", "generate", "adb", library, "-o", "made/net.bin", "--sdk", ROOT)
        return qnnci(*arguments, *more, cwd=built, **fake_device.environment(phone))

    ended = generate()
    assert ended.code == 0, ended.said
    info = inspect(built / "made/net.bin")
    assert (info.soc_id, info.dsp_arch, info.graphs[0].name, info.graphs[0].vtcm_bytes) == (43, 73, "net", 8 << 20)
    assert "wrote made/net.bin\n" in ended.said
    assert (built / "made/net.log").read_text().startswith("qnn-context-binary-generator pid:")
    assert list((phone / "root/data/local/tmp").iterdir()) == []
    ended = generate("--graph-name", "other", "--json")
    assert ended.code == 4, ended.said
    told = json.loads(ended.said[ended.said.index("{\n") : ended.said.rindex("}\n") + 2])
    assert (told["binary"], told["findings"][0]["rule"]) == ("", "graph-name-mismatch")
    ended = generate("--folder", "/data;reboot")
    assert ended.code == 2


def test_no_library(built, phone, qnnci):
    arguments = ("device", "generate", "adb", "absent.so", "-o", "net.bin")
    assert qnnci(*arguments, cwd=built, **fake_device.environment(phone)).code == 2
