"""`qnnci publish huggingface` as people and workflows run it, against a server that is as the Hub."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hub_server import ASKING, EXCHANGED, IDENTITY, REPO, TOKEN, Hub, serving
from support.command import environment, project, qnnci
from test_shards import entry, manifest

from qnnci.files import sha256
from qnnci.manifest import load, save
from qnnci.ship.hub_changes import upload

SOCS = ("SM8550", "SM8750")


@pytest.fixture
def hub():
    with serving() as made:
        yield made


@pytest.fixture
def built(tmp_path):
    """A build of one graph for two chips, one of them by another job."""
    build(tmp_path)
    return tmp_path


def build(folder: Path, *, license_: str | None = "MIT", passed: bool = True, text: bytes = b"binary") -> None:
    for number, soc in enumerate(SOCS):
        made = entry("enc", soc)
        job = folder / f"build/job-{number}"
        (job / made.binary).parent.mkdir(parents=True, exist_ok=True)
        (job / made.binary).write_bytes(text + soc.encode())
        (job / made.binary).with_suffix(".json").write_text("{}")
        (job / made.context_model).write_bytes(b"onnx")
        made = made.model_copy(update={"sha256": sha256(job / made.binary), "bytes": len(text) + 6})
        save(job / "manifest.json", manifest(made, passed=passed).model_copy(update={"license": license_}))


def publish(hub: Hub, cwd: Path, *args: str, **env: str):
    given = {"HF_ENDPOINT": hub.root, "HF_TOKEN": TOKEN, "HF_HOME": str(cwd / "hf"), **env}
    ended = qnnci("publish", "huggingface", "--repo", REPO, "--manifest", "build", *args, cwd=cwd, **given)
    assert "Traceback" not in ended.said
    assert "SECRET" not in ended.said
    assert "SIGNED" not in ended.said
    return ended


def test_a_build_of_two_jobs(hub, built):
    (built / "LICENSE").write_text("MIT\n")
    output = built / "out"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output), "GITHUB_RUN_ID": "7", "GITHUB_REPOSITORY": "me/it"}
    ended = publish(hub, built, "--add", "LICENSE", GITHUB_SERVER_URL="https://github.com", GITHUB_SHA="abc", **env)
    assert ended.code == 0, ended.said
    assert f"published {hub.root}/{REPO}" in ended.said
    bodies = hub.repo.bodies()
    names = {f"enc/{soc}/enc{end}" for soc in SOCS for end in (".bin", ".json", "_ctx.onnx")}
    assert {*bodies} == {*names, "LICENSE", "README.md", "manifest.json"}
    (built / "manifest.json").write_bytes(bodies["manifest.json"])
    told = load(built / "manifest.json")
    assert [each.binary for each in told.entries] == [f"enc/{soc}/enc.bin" for soc in SOCS]
    assert {row.soc: row.binaries for row in told.devices} == {soc: {"enc": f"enc/{soc}/enc.bin"} for soc in SOCS}
    assert {each.path for each in told.published} == {*names, "LICENSE"}
    card = bodies["README.md"].decode()
    assert "license: mit\n" in card
    assert "[enc.bin](enc/SM8750/enc.bin)" in card
    assert "(https://github.com/me/it/actions/runs/7)" in card
    assert 'createSession(File(folder, "enc_ctx.onnx")' in card
    said = output.read_text()
    for name in ("result", "url", "commit", "pull-request", "assets"):
        assert f"{name}<<" in said
    assert hub.repo.history[-1][2] == "p for SM8550, SM8750"


def test_again_and_after_a_change(hub, built):
    hub.make()
    hub.repo.put("README.md", b"---\nwidget: 1\n---\n# By hand\n")
    assert publish(hub, built).code == 0
    commits = len(hub.repo.history)
    assert "has these very files" in publish(hub, built).said
    assert len(hub.repo.history) == commits
    build(built, text=b"another")
    puts = hub.count("PUT", "/storage/")
    ended = publish(hub, built)
    assert "4 of 7 files are there already" in ended.said
    assert hub.count("PUT", "/storage/") == puts + 2
    card = hub.repo.bodies()["README.md"].decode()
    assert "widget: 1\n" in card
    assert "# By hand\n" in card


def test_archives_alone_and_what_the_project_file_says(hub, built):
    more = {"repo": "org/other", "base_model": "org/base", "tags": ["speech"], "pipeline_tag": "text-to-speech"}
    project(
        built, {"enc": {"source": "e.onnx"}}, [*SOCS], name="p", bundle={"layout": "sherpa-onnx"},
        publish={"huggingface": more},
    )  # fmt: skip
    (built / "bundles").mkdir()
    (built / "bundles/x-SM8550.tar.bz2").write_bytes(b"archive")
    given = {"HF_ENDPOINT": hub.root, "HF_TOKEN": TOKEN, "HF_HOME": str(built / "hf")}
    ended = qnnci("publish", "huggingface", "--no-binaries", "--add", "bundles", "--private", cwd=built, **given)
    assert ended.code == 0, ended.said
    made = hub.repos["org/other"]
    assert made.private
    assert {*made.bodies()} == {"README.md", "manifest.json", "x-SM8550.tar.bz2"}
    card = made.bodies()["README.md"].decode()
    assert "base_model:\n- org/base\n" in card
    assert "library_name: sherpa-onnx\n" in card
    assert "tar xf x-SM8550.tar.bz2" in card
    assert "pipeline_tag: text-to-speech" in card
    assert "addQnn" not in card


@pytest.mark.parametrize(
    ("how", "args", "env", "code", "said"),
    [
        ({"license_": None}, (), {}, 1, "licence-unknown"),
        ({"passed": False}, (), {}, 1, "not-passed"),
        ({}, ("--license", "unheard-of"), {}, 1, "licence-unknown"),
        ({}, ("--revision", "a b"), {}, 2, "not a branch"),
        ({}, ("--revision", "next", "--pr"), {}, 2, "against main alone"),
        ({}, ("--repo", "org"), {}, 2, "not a repo"),
        ({}, ("--add", "none.txt"), {}, 2, "there is no file none.txt"),
        ({}, ("--no-binaries",), {}, 2, "nothing to publish"),
        ({}, (), {"HF_TOKEN": ""}, 2, "needs a token"),
        ({}, (), {"HF_TOKEN": "hf_another"}, 2, "not let this token"),
        ({}, (), {"HF_ENDPOINT": "http://example.com"}, 2, "plain http"),
        ({}, (), {"HF_HUB_OFFLINE": "1"}, 5, "HF_HUB_OFFLINE forbids"),
    ],
)
def test_what_is_refused(hub, tmp_path, how, args, env, code, said):
    build(tmp_path, **how)
    ended = publish(hub, tmp_path, *args, **env)
    assert (ended.code, said in ended.said) == (code, True), ended.said
    assert hub.repos == {}


def test_a_binary_that_was_not_judged_is_not_published(hub, built):
    (built / "build/job-0/enc/SM8550/enc.bin").write_bytes(b"other!SM8550")
    ended = publish(hub, built)
    assert (ended.code, "not the binary that was judged" in ended.said) == (2, True), ended.said
    (built / "build/job-0/enc/SM8550/enc.bin").unlink()
    ended = publish(hub, built)
    assert (ended.code, "is not there" in ended.said) == (2, True), ended.said


def test_the_reason_to_publish_is_in_the_card(hub, tmp_path):
    build(tmp_path, license_=None)
    ended = publish(hub, tmp_path, "--allowed-because", "the owner's letter")
    assert ended.code == 0, ended.said
    assert "published because: the owner's letter" in hub.repo.bodies()["README.md"].decode()


def test_a_workflow_that_is_a_trusted_publisher_needs_no_token(hub, built):
    asked = {"ACTIONS_ID_TOKEN_REQUEST_URL": f"{hub.root}/identity", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": ASKING}
    env = {**asked, "HF_TOKEN": "", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "me/it"}
    ended = publish(hub, built, **env)
    assert (ended.code, "no trusted publisher of org/model" in ended.said) == (2, True), ended.said
    assert "repository = me/it" in ended.said
    hub.publishers = {REPO}
    ended = publish(hub, built, **env)
    assert (ended.code, "not let this token" in ended.said) == (2, True), ended.said
    hub.make()
    ended = publish(hub, built, **env)
    assert ended.code == 0, ended.said
    assert "enc/SM8550/enc.bin" in hub.repo.bodies()
    hub.publishers = set()
    ended = publish(hub, built, ACTIONS_ID_TOKEN_REQUEST_URL=f"{hub.root}/identity")
    assert ended.code == 0, ended.said  # HF_TOKEN goes before
    ended = publish(hub, built, HF_TOKEN="", HF_OIDC_ID_TOKEN=IDENTITY)
    assert (ended.code, EXCHANGED in ended.said) == (2, False), ended.said


def test_a_kill_in_the_middle(hub, tmp_path):
    """Forty files, a server that fails every third time, and a run that is killed: begun again, all is there."""
    build(tmp_path)
    for number in range(40):
        (tmp_path / f"extra-{number}.bin").write_bytes(number.to_bytes(2, "big") * 1000)
    hub.failing = 0.3
    env = environment(HF_ENDPOINT=hub.root, HF_TOKEN=TOKEN, HF_HOME=str(tmp_path / "hf"))
    code = (
        "import sys, types; from qnnci.ship import hub_calls; hub_calls.BACKOFF = hub_calls.LONGEST_WAIT = 0.002\n"
        "import huggingface_hub.utils._http as h; h.time = types.SimpleNamespace(sleep=lambda _: None)\n"
        "from qnnci.cli.main import main; sys.argv = ['qnnci', *sys.argv[1:]]; main()"
    )
    argv = [sys.executable, "-c", code, "publish", "huggingface", "--repo", REPO, "--manifest", "build"]
    argv += ["--add", "extra-*.bin"]
    first = subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 60
    while hub.count("PUT", "/storage/") < 12 and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.kill(first.pid, signal.SIGKILL)
    said = first.communicate()[0].decode()
    for _ in range(20):
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        said += done.stdout + done.stderr
        if done.returncode == 0:
            break
        assert done.returncode == 5, said
    bodies = hub.repo.bodies()
    added = {each.path: each for each in (upload(path.name, path) for path in tmp_path.glob("extra-*.bin"))}
    assert {path: bodies[path] for path in added} == {path: each.file.read_bytes() for path, each in added.items()}
    assert len(bodies) == 40 + 6 + 2
    assert len(json.loads(bodies["manifest.json"])["published"]) == 46
    assert len(hub.repo.history) == 2
    assert "SECRET" not in said
