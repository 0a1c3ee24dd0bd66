"""A repo on the Hub against a server that behaves, and fails, as the Hub does."""

from __future__ import annotations

import contextlib
import json
import types
from pathlib import Path

import pytest
from hub_server import REPO, TOKEN, Blob, Hub, serving
from hypothesis import given, settings
from hypothesis import strategies as st
from test_shards import manifest

from qnnci.errors import MachineError, UsageError
from qnnci.manifest import PublishedFile, save
from qnnci.ship import hub_changes
from qnnci.ship.hub_changes import Remote, Upload, changes, distinct, earlier, upload
from qnnci.ship.hub_publish import Settings, publish
from qnnci.ship.hub_repo import connect, without_xet


@pytest.fixture
def hub(monkeypatch):
    with serving() as made:
        monkeypatch.setenv("HF_ENDPOINT", made.root)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        for name in ("HF_OIDC_RESOURCE", "ACTIONS_ID_TOKEN_REQUEST_URL", "HF_HUB_DISABLE_XET"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
        # What the library waits between its own tries.
        monkeypatch.setattr("huggingface_hub.utils._http.time", types.SimpleNamespace(sleep=lambda _: None))
        yield made


@pytest.fixture
def files(tmp_path):
    for number in range(6):
        (tmp_path / f"model-{number}.bin").write_bytes(bytes([number]) * (1000 + number))
        (tmp_path / f"model-{number}.json").write_text(json.dumps({"number": number}))
    return tmp_path


def wanted(folder: Path) -> list[Upload]:
    """The files of a folder, and the manifest that tells of them."""
    every = [upload(f"g/{path.name}", path) for path in sorted(folder.glob("*.*")) if path.name != "manifest.json"]
    told = manifest(published=tuple(each.record for each in every))
    save(folder / "manifest.json", told)
    return [*every, upload("manifest.json", folder / "manifest.json")]


def send(_: Hub, folder: Path, **more):
    said: list[str] = []
    about = Settings(REPO, "Publish it", sleep=lambda _: None, **more)
    made = publish(about, wanted(folder), lambda old: old or "# Card\n", said.append)
    return made, said


def bodies(folder: Path) -> dict[str, bytes]:
    found = {f"g/{path.name}": path.read_bytes() for path in folder.glob("*.*") if path.name != "manifest.json"}
    return {**found, "manifest.json": (folder / "manifest.json").read_bytes(), "README.md": b"# Card\n"}


# the whole


def test_a_repo_from_nothing_by_one_commit(hub, files):
    """Large files go to the storage that the Hub names, which refuses a token."""
    made, said = send(hub, files)
    assert hub.repo.bodies() == bodies(files)
    assert [message for _, _, message in hub.repo.history] == ["initial commit", "Publish it"]
    assert (made.url, made.commit, made.pull_request) == (f"{hub.root}/{REPO}", hub.repo.refs["main"], "")
    assert f"made {hub.root}/{REPO}" in said
    large = {path for path, blob in hub.repo.at("main").items() if blob.lfs}
    assert large == {f"g/model-{number}.bin" for number in range(6)}


def test_again_there_is_nothing_to_do(hub, files):
    send(hub, files)
    commits, puts = list(hub.repo.history), hub.count("PUT", "")
    made, said = send(hub, files)
    assert hub.repo.history == commits
    assert hub.count("PUT", "") == puts
    assert said == [f"{REPO} has these very files"]
    assert made.commit == hub.repo.refs["main"]


def test_only_what_changed_is_uploaded_and_only_ours_removed(hub, files):
    send(hub, files)
    hub.repo.put("by-hand.bin", b"of a person", lfs=True)
    hub.repo.put("g/model-5.json", b'{"changed": "by a person"}')
    hub.repo.put("g/model-1.json", b"by a person")
    puts = hub.count("PUT", "/storage/")
    (files / "model-0.bin").write_bytes(b"another")
    for name in ("model-4.bin", "model-4.json", "model-5.bin", "model-5.json"):
        (files / name).unlink()
    _, said = send(hub, files)
    assert hub.count("PUT", "/storage/") == puts + 1
    stays = {"by-hand.bin": b"of a person", "g/model-5.json": b'{"changed": "by a person"}'}
    assert hub.repo.bodies() == {**bodies(files), **stays}
    assert "replaced, being there but not as an earlier build left it: g/model-1.json" in said
    assert "of an earlier build, but changed since, and left: g/model-5.json" in said
    assert "of an earlier build, removed: g/model-4.bin, g/model-4.json, g/model-5.bin" in said


def test_what_somebody_committed_meanwhile_is_kept(hub, files):
    hub.make()
    hub.before_commit = ["one.txt", "two.txt"]
    _, said = send(hub, files)
    assert said.count("somebody else has changed the repo: looking again") == 2
    assert hub.repo.bodies() == {**bodies(files), "one.txt": b"of a person", "two.txt": b"of a person"}
    assert [message for _, _, message in hub.repo.history][-3:] == ["by hand", "by hand", "Publish it"]


def test_a_repo_that_never_rests_is_told_of(hub, files):
    hub.make()
    hub.before_commit = [f"{number}.txt" for number in range(99)]
    with pytest.raises(MachineError, match="changed all the time"):
        send(hub, files)
    assert "g/model-0.bin" not in hub.repo.bodies()


def test_a_branch_and_a_pull_request(hub, files):
    made, said = send(hub, files, revision="next")
    assert "made the branch next" in said
    assert made.url == f"{hub.root}/{REPO}/tree/next"
    assert hub.repo.bodies() == {}
    assert hub.repo.bodies("next") == bodies(files)
    made, _ = send(hub, files, pull_request=True)
    assert made.pull_request == f"{hub.root}/{REPO}/discussions/1"
    assert hub.repo.bodies() == {}
    assert hub.repo.bodies("refs/pr/1") == bodies(files)


def test_a_pull_request_whose_answer_was_lost_is_found_again(hub, files):
    hub.make()
    hub.repo.requests.append("Publish it")  # an older one of the same title
    hub.repo.refs["refs/pr/1"] = hub.repo.refs["main"]
    hub.lose_commits = 1
    made, said = send(hub, files, pull_request=True)
    assert hub.repo.requests == ["Publish it", "Publish it"]
    assert said[-1] == "it had arrived"
    assert made.pull_request.endswith("/discussions/2")


def test_private_and_public_are_held_to(hub, files):
    send(hub, files, private=True)
    assert hub.repo.private
    with pytest.raises(UsageError, match="is private, and public was asked for"):
        send(hub, files, private=False)
    send(hub, files)


# failures


@pytest.mark.parametrize("way", ["500", "503", "reset", "lost", "half", "limit"])
def test_each_way_to_fail_is_survived(hub, files, way):
    hub.failing, hub.ways, said = 0.2, (way,), ""
    for _ in range(9):  # all tries of one request may fail: a person, or the job, runs it again
        try:
            send(hub, files)
            break
        except MachineError as error:
            said += str(error)
    assert hub.repo.bodies() == bodies(files)


def test_forty_files_survive_everything_at_once(hub, tmp_path):
    for number in range(40):
        (tmp_path / f"model-{number}.bin").write_bytes(number.to_bytes(2, "big") * 2000)
    hub.failing, said = 0.3, ""
    for _ in range(20):
        try:
            send(hub, tmp_path)
            break
        except MachineError as error:
            said += str(error)
    assert hub.repo.bodies() == bodies(tmp_path)
    assert len(hub.repo.history) == 2
    assert "SECRET" not in said
    assert "SIGNED" not in said


def test_a_server_that_never_works_is_a_machines_error(hub, files):
    hub.failing, hub.ways = 1.0, ("503",)
    with pytest.raises(MachineError, match="HTTP 503") as error:
        send(hub, files)
    assert TOKEN not in str(error.value) + repr(error.value)


def test_what_the_hub_asks_to_wait_is_waited(hub, files):
    waits: list[float] = []
    hub.make()
    hub.next = [("/commit/", 429, {"Retry-After": "7"}, b"{}"), ("/revision/", 429, {"Retry-After": "999"}, b"{}")]
    publish(Settings(REPO, "m", sleep=waits.append), wanted(files), lambda old: old or "#\n", lambda _: None)
    assert 7.0 in waits
    assert 120.0 in waits


@pytest.mark.parametrize(
    ("where", "status", "said"),
    [
        ("/api/models/org/model", 401, "may not see it|let this token"),
        ("/commit/", 403, "does not let this token publish"),
        ("/commit/", 400, "refuses"),
        ("/preupload/", 413, "HTTP 413"),
    ],
)
def test_answers_that_end_it(hub, files, where, status, said):
    hub.make()
    hub.next = [(where, status, {}, b'{"error": "no"}')] * 9
    with pytest.raises(UsageError, match=said):
        send(hub, files)


def test_a_gitignore_is_told_of(hub, files):
    hub.make()
    hub.repo.put(".gitignore", b"g/model-1.bin")
    with pytest.raises(UsageError, match=r"did not take 1 of the files: g/model-1\.bin"):
        send(hub, files)


@pytest.mark.usefixtures("hub")
def test_a_card_that_the_hub_does_not_take(files):
    with pytest.raises(UsageError, match='"license" must be one of'):
        publish(
            Settings(REPO, "m", sleep=lambda _: None),
            wanted(files),
            lambda _: "---\nlicense: not-a-licence\n---\n",
            lambda _: None,
        )


def test_a_manifest_of_somebody_else_is_not_overwritten(hub, files):
    hub.make()
    hub.repo.put("manifest.json", b'{"mine": 1}')
    with pytest.raises(UsageError, match="of another kind"):
        send(hub, files)
    hub.repo.put("manifest.json", b'{"entries": [], "published": [{"path": 1}]}')
    send(hub, files)
    assert hub.repo.bodies() == bodies(files)


def test_xet_is_left_to_the_library_where_the_server_has_it(hub, files):
    hub.make()
    hub.next = [("/xet-write-token/", 200, {}, b"{}")]
    assert not without_xet(connect(REPO, lambda _: None), "main")
    assert without_xet(connect(REPO, lambda _: None), "main")
    send(hub, files)
    assert hub.count("POST", "/info/lfs/objects/batch") == 1


def test_a_card_that_cannot_be_read_at_once_is_asked_for_again(hub, files):
    hub.make()
    hub.repo.put("README.md", b"# By hand\n")
    hub.next = [("/resolve/", 500, {}, b"")] * 2
    send(hub, files)
    assert hub.repo.bodies()["README.md"] == b"# By hand\n"


def test_a_card_that_is_not_text(hub, files):
    hub.make()
    hub.repo.put("README.md", b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text"):
        send(hub, files)


@settings(max_examples=15, deadline=None)
@given(st.binary(max_size=40) | st.sampled_from([b"null", b"[]", b"{}", b'{"sha": 1}', b'{"id": "a", "sha": "b"}']))
def test_no_answer_is_believed_or_crashes(answer):
    with serving() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", hub.root)
        patch.setenv("HF_TOKEN", TOKEN)
        patch.setattr("huggingface_hub.utils._http.time", types.SimpleNamespace(sleep=lambda _: None))
        hub.next = [("/", 200, {}, answer)] * 200
        with pytest.raises((MachineError, UsageError)):
            publish(Settings(REPO, "m", sleep=lambda _: None), [], lambda old: old, lambda _: None)


# pure


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_THERE = st.dictionaries(_NAMES, st.tuples(st.sampled_from("123"), st.booleans()))


@given(_THERE, st.dictionaries(_NAMES, st.sampled_from("123")), st.dictionaries(_NAMES, st.sampled_from("123")))
def test_changes_leave_ours_as_wanted_and_others_alone(remotes, files, before):
    there = {path: Remote(f"g{text}", f"s{text}" if lfs else "") for path, (text, lfs) in remotes.items()}
    todo = changes(
        [Upload(path, Path(path), f"s{text}", f"g{text}", 1) for path, text in files.items()],
        there,
        [PublishedFile(path=path, sha256=f"s{text}", git_sha1=f"g{text}") for path, text in before.items()],
    )
    after = {path: text for path, (text, _) in remotes.items() if path not in todo.delete}
    after |= {each.path: files[each.path] for each in todo.add}
    assert {path: after[path] for path in files} == files
    for path, (text, _) in remotes.items():
        if path not in files:
            assert (path in after) == (before.get(path) != text)
            assert (path in todo.left) == (path in before and before[path] != text)
    assert all(remotes.get(each.path, ("", 0))[0] != files[each.path] for each in todo.add)
    theirs = {path for path, (text, _) in remotes.items() if text not in (before.get(path), files.get(path))}
    assert {*todo.over} == theirs & files.keys()


@given(st.text() | st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["entries", "published", "path", "sha256", "git_sha1"]), inner)).map(json.dumps))  # fmt: skip
def test_any_text_may_stand_in_a_manifests_place(text):
    found: tuple[PublishedFile, ...] = ()
    with contextlib.suppress(UsageError):
        found = earlier(text)
    assert all(isinstance(each, PublishedFile) for each in found)


