from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.file_server import Resource, Site, serving

from qnnci import files, http, hub
from qnnci.errors import ExitCode, MachineError, QnnciError, ToolMissing, UsageError
from qnnci.model import source, wheel
from qnnci.model.source import Source

MODEL = b"\x08\x08" + bytes(range(256)) * 4000
SHA = hashlib.sha256(MODEL).hexdigest()
OTHER = b"\x08\x09another"
COMMIT = "c0ffee00" * 5
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
HTML = b"\xef\xbb\xbf \n<!DOCTYPE html><html><body>Sign in</body></html>"


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., Source]:
    """Fetch with a project folder and a cache of the test's own."""
    (tmp_path / "project").mkdir()

    def fetch(spec: str, sha256: str | None = None) -> Source:
        return source.fetch(spec, sha256=sha256, base=tmp_path / "project", cache=tmp_path / "cache")

    return fetch


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(http, "BACKOFF", 0.001)
    with serving() as running:
        yield running


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every file that is read for its digest, in order."""
    seen: list[Path] = []
    real = files.sha256

    def sha256(path: Path) -> str:
        seen.append(path)
        return real(path)

    monkeypatch.setattr(files, "sha256", sha256)
    return seen


def aged(path: Path) -> Path:
    """A file as if written a minute ago."""
    minute_ago = time.time() - 60
    os.utime(path, (minute_ago, minute_ago))
    return path


# paths


def test_a_path_is_used_where_it_lies(get: Callable[..., Source], tmp_path: Path) -> None:
    path = tmp_path / "project" / "m.onnx"
    path.write_bytes(MODEL)
    assert get("m.onnx", SHA) == Source("m.onnx", path, SHA)
    assert get(str(path), SHA.upper()).path == path


def test_a_path_is_hashed_once_until_it_changes(get: Callable[..., Source], tmp_path: Path, hashed: list[Path]) -> None:
    path = tmp_path / "project" / "m.onnx"
    path.write_bytes(MODEL)
    aged(path)
    assert get("m.onnx").sha256 == get("m.onnx").sha256 == SHA
    assert hashed == [path]
    path.write_bytes(OTHER)
    assert get("m.onnx").sha256 == hashlib.sha256(OTHER).hexdigest()


def test_a_file_just_written_is_not_trusted_to_its_time_stamp(get: Callable[..., Source], tmp_path: Path) -> None:
    path = tmp_path / "project" / "m.onnx"
    path.write_bytes(b"\x08one")
    future = time.time_ns() + 60 * 10**9
    os.utime(path, ns=(future, future))
    first = get("m.onnx").sha256
    path.write_bytes(b"\x08two")
    os.utime(path, ns=(future, future))
    assert get("m.onnx").sha256 != first


def test_a_cache_that_cannot_be_written_does_not_matter_to_a_path(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(MODEL)
    (tmp_path / "cache").write_text("a file where the cache should be")
    aged(tmp_path / "m.onnx")
    assert source.fetch("m.onnx", sha256=None, base=tmp_path, cache=tmp_path / "cache").sha256 == SHA


def test_a_missing_path_names_what_is_like_it(get: Callable[..., Source], tmp_path: Path) -> None:
    for name in ("encoder.onnx", "decoder.onnx", "notes.txt"):
        (tmp_path / "project" / name).write_bytes(MODEL)
    with pytest.raises(UsageError, match=r"there is no file .*encodr\.onnx") as caught:
        get("encodr.onnx")
    assert caught.value.code is ExitCode.USAGE
    assert "encoder.onnx" in caught.value.hint
    assert "notes.txt" not in caught.value.hint
    with pytest.raises(UsageError, match="is not a file") as caught:
        get(".")
    assert caught.value.hint == "there is decoder.onnx, encoder.onnx"
    with pytest.raises(UsageError, match="there is no folder"):
        get("models/encoder.onnx")


def test_neither_pipes_nor_devices_are_read(get: Callable[..., Source], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "project" / "pipe")
    for spec in ("pipe", "/dev/zero"):
        with pytest.raises(UsageError, match="is not a file"):
            get(spec)


@pytest.mark.parametrize("content", [LFS, HTML, b"", b" \n"], ids=["lfs", "page", "empty", "blank"])
def test_what_only_looks_like_a_model_is_refused(get: Callable[..., Source], tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "project" / "m.onnx"
    path.write_bytes(content)
    says = "Git LFS pointer" if content == LFS else "web page" if content == HTML else "is empty"
    with pytest.raises(UsageError, match=says) as caught:
        get("m.onnx", SHA)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_a_wrong_digest_shows_both_and_touches_nothing(get: Callable[..., Source], tmp_path: Path) -> None:
    path = tmp_path / "project" / "m.onnx"
    path.write_bytes(OTHER)
    with pytest.raises(UsageError) as caught:
        get("m.onnx", SHA)
    assert SHA in caught.value.message
    assert hashlib.sha256(OTHER).hexdigest() in caught.value.message
    assert "project file" in caught.value.hint
    assert path.read_bytes() == OTHER


@pytest.mark.parametrize(
    "spec",
    ["file:///tmp/m.onnx", "ftp://h/m", "s3://b/m", "git@github.com:a/b", "git+ssh://git@h/a", "github:a/b", "file:/m"],
)
def test_other_forms_name_the_four(get: Callable[..., Source], spec: str) -> None:
    with pytest.raises(UsageError, match="are not known") as caught:
        get(spec)
    for form in ("a path", "https://", "hf://org/repo/file@revision", "pypi://name==version/path/in/wheel"):
        assert form in caught.value.hint


# the web


def test_a_download_is_cached_and_not_hashed_again(
    get: Callable[..., Source], site: Site, tmp_path: Path, hashed: list[Path]
) -> None:
    url = site.put("/v1/m.onnx", Resource(MODEL, {"ETag": '"v1"'}))
    first = get(url, SHA)
    assert first.path.read_bytes() == MODEL
    assert first.path.name == "m.onnx"
    assert first.path.is_relative_to(tmp_path / "cache" / "https")
    assert get(url, SHA) == first
    assert len(site.asked) == len(hashed) == 1


def test_without_a_digest_changes_are_looked_up(get: Callable[..., Source], site: Site) -> None:
    url = site.put("/m.onnx", Resource(MODEL, {"ETag": '"v1"'}))
    assert get(url).sha256 == get(url).sha256 == SHA
    assert len(site.gets()) == 1
    site.put("/m.onnx", Resource(OTHER, {"ETag": '"v2"'}))
    assert get(url).path.read_bytes() == OTHER
    del site.files["/m.onnx"]
    assert get(url).path.read_bytes() == OTHER, "what was fetched is used when the server has it no more"


def test_a_spec_never_shows_secrets(get: Callable[..., Source], site: Site) -> None:
    url = site.put("/m.onnx", Resource(OTHER)).replace("//", "//me:hunter2@") + "?sig=hush"
    fetched = get(url)
    assert fetched.spec == f"{site.root}/m.onnx"
    with pytest.raises(UsageError) as caught:
        get(url, SHA)
    assert "hunter2" not in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_download_with_the_wrong_digest_is_not_kept(get: Callable[..., Source], site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(OTHER, {"ETag": '"v1"'}))
    with pytest.raises(UsageError) as caught:
        get(url, SHA)
    assert SHA in caught.value.message
    assert hashlib.sha256(OTHER).hexdigest() in caught.value.message
    assert OTHER not in [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    site.put("/m.onnx", Resource(MODEL, {"ETag": '"v2"'}))
    assert get(url, SHA).sha256 == SHA


def test_a_new_digest_fetches_anew_and_keeps_the_old_file_until_it_fits(get: Callable[..., Source], site: Site) -> None:
    url = site.put("/m.onnx", Resource(OTHER))
    old = get(url)
    with pytest.raises(UsageError):
        get(url, SHA)
    assert old.path.read_bytes() == OTHER
    site.put("/m.onnx", Resource(MODEL))
    assert get(url, SHA).path.read_bytes() == MODEL


@pytest.mark.parametrize(("content", "says"), [(HTML, "web page"), (LFS, "Git LFS pointer"), (b"", "is empty")])
def test_a_page_instead_of_a_model(get: Callable[..., Source], site: Site, content: bytes, says: str) -> None:
    url = site.put("/m.onnx", Resource(content))
    with pytest.raises(UsageError, match=says):
        get(url, SHA)
    site.put("/m.onnx", Resource(MODEL))
    assert get(url, SHA).sha256 == SHA


@pytest.mark.parametrize("damage", ["changed", "removed", "cut", "unrecorded"])
def test_a_damaged_cache_heals(get: Callable[..., Source], site: Site, tmp_path: Path, damage: str) -> None:
    url = site.put("/m.onnx", Resource(MODEL, {"ETag": '"v1"'}))
    path = get(url).path
    match damage:
        case "changed":
            path.write_bytes(OTHER)
        case "removed":
            path.unlink()
        case "cut":
            os.truncate(path, 1000)
        case "unrecorded":
            for record in (tmp_path / "cache" / "sha256").iterdir():
                record.write_text('["not", "a record"')
    assert get(url).path.read_bytes() == MODEL
    assert len(site.gets()) == 2


def test_a_touched_cache_file_is_checked_not_fetched(get: Callable[..., Source], site: Site) -> None:
    url = site.put("/m.onnx", Resource(MODEL))
    aged(get(url).path)
    assert get(url, SHA).sha256 == SHA
    assert len(site.gets()) == 1


def test_several_at_once_download_once(get: Callable[..., Source], site: Site) -> None:
    second = threading.Event()

    def wait_for_a_second() -> None:
        if len(site.gets()) > 1:
            second.set()
        second.wait(0.3)

    url = site.put("/m.onnx", Resource(MODEL, on_get=wait_for_a_second))
    # Each opens the lock anew, so threads exclude each other exactly as processes do.
    with ThreadPoolExecutor(4) as pool:
        fetched = list(pool.map(get, [url] * 4))
    assert {one.sha256 for one in fetched} == {SHA}
    assert len(site.gets()) == 1


def test_a_killed_download_is_gone_on_with(get: Callable[..., Source], site: Site, tmp_path: Path) -> None:
    resource = Resource(MODEL, {"ETag": '"v1"'}, stall_after=600_000)
    url = site.put("/m.onnx", resource)
    code = (
        "import sys; from pathlib import Path; from qnnci.model.source import fetch; fetch(sys.argv[1], sha256=None, "
    )
    code += "base=Path(), cache=Path(sys.argv[2]))"
    child = subprocess.Popen([sys.executable, "-c", code, url, str(tmp_path / "cache")])
    deadline = time.monotonic() + 60
    while not sum(part.stat().st_size for part in (tmp_path / "cache").rglob(".part")):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    resource.stall_after = None
    assert get(url, SHA).path.read_bytes() == MODEL
    assert int(site.gets()[-1].headers["Range"].removeprefix("bytes=").rstrip("-")) > 0


def test_a_full_disk(get: Callable[..., Source], site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(MODEL))
    folder = tmp_path / "cache" / "https" / hashlib.sha256(url.encode()).hexdigest()
    folder.mkdir(parents=True)
    (folder / ".part").symlink_to("/dev/full")
    with pytest.raises(MachineError, match="No space left") as caught:
        get(url)
    assert "QNNCI_CACHE" in caught.value.hint
    assert not (folder / "m.onnx").exists()


def test_the_cache_is_no_folder(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(MachineError, match="QNNCI_CACHE"):
        source.fetch(f"{site.root}/m.onnx", sha256=None, base=tmp_path, cache=tmp_path / "cache")


def test_the_default_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QNNCI_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert files.default_cache() == Path("/home/someone/.cache/qnnci")
    monkeypatch.setenv("QNNCI_CACHE", "/elsewhere")
    assert files.default_cache() == Path("/elsewhere")


# the Hub


class Hub:
    """A stand-in of the Hub on a real server: HEAD and GET of resolve/, with the Hub's own headers."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def put(self, path: str, body: bytes, revision: str = "main", commit: str = COMMIT) -> None:
        headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": commit}
        self.site.put(f"/org/repo/resolve/{revision}/{path}", Resource(body, headers))

    def refuse(self, status: int, code: str = "") -> None:
        headers = {"X-Error-Code": code} if code else {}
        self.site.put("/org/repo/resolve/main/m.onnx", Resource(status=status, headers=headers))

    def downloads(self) -> int:
        return sum("/resolve/" in request.path for request in self.site.gets())


