"""`qnnci device aihub`: what can be known without AI Hub, and, where its client is installed, a service on loopback."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from support import graphs
from support.command import project, qnnci

from qnnci.device import aihub
from qnnci.errors import MachineError, UsageError

installed = importlib.util.find_spec("qai_hub") is not None
hosted = pytest.mark.skipif(not installed, reason="qai-hub is not installed: its protobuf is older than onnx's")
if installed:
    from aihub_server import TOKEN, Service, serving


@pytest.mark.parametrize(
    ("attributes", "soc"),
    [
        (["os:android", "chipset:qualcomm-snapdragon-8gen3"], "SM8650"),
        (["chipset:qualcomm-snapdragon-8gen2"], "SM8550"),
        (["chipset:qualcomm-qcs8550"], "QCS8550"),
        (["chipset:sm8750"], "SM8750"),
    ],
)
def test_the_chip_by_aihubs_word_for_it(attributes, soc):
    assert aihub.chip(attributes, "phone").name == soc


def test_a_chip_that_is_not_known_is_asked_for():
    with pytest.raises(UsageError, match="other-9000") as error:
        aihub.chip(["chipset:other-9000"], "phone")
    assert "--soc" in str(error.value)
    assert aihub.chip(["chipset:other-9000"], "phone", "SM8650").name == "SM8650"
    with pytest.raises(UsageError, match="nothing"):
        aihub.chip([], "phone")


@pytest.mark.skipif(installed, reason="it is installed")
def test_without_its_client_it_says_what_to_install(tmp_path):
    from test_shards import entry, manifest

    from qnnci.manifest import save

    save(tmp_path / "manifest.json", manifest(entry("g", "SM8650")))
    ended = qnnci("device", "aihub", "Samsung Galaxy S24", "--for", "manifest.json", cwd=tmp_path)
    assert (ended.code, "pip install 'qnnci[aihub]'" in ended.said) == (3, True), ended.said


@hosted
def test_without_a_token_it_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setenv(aihub.INI, str(tmp_path / "client.ini"))
    with pytest.raises(UsageError) as error:
        aihub.client()
    assert "qai-hub configure --api_token" in str(error.value)


@pytest.fixture
def service(tmp_path, monkeypatch):
    with serving(lambda feed: {"y": feed["x"] * 2}) as made:
        ini = tmp_path / "client.ini"
        ini.write_text(f"[api]\napi_token = {TOKEN}\napi_url = {made.root}\nweb_url = {made.root}\n")
        monkeypatch.setenv(aihub.INI, str(ini))
        yield made


@hosted
def test_a_binary_is_profiled_and_run(service, tmp_path, capsys):
    (tmp_path / "g.bin").write_bytes(b"binary")
    hub = aihub.client()
    device = aihub.find(hub, "samsung galaxy s24")
    assert aihub.chip(device.attributes, device.name).name == "SM8650"
    model = aihub.upload(hub, tmp_path / "g.bin", "g")
    assert b"binary" in service.files.values()
    measured = aihub.profile(hub, model, device, "g")
    assert measured.result == aihub.Profile(1500, 64 << 20, {"NPU": 3})
    feeds = [{"x": np.full((1, 3), each, np.float32)} for each in (1, 2)]
    ran = aihub.run(hub, model, device, "g", feeds)
    assert [each["y"].tolist() for each in ran.result] == [[[2, 2, 2]], [[4, 4, 4]]]
    assert TOKEN not in "".join(capsys.readouterr())


@hosted
@pytest.mark.usefixtures("service")
def test_a_device_that_is_not_there():
    with pytest.raises(UsageError, match="no device 'Samsung Galaxy S25'") as error:
        aihub.find(aihub.client(), "Samsung Galaxy S25")
    assert "did you mean 'Samsung Galaxy S24'" in str(error.value)


@hosted
def test_a_job_that_fails_is_told_in_its_own_words(service, tmp_path):
    (tmp_path / "g.bin").write_bytes(b"binary")
    hub = aihub.client()
    device = aihub.find(hub, "QCS8550 (Proxy)")
    service.failure = "Failed to create context from binary: 0x138d"
    ended = aihub.profile(hub, aihub.upload(hub, tmp_path / "g.bin", "g"), device, "g")
    assert (ended.result, "0x138d" in ended.problem) == (None, True)


@hosted
@pytest.mark.parametrize(
    ("status", "kind", "told"), [(401, UsageError, "token"), (400, MachineError, "list its devices")]
)
def test_answers_that_end_it(service, status, kind, told):
    service.status = status
    with pytest.raises((UsageError, MachineError)) as error:
        aihub.find(aihub.client(), "Samsung Galaxy S24")
    assert told in str(error.value)
    assert TOKEN not in str(error.value)
    assert status != 401 or error.type is kind


@hosted
def test_the_verb_on_a_real_binary(service: Service, tmp_path: Path):
    pytest.importorskip("onnxruntime_qnn", reason="no embedded compiler on this Python")
    from qnnci.runtime import load

    graphs.cnn(tmp_path / "g.onnx")
    project(tmp_path, {"g": {"source": "g.onnx"}}, ["SM8650"])
    assert qnnci("build", cwd=tmp_path).code == 0
    with load(tmp_path / "build/g/prepared.onnx") as original:
        service.model = original.run
        env = {aihub.INI: str(tmp_path / "client.ini")}
        argv = ("device", "aihub", "Samsung Galaxy S24", "--for", "build")
        ended = qnnci(*argv, cwd=tmp_path, **env)
        assert ended.code == 0, ended.said
        assert "g: 1.50 ms an inference, peak 64 MB, layers: 3 on NPU" in ended.said
        assert TOKEN not in ended.said
        ended = qnnci(*argv, "--json", cwd=tmp_path, **env)
        told, _ = json.JSONDecoder().raw_decode(ended.said[ended.said.index("{") :])
        assert told["graphs"]["g"]["parity"]["runner"] == "device"
        service.model = lambda feed: {name: -array for name, array in original.run(feed).items()}
        ended = qnnci(*argv, cwd=tmp_path, **env)
        assert (ended.code, "error parity g on SM8650" in ended.said) == (1, True), ended.said
        service.failure = "Out of memory"
        ended = qnnci(*argv, cwd=tmp_path, **env)
        assert (ended.code, "error aihub-failed" in ended.said) == (1, True), ended.said
