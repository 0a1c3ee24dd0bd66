"""`qnnci publish release` against a server that behaves, and fails, as GitHub's does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from release_server import REPO, TOKEN, Hub, serving
from support.command import environment, qnnci
from test_shards import entry, manifest

from qnnci.errors import MachineError, UsageError
from qnnci.manifest import load, save
from qnnci.ship.assets import Asset, Remote, assets, find, remote, spread, work
from qnnci.ship.github_api import Api, Broken
from qnnci.ship.github_release import Settings, publish
from qnnci.ship.licences import judge


@pytest.fixture
def hub():
    with serving() as made:
        yield made


@pytest.fixture
def files(tmp_path):
    for number in range(6):
        (tmp_path / f"model-{number}.bin").write_bytes(bytes([number]) * (1000 + number))
    return tmp_path


def release(hub: Hub, cwd: Path, *args: str, licence: str = "MIT", **env: str):
    given = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": REPO, "GITHUB_API_URL": hub.root, **env}
    return qnnci("publish", "release", "--tag", "v1", "--license", licence, *args, cwd=cwd, **given)


def api(hub: Hub) -> Api:
    return Api(hub.root, REPO, TOKEN, sleep=lambda _: None)


def wanted(folder: Path) -> list[Asset]:
    return assets(sorted(folder.glob("*.bin")))


ABOUT = Settings("v1", "v1", "what it is")


# the whole


def test_a_release_from_nothing(hub, files):
    ended = release(hub, files, "*.bin", "--name", "First")
    assert ended.code == 0, ended.said
    made = hub.only("v1")
    assert (made.draft, made.about["name"]) == (False, "First")
    assert hub.names("v1") == sorted(["SHA256SUMS", *(f"model-{number}.bin" for number in range(6))])
    (sums,) = [each.body.decode() for each in made.assets if each.name == "SHA256SUMS"]
    check = subprocess.run(["sha256sum", "--check"], cwd=files, input=sums, text=True, capture_output=True, check=False)
    assert check.returncode == 0, check.stderr
    order = [method for method, path in hub.asked if "assets" not in path and "uploads" not in path]
    assert order[-1] == "PATCH"
    assert "published https://github.com/org/model/releases/tag/v1" in ended.said


def test_again_there_is_nothing_to_do(hub, files):
    assert release(hub, files, "*.bin").code == 0
    before = hub.uploads
    ended = release(hub, files, "*.bin")
    assert ended.code == 0
    assert "published already, with these very files" in ended.said
    assert hub.uploads == before


def test_a_draft_stays_one_where_it_was_asked_for(hub, files):
    assert release(hub, files, "*.bin", "--draft").code == 0
    assert hub.only("v1").draft
    assert release(hub, files, "*.bin").code == 0
    assert not hub.only("v1").draft


def test_a_published_release_is_changed_only_by_wish(hub, files):
    assert release(hub, files, "*.bin").code == 0
    (files / "model-0.bin").write_bytes(b"another")
    ended = release(hub, files, "*.bin")
    assert (ended.code, "say `--update`" in ended.said) == (2, True)
    assert release(hub, files, "*.bin", "--update").code == 0
    bodies = {each.name: each.body for each in hub.only("v1").assets}
    assert bodies["model-0.bin"] == b"another"


def test_what_people_added_by_hand_stays(hub, files):
    assert release(hub, files, "*.bin").code == 0
    hub.put(hub.only("v1"), "by-hand.pdf", b"of a person")
    (files / "model-0.bin").write_bytes(b"another")
    ended = release(hub, files, "*.bin", "--update")
    assert (ended.code, "left as they are, being not of this build: by-hand.pdf" in ended.said) == (0, True), ended.said
    assert "by-hand.pdf" in hub.names("v1")
    assert release(hub, files, "*.bin").code == 0


def test_where_no_digest_is_told_an_earlier_file_is_not_believed(hub, files):
    """GitHub Enterprise before 3.18 tells none: the same size is not the same file."""
    hub.digests = False
    made = hub.release("v1", draft=True)
    hub.put(made, "model-0.bin", (files / "model-0.bin").read_bytes()[::-1].replace(b"\0", b"\1"))
    assert release(hub, files, "*.bin").code == 0
    bodies = {each.name: each.body for each in hub.only("v1").assets}
    assert bodies["model-0.bin"] == (files / "model-0.bin").read_bytes()


def test_an_immutable_release_is_never_touched(hub, files):
    made = hub.release("v1", immutable=True)
    hub.put(made, "old.bin", b"old")
    ended = release(hub, files, "*.bin", "--update")
    assert (ended.code, "immutable" in ended.said) == (2, True)
    assert hub.names("v1") == ["old.bin"]
    assert {method for method, _ in hub.asked} == {"GET"}


def test_what_half_a_run_left_is_kept_replaced_or_removed(hub, files):
    made = hub.release("v1", draft=True)
    hub.put(made, "model-0.bin", (files / "model-0.bin").read_bytes())
    hub.put(made, "model-1.bin", b"half", state="starter")
    hub.put(made, "model-2.bin", (files / "model-2.bin").read_bytes()[::-1] + b"x")
    hub.put(made, "stranger.bin", b"?")
    ended = release(hub, files, "*.bin")
    assert ended.code == 0, ended.said
    assert "1 of 7 files are there already" in ended.said
    assert {each.name: each.body for each in hub.only("v1").assets if each.name != "SHA256SUMS"} == {
        path.name: path.read_bytes() for path in files.glob("*.bin")
    }


def test_a_draft_on_a_later_page_is_found(hub, files):
    made = hub.release("v1", draft=True)
    for number in range(120):
        hub.release(f"older-{number}")
    assert release(hub, files, "*.bin").code == 0
    assert hub.only("v1") is made


# failure


def test_forty_assets_survive_random_failures_and_a_kill(hub, tmp_path):
    for number in range(40):
        (tmp_path / f"part-{number:02}.bin").write_bytes(os.urandom(3000) + bytes([number]))
    hub.failing = 0.3
    env = environment(GITHUB_TOKEN=TOKEN, GITHUB_REPOSITORY=REPO, GITHUB_API_URL=hub.root)
    code = "from qnnci import http; http.BACKOFF = 0.002; http.LONGEST_WAIT = 0.01\n"
    code += "from qnnci.ship import github_api; github_api.BACKOFF = 0.002; github_api.LONGEST_WAIT = 0.01\n"
    code += "import sys; from qnnci.cli.main import main; sys.argv = ['qnnci', *sys.argv[1:]]; main()"
    argv = [sys.executable, "-c", code, "publish", "release", "--tag", "v1", "--license", "mit", "*.bin"]
    first = subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 60
    while hub.uploads < 12 and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    said = first.communicate()[0].decode()
    assert hub.uploads >= 12, said
    assert hub.only("v1").draft
    for _ in range(20):  # five tries of one request may all fail: a person, or the job, runs it again
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        said += done.stdout + done.stderr
        if done.returncode == 0:
            break
        assert done.returncode == 5, said
    made = hub.only("v1")
    assert not made.draft
    bodies = {each.name: each.body for each in made.assets if each.name != "SHA256SUMS"}
    assert bodies == {path.name: path.read_bytes() for path in tmp_path.glob("*.bin")}
    assert len(made.assets) == 41
    assert all(each.state == "uploaded" for each in made.assets)
    assert TOKEN not in said


@pytest.mark.parametrize("way", ["500", "502", "reset", "lost", "half", "limit"])
def test_each_way_to_fail_is_survived(hub, files, way):
    hub.failing, hub.ways = 0.25, (way,)
    publish(api(hub), ABOUT, wanted(files), jobs=2, say=lambda _: None)
    assert hub.names("v1") == [f"model-{number}.bin" for number in range(6)]
    assert len([each for each in hub.releases if each.tag == "v1"]) == 1


def test_a_server_that_never_works_is_a_machines_error(hub, files):
    hub.failing, hub.ways = 1.0, ("502",)
    with pytest.raises(MachineError, match="after 5 tries") as error:
        publish(api(hub), ABOUT, wanted(files), jobs=2, say=lambda _: None)
    assert TOKEN not in str(error.value) + repr(error.value)


def test_a_rate_limit_is_waited_for(hub, files):
    waits: list[float] = []
    soon = str(int(time.time()) + 30)
    secondary = b'{"message": "You have exceeded a secondary rate limit"}'
    hub.next = [
        (403, {"Retry-After": "7"}, b"{}"),
        (429, {}, b"{}"),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": soon}, b"{}"),
        (403, {}, secondary),
    ]
    publish(Api(hub.root, REPO, TOKEN, sleep=waits.append), ABOUT, wanted(files), jobs=1, say=lambda _: None)
    assert 7 in waits
    assert waits.count(60) == 2
    assert any(25 < each < 31 for each in waits)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"{}", "does not take the token"),
        (403, b'{"message": "Resource not accessible by integration"}', "contents: write"),
        (200, b"<html>", "not JSON"),
        (200, b"[]", "no release"),
        (200, b'{"id": "x"}', "no release"),
        (410, b"{}", "HTTP 410"),
    ],
)
def test_answers_that_end_it(hub, files, status, body, said):
    hub.next = [(status, {}, body)]
    ended = release(hub, files, "*.bin")
    assert ended.code in {2, 5}
    assert said in ended.said
    assert "Traceback" not in ended.said


_KEYS = st.sampled_from(["id", "tag_name", "name", "size", "draft", "digest", "state"])
_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60) | _JSON)
def test_no_answer_is_believed_or_crashes(answer):
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    with serving() as hub:
        hub.next = [(200, {}, body)] * 30
        with pytest.raises((MachineError, UsageError)):
            publish(api(hub), ABOUT, [Asset("a", Path(__file__), "0" * 64, 1)], jobs=1, say=lambda _: None)


# names, sizes, licences, token


def test_the_token_is_in_no_output_and_no_repr(hub, files):
    for more in ([], ["--debug"]):
        hub.next = [(418, {}, b"{}")]
        given = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": REPO, "GITHUB_API_URL": hub.root}
        ended = qnnci(*more, "publish", "release", "--tag", "v1", "--license", "MIT", "*.bin", cwd=files, **given)
        assert ended.code == 5
        assert TOKEN not in ended.said
    assert TOKEN not in repr(api(hub))


def test_a_netrc_does_not_take_the_tokens_place(hub, files):
    (files / ".netrc").write_text("default login someone password else\n")
    ended = release(hub, files, "*.bin", HOME=str(files), NETRC=str(files / ".netrc"))
    assert ended.code == 0, ended.said


@pytest.mark.parametrize("host", ["http://127.0.0.2:9", "https://uploads.example.com"])
def test_the_token_goes_to_no_host_but_githubs(hub, files, host):
    hub.uploads_at = host
    ended = release(hub, files, "*.bin")
    assert (ended.code, "the token stays here" in ended.said) == (5, True), ended.said


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.github.com", "https://uploads.github.com/repos/o/r/releases/1/assets"),
        ("https://api.acme.ghe.com", "https://uploads.acme.ghe.com/repos/o/r/releases/1/assets"),
        ("https://git.acme.com/api/v3", "https://git.acme.com/api/uploads/repos/o/r/releases/1/assets"),
    ],
)
def test_github_enterprise_has_its_own_hosts(base, url):
    sent = []

    class Http:
        def request(self, method, url, **_):
            sent.append((method, url))
            raise requests.ConnectionError

    with pytest.raises(Broken):
        Api(base, REPO, TOKEN, http=Http()).upload(url, "a", Path(__file__), 1)
    assert sent == [("POST", url)]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"GITHUB_TOKEN": ""}, "needs a token"),
        ({"GITHUB_TOKEN": "a\nb"}, "no token has"),
        ({"GITHUB_REPOSITORY": "org"}, "not a repository"),
        ({"GITHUB_REPOSITORY": "../x/y"}, "not a repository"),
        ({"GITHUB_API_URL": "http://example.com"}, "plain http"),
    ],
)
def test_what_must_be_given(hub, files, env, said):
    ended = release(hub, files, "*.bin", **env)
    assert (ended.code, said in ended.said) == (2, True), ended.said
    assert hub.uploads == 0


def test_files_that_cannot_be_assets(hub, tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("x.bin", "a/x.bin", "sp ace.bin"):
        (tmp_path / name).write_bytes(b"1")
    (tmp_path / "empty.bin").touch()
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(1 << 31)
    for name, said in (
        ("*.txt", "no file"), ("x.bin a/x.bin", "two files are called x.bin"), ("sp ace.bin", "would rename"),
        ("empty.bin", "empty"), ("large.bin", "2 GiB"),
    ):  # fmt: skip
        names = [name] if "sp" in name else name.split()
        ended = release(hub, tmp_path, *names)
        assert (ended.code, said in ended.said) == (2, True), ended.said
    assert hub.asked == []


def test_files_folders_and_patterns(tmp_path):
    for name in ("d/b", "d/a", "d/e/c", "f.bin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    assert [str(each.relative_to(tmp_path)) for each in find(["*.bin", "d", "d/a"], tmp_path)] == [
        "f.bin",
        "d/a",
        "d/b",
    ]


def test_more_files_than_a_release_takes_go_to_further_ones():
    made = [Asset(f"{number:04}", Path(), "", 1) for number in range(2001)]
    parts = spread(list(reversed(made)), "v1")
    assert {tag: len(part) for tag, part in parts.items()} == {"v1": 998, "v1-2": 998, "v1-3": 5}
    assert [each.name for part in parts.values() for each in part] == [each.name for each in made]


_THERE = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.booleans())


@given(st.lists(_THERE, max_size=6), st.sets(st.sampled_from("abcd")))
@settings(max_examples=60)
def test_work_leaves_exactly_what_is_wanted(remotes, names):
    there = [Remote(number, name, 1, str(digest), whole) for number, (name, digest, whole) in enumerate(remotes)]
    files = [Asset(name, Path(), "1", 1) for name in sorted(names)]
    todo = work(files, there)
    left = [each for each in there if each.id not in todo.delete]
    assert all(each.whole and each.sha256 == "1" for each in left)
    assert sorted([each.name for each in left] + [each.name for each in todo.upload]) == sorted(names)


@given(
    st.dictionaries(st.sampled_from(["id", "name", "size", "digest", "state"]), st.none() | st.integers() | st.text())
)
def test_an_asset_that_makes_no_sense_is_none(data):
    found = remote(data)
    assert found is None or (isinstance(found.id, int) and isinstance(found.bytes, int))


@pytest.mark.parametrize(
    ("licence", "rules"),
    [
        ("MIT", []), ("apache-2.0", []), ("GPL-3.0-or-later", []), ("CC-BY-NC-4.0", ["licence-bound"]),
        ("proprietary", ["licence-unknown"]), ("", ["licence-unknown"]), (None, ["licence-unknown"]),
    ],
)  # fmt: skip
def test_the_models_licence_decides(licence, rules):
    assert [each.rule for each in judge([licence], [])] == rules
    assert judge([licence], [], "the owner wrote so") == []


def test_qualcomms_libraries_go_with_their_licence():
    library, notice = "libQnnHtpV79Skel.so", "Qualcomm_LICENSE.pdf"
    assert [each.rule for each in judge(["MIT"], [library])] == ["licence-qairt"]
    assert judge(["MIT"], [library, notice]) == []


def test_no_licence_no_release(hub, files):
    ended = release(hub, files, "*.bin", licence="unheard-of")
    assert (ended.code, "licence-unknown" in ended.said) == (1, True)
    assert hub.asked == []
    (files / "notes.md").write_text("New.")
    because = ("--notes", "notes.md", "--allowed-because", "it is ours")
    ended = release(hub, files, "*.bin", *because, licence="unheard-of")
    assert ended.code == 0
    assert hub.only("v1").about["body"].startswith("New.")
    assert "it is ours" in hub.only("v1").about["body"]


# a build


def test_a_build_with_its_manifest(hub, tmp_path):
    one = entry("enc", "SM8550", sha256="")
    (tmp_path / "build" / one.binary).parent.mkdir(parents=True)
    (tmp_path / "build" / one.binary).write_bytes(b"binary")
    (made,) = assets([tmp_path / "build" / one.binary])
    one = one.model_copy(update={"sha256": made.sha256, "bytes": made.bytes})
    save(tmp_path / "build/manifest.json", manifest(one))
    output = tmp_path / "out"
    ended = release(hub, tmp_path, "--manifest", "build", GITHUB_ACTIONS="true", GITHUB_OUTPUT=str(output))
    assert ended.code == 0, ended.said
    assert hub.names("v1") == ["SHA256SUMS", "enc.bin", "manifest.json", "sbom.cdx.json"]
    (body,) = [each.body for each in hub.only("v1").assets if each.name == "manifest.json"]
    (tmp_path / "manifest.json").write_bytes(body)
    published = load(tmp_path / "manifest.json")
    assert published.entries[0].binary == "enc.bin"
    assert {tuple(row.binaries.items()) for row in published.devices} == {(("enc", "enc.bin"),)}
    assert "url<<" in output.read_text()
    save(tmp_path / "build/manifest.json", manifest(one, passed=False))
    ended = release(hub, tmp_path, "--manifest", "build")
    assert (ended.code, "not-passed" in ended.said) == (1, True)