@pytest.fixture
def models_hub(site: Site, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("HF_ENDPOINT", site.root)
    monkeypatch.setenv("HF_TOKEN", "hf_hunter2")
    return Hub(site)


def test_a_file_of_the_hub(get: Callable[..., Source], models_hub: Hub, tmp_path: Path) -> None:
    models_hub.put("onnx/m.onnx", MODEL)
    fetched = get("hf://org/repo/onnx/m.onnx", SHA)
    assert fetched.path.read_bytes() == MODEL
    assert not fetched.path.is_symlink(), "external data may lie only beside a real file"
    assert fetched.path.is_relative_to(tmp_path / "cache" / "hf")
    (head,) = [request for request in models_hub.site.asked if request.method == "HEAD"]
    headers = {name.lower(): value for name, value in head.headers.items()}
    assert headers["authorization"] == "Bearer hf_hunter2"
    assert headers["user-agent"].startswith("qnnci/")
    before = len(models_hub.site.asked)
    assert get("hf://org/repo/onnx/m.onnx", SHA) == fetched
    assert len(models_hub.site.asked) == before, "a known digest needs no network"


def test_a_branch_moves_and_a_commit_does_not(get: Callable[..., Source], models_hub: Hub) -> None:
    models_hub.put("m.onnx", MODEL)
    models_hub.put("m.onnx", MODEL, revision=COMMIT)
    assert get("hf://org/repo/m.onnx@main").sha256 == get("hf://org/repo/m.onnx@main").sha256 == SHA
    assert models_hub.downloads() == 1
    pinned = get(f"hf://org/repo/m.onnx@{COMMIT}")
    models_hub.put("m.onnx", OTHER, commit="d" * 40)
    assert get("hf://org/repo/m.onnx").path.read_bytes() == OTHER
    before = len(models_hub.site.asked)
    assert get(f"hf://org/repo/m.onnx@{COMMIT}") == pinned
    assert pinned.path.read_bytes() == MODEL
    assert len(models_hub.site.asked) == before


def test_files_of_a_revision_lie_side_by_side(get: Callable[..., Source], models_hub: Hub) -> None:
    models_hub.put("onnx/encoder.onnx", MODEL)
    models_hub.put("onnx/encoder.onnx_data", OTHER)
    model = get("hf://org/repo/onnx/encoder.onnx").path
    assert get("hf://org/repo/onnx/encoder.onnx_data").path == model.with_name("encoder.onnx_data")


def test_the_hub_s_file_is_checked(get: Callable[..., Source], models_hub: Hub) -> None:
    models_hub.put("m.onnx", OTHER)
    with pytest.raises(UsageError, match=f"{hashlib.sha256(OTHER).hexdigest()}.*{SHA}"):
        get("hf://org/repo/m.onnx", SHA)
    models_hub.put("m.onnx", HTML)
    with pytest.raises(UsageError, match="web page"):
        get("hf://org/repo/m.onnx")
    models_hub.put("m.onnx", MODEL)
    assert get("hf://org/repo/m.onnx", SHA).sha256 == SHA


@pytest.mark.parametrize("revision", ["main", COMMIT])
def test_a_damaged_hub_file_heals(get: Callable[..., Source], models_hub: Hub, revision: str) -> None:
    models_hub.put("m.onnx", MODEL, revision=revision)
    path = get(f"hf://org/repo/m.onnx@{revision}").path
    path.write_bytes(OTHER)
    assert get(f"hf://org/repo/m.onnx@{revision}").path.read_bytes() == MODEL


@pytest.mark.parametrize(
    ("status", "code", "kind", "says"),
    [
        (401, "RepoNotFound", UsageError, "no model repo org/repo.*private"),
        (403, "GatedRepo", UsageError, "gated"),
        (404, "RevisionNotFound", UsageError, "no revision main"),
        (404, "EntryNotFound", UsageError, r"no file m\.onnx"),
        (403, "", UsageError, "HTTP 403"),
        (404, "", UsageError, "HTTP 404"),
        (500, "", MachineError, "HTTP 500"),
    ],
)
def test_what_the_hub_refuses(
    get: Callable[..., Source],
    models_hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    kind: type[QnnciError],
    says: str,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    models_hub.refuse(status, code)
    with pytest.raises(kind, match=says) as caught:
        get("hf://org/repo/m.onnx")
    assert caught.value.hint
    assert "hunter2" not in str(caught.value)


def test_the_hub_is_out_of_reach(get: Callable[..., Source], models_hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    models_hub.put("m.onnx", MODEL)
    fetched = get("hf://org/repo/m.onnx")
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert get("hf://org/repo/m.onnx") == fetched, "what was fetched is used offline"
    with pytest.raises(MachineError, match="cannot reach the Hub") as caught:
        get("hf://org/repo/other.onnx")
    assert "HF_ENDPOINT" in caught.value.hint


@pytest.mark.parametrize(
    "spec",
    [
        "hf://repo/m.onnx",
        "hf://org/repo",
        "hf://org/repo/",
        "hf://org/repo@main/m.onnx",
        "hf://org/repo/m.onnx@",
        "hf://org/repo/m.onnx@../main",
        "hf://org/repo/../../m.onnx",
        "hf://org/repo//etc/passwd",
        "hf://../repo/m.onnx",
        f"hf://org/repo/{'m' * 250}.onnx",
    ],
)
def test_malformed_hub_files(get: Callable[..., Source], spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        get(spec)
    assert "hf://org/repo/" in caught.value.hint


# wheels


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is all that pip sees; `demo` has versions 1.0 and 1.1."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    for version in ("1.0", "1.1"):
        with zipfile.ZipFile(folder / f"demo-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("demo/models/encoder.onnx", MODEL)
            archive.writestr("demo/models/decoder.onnx", OTHER)
            archive.writestr("../../escape.onnx", OTHER)
            info = f"demo-{version}.dist-info"
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in (("CONFIG_FILE", os.devnull), ("NO_INDEX", "1"), ("FIND_LINKS", str(folder))):
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


@pytest.mark.parametrize("name", ["silero_vad.onnx", "ch_ppocr_mobile_v2.0_cls_infer.onnx"])
def test_real_wheels(models: Callable[[str], Path], name: str) -> None:
    path = models(name)
    assert path.name == name
    assert path.stat().st_size > 500_000


def test_one_file_of_a_wheel_and_then_another(get: Callable[..., Source], shelf: Path, tmp_path: Path) -> None:
    fetched = get("pypi://demo==1.0/demo/models/encoder.onnx", SHA)
    assert fetched.path.read_bytes() == MODEL
    for file in shelf.iterdir():
        file.unlink()
    assert get("pypi://demo==1.0/demo/models/encoder.onnx") == fetched
    assert get("pypi://demo==1.0/demo/models/decoder.onnx").path.read_bytes() == OTHER
    names = {path.name for path in (tmp_path / "cache").rglob("*.onnx")}
    assert names == {"encoder.onnx", "decoder.onnx"}


def test_a_member_s_name_does_not_decide_where_it_goes(get: Callable[..., Source], shelf: Path, tmp_path: Path) -> None:
    assert shelf.is_dir()
    path = get("pypi://demo==1.0/../../escape.onnx").path
    assert path.read_bytes() == OTHER
    assert path.is_relative_to(tmp_path / "cache" / "pypi")
    assert ".." not in path.parts


@pytest.mark.usefixtures("shelf")
def test_a_member_that_is_not_there(get: Callable[..., Source]) -> None:
    with pytest.raises(UsageError, match=r"demo==1\.0 has no file demo/models/encodr\.onnx") as caught:
        get("pypi://demo==1.0/demo/models/encodr.onnx")
    assert "demo/models/encoder.onnx" in caught.value.hint


@pytest.mark.usefixtures("shelf")
def test_a_version_or_a_name_that_is_not_there(get: Callable[..., Source]) -> None:
    with pytest.raises(UsageError, match=r"no wheel demo==2\.0") as caught:
        get("pypi://demo==2.0/m.onnx")
    assert caught.value.hint == "the newest versions are 1.0, 1.1"
    with pytest.raises(UsageError, match=r"no wheel nothing==1") as caught:
        get("pypi://nothing==1/m.onnx")
    assert "check the name" in caught.value.hint


@pytest.mark.usefixtures("shelf")
def test_an_index_out_of_reach(get: Callable[..., Source], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(MachineError, match=r"cannot reach the package index for nothing==1"):
        get("pypi://nothing==1/m.onnx")


def test_a_python_without_pip(get: Callable[..., Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(ToolMissing, match="pip is needed") as caught:
        get("pypi://demo==1.0/m.onnx")
    assert "ensurepip" in caught.value.hint


def test_a_damaged_wheel_heals(get: Callable[..., Source], shelf: Path, tmp_path: Path) -> None:
    assert shelf.is_dir()
    get("pypi://demo==1.0/demo/models/encoder.onnx")
    (whole,) = (tmp_path / "cache").rglob("*.whl")
    whole.write_bytes(b"PK\x03\x04 torn")
    assert get("pypi://demo==1.0/demo/models/decoder.onnx").path.read_bytes() == OTHER


def test_a_wheel_whose_file_is_broken(get: Callable[..., Source], shelf: Path, tmp_path: Path) -> None:
    path = shelf / "demo-1.0-py3-none-any.whl"
    data = bytearray(path.read_bytes())
    data[60:200] = bytes(140)
    path.write_bytes(data)
    with pytest.raises(MachineError, match="broken"):
        get("pypi://demo==1.0/demo/models/encoder.onnx")
    assert not list((tmp_path / "cache").rglob("*.whl"))
    assert not list((tmp_path / "cache").rglob("*.onnx"))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("pypi://demo/demo/m.onnx", "names no version"),
        ("pypi://demo>=1/demo/m.onnx", "names no version"),
        ("pypi://demo==1.0", "names no file"),
        ("pypi://demo==1.0/", "names no file"),
        ("pypi://--index-url==1/m.onnx", "pypi://"),
        ("pypi://demo[extra]==1/m.onnx", "pypi://"),
    ],
)
def test_malformed_wheels(get: Callable[..., Source], spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        get(spec)
    assert "pypi://name==version/path/in/wheel" in caught.value.hint


# anything


PIECES = st.sampled_from(
    [
        "..",
        "/",
        "../../",
        "\0",
        "%2e%2e%2f",
        "\\",
        "~",
        "@",
        "==",
        "#",
        "?",
        ":",
        "x" * 300,
        "\u202e",
        "\ud800",
        ".onnx",
    ]
)
FORMS = st.sampled_from(
    ["", "https://", "https://h/", "http://127.0.0.1/", "hf://", "hf://o/r/", "pypi://", "pypi://n==1/"]
)
SPECS = st.builds(lambda form, parts: form + "".join(parts), FORMS, st.lists(PIECES | st.text(max_size=8), max_size=6))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b/m.onnx", "m.onnx"),
        ("a/..", "model.onnx"),
        ("a/", "model.onnx"),
        (".part", "part"),
        ("..hidden/.validator", "validator"),
        ("mod\u00e8le \u202e\0.onnx", "mod_le_.onnx"),
        ("x" * 300 + ".onnx", "x" * 95 + ".onnx"),
    ],
)
def test_names_in_the_cache(path: str, name: str) -> None:
    assert source._safe_name(path) == name


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spec=SPECS)
@example(spec="https://h/..")
@example(spec="https://h/%2e%2e%2f..%2f.onnx?/../..")
@example(spec="hf://o/r/a/../../../m.onnx@x")
@example(spec="pypi://n==1/../../../etc/passwd")
@example(spec="pypi://n==1//etc/passwd")
def test_no_spec_leaves_the_cache_or_crashes(
    spec: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path_factory.mktemp("fuzz")
    base, cache = root / "project", root / "cache"
    base.mkdir()

    def to_part(_url: str, part: Path) -> str:
        part.write_bytes(MODEL)
        return ""

    def to_folder(file: hub.HubFile, folder: Path) -> None:
        (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / file.path).write_bytes(MODEL)

    def to_wheel(member: wheel.Member, path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member.path, MODEL)

    monkeypatch.setattr(http, "download", to_part)
    monkeypatch.setattr(hub, "download", to_folder)
    monkeypatch.setattr(wheel, "download", to_wheel)
    try:
        fetched = source.fetch(spec, sha256=None, base=base, cache=cache)
    except QnnciError as error:
        str(error).encode()  # a message that cannot be printed would be a crash, too
    else:
        assert fetched.path.resolve().is_relative_to(cache.resolve())
        assert fetched.path.read_bytes() == MODEL
    written = {path.relative_to(root).parts[0] for path in root.rglob("*") if path.is_file()}
    assert written <= {"cache"}