def test_files_that_cannot_be_on_the_hub(tmp_path):
    for name in ("x", "empty"):
        (tmp_path / name).write_bytes(b"1" if name == "x" else b"")
    for path in ("../x", "a//x", ".git/x", "a b", "/x", "x\n", "é"):
        with pytest.raises(UsageError, match="not published under"):
            upload(path, tmp_path / "x")
    with pytest.raises(UsageError, match="empty"):
        upload("empty", tmp_path / "empty")
    (tmp_path / "y").write_bytes(b"2")
    with pytest.raises(UsageError, match="two files are x"):
        distinct([upload("x", tmp_path / "x"), upload("x", tmp_path / "y")])
    with pytest.raises(UsageError, match="not among the files"):
        distinct([upload("README.md", tmp_path / "x")])
    assert len(distinct([upload("x", tmp_path / "x")] * 2)) == 1


def test_git_and_we_agree_on_a_files_name(tmp_path):
    (tmp_path / "x").write_bytes(b"what is up, doc?")
    assert upload("x", tmp_path / "x").git_sha1 == "bd9dbf5aae1a3862dd1526723246b20206e5fc37"
    blob = Blob(b"what is up, doc?", lfs=False).told("x")["oid"]
    assert hub_changes.Remote(blob).is_same(upload("x", tmp_path / "x"))
