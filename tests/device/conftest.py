"""A real build, an SDK for it, and a fake phone or board to run it on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import command, device_tool, fake_device, graphs, runtime
from support.command import Ended

from qnnci.cli import main

Verb = Callable[..., Ended]

BUILD = "2.51.0.260929181845"


@pytest.fixture(scope="session")
def _built(tmp_path_factory) -> Path:
    if sys.version_info < (3, 11):
        pytest.skip("the embedded compiler needs Python 3.11")
    folder = tmp_path_factory.mktemp("devices")
    graphs.cnn(folder / "cnn.onnx")
    checks = {"verify": {"samples": 2}}
    command.project(folder, {"cnn": {"source": "cnn.onnx"}}, ["SM8550", "SM8750"], **checks)
    ended = command.qnnci("build", cwd=folder)
    assert ended.code == 0, ended.said
    root = runtime.sdk(folder, version="2.51.0.260929", files=runtime.libraries(BUILD))
    device_tool.write(root / "bin/aarch64-android")
    return folder


@pytest.fixture
def built(_built, tmp_path) -> Path:
    """A folder with build and sdk (qairt/2.51.0.260929), to do anything to."""
    folder = tmp_path / "project"
    shutil.copytree(_built, folder)
    return folder


@pytest.fixture
def phone(tmp_path) -> Path:
    """The folder of a fake phone with an SM8550."""
    fake_device.make(tmp_path / "device")
    return tmp_path / "device"


@pytest.fixture
def qnnci(monkeypatch, capfd) -> Verb:
    """As `support.command.qnnci`, but in this process, which saves its half second of imports each time."""

    def run(*args: object, cwd: Path, **env: str) -> Ended:
        with monkeypatch.context() as patch:
            for name in [each for each in os.environ if each.startswith(("GITHUB_", "QNNCI_INPUT_"))]:
                patch.delenv(name)
            for name, value in {"CI": "1", **env}.items():
                patch.setenv(name, value)
            patch.chdir(cwd)
            patch.setattr(sys, "argv", ["qnnci", *map(str, args)])
            capfd.readouterr()
            code = main._main()
        said = capfd.readouterr()
        return Ended(code, said.out + said.err)

    return run


@pytest.fixture
def on(built, phone, qnnci):
    """Run a verb on the phone: `on("run")`."""

    def verb(name: str, *more: object, address: str = "adb", **env: str):
        sdk = ("--sdk", "qairt/2.51.0.260929")
        arguments = ("device", name, address, *(("--for", "build") if name != "info" else ()), *sdk, *more)
        return qnnci(*arguments, cwd=built, **fake_device.environment(phone), **env)

    return verb
