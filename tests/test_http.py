from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.file_server import Resource, Site, serving

from qnnci import __version__, http
from qnnci.errors import MachineError, QnnciError, UsageError

BODY = b"\x08\x08" + bytes(range(256)) * 4000
HALF = 600_000
V1 = {"ETag": '"v1"'}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(http, "BACKOFF", 0.001)
    with serving() as running:
        yield running


def test_the_whole_file_comes_with_its_validator_and_our_name(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, V1))
    assert http.download(url, tmp_path / "part") == '"v1"'
    assert (tmp_path / "part").read_bytes() == BODY
    assert site.asked[0].headers["User-Agent"] == f"qnnci/{__version__}"


def test_a_broken_body_is_gone_on_with(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, V1, cuts=[HALF]))
    http.download(url, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    begun, rest = site.asked
    assert "Range" not in begun.headers
    assert 0 < int(rest.headers["Range"].removeprefix("bytes=").rstrip("-")) <= HALF
    assert rest.headers["If-Range"] == '"v1"'


def test_last_modified_serves_where_the_etag_is_weak(site: Site, tmp_path: Path) -> None:
    date = "Mon, 01 Dec 2025 00:00:00 GMT"
    url = site.put("/m.onnx", Resource(BODY, {"ETag": 'W/"v1"', "Last-Modified": date}, cuts=[HALF]))
    assert http.download(url, tmp_path / "part") == date
    assert (tmp_path / "part").read_bytes() == BODY
    assert site.asked[1].headers["If-Range"] == date


def test_an_earlier_run_s_part_is_gone_on_with(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, V1))
    (tmp_path / "part").write_bytes(BODY[:HALF])
    (tmp_path / "part.validator").write_text('"v1"')
    http.download(url, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    assert site.asked[0].headers["Range"] == f"bytes={HALF}-"


def test_a_part_that_is_whole_already_is_taken(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, V1))
    (tmp_path / "part").write_bytes(BODY)
    (tmp_path / "part.validator").write_text('"v1"')
    assert http.download(url, tmp_path / "part") == '"v1"'
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "resource",
    [
        pytest.param(Resource(BODY, {"ETag": '"v2"'}), id="the file changed"),
        pytest.param(Resource(BODY, V1, ranges=False), id="ranges are ignored"),
    ],
)
def test_a_part_that_does_not_fit_is_begun_anew(site: Site, tmp_path: Path, resource: Resource) -> None:
    url = site.put("/m.onnx", resource)
    (tmp_path / "part").write_bytes(b"x" * HALF)
    (tmp_path / "part.validator").write_text('"v1"')
    assert http.download(url, tmp_path / "part") == resource.headers["ETag"]
    assert (tmp_path / "part").read_bytes() == BODY


def test_a_part_longer_than_the_file_is_begun_anew(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, V1))
    (tmp_path / "part").write_bytes(BODY + b"more")
    (tmp_path / "part.validator").write_text('"v1"')
    http.download(url, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY


def test_the_file_changes_between_two_halves(site: Site, tmp_path: Path) -> None:
    resource = Resource(BODY, V1, cuts=[HALF])
    new = hashlib.sha256(BODY).digest() * 30_000

    def change() -> None:
        if len(site.asked) == 2:
            resource.body, resource.headers = new, {"ETag": '"v2"'}

    resource.on_get = change
    assert http.download(site.put("/m.onnx", resource), tmp_path / "part") == '"v2"'
    assert (tmp_path / "part").read_bytes() == new


def test_a_server_that_ignores_if_range_does_not_mix_two_versions(site: Site, tmp_path: Path) -> None:
    resource = Resource(BODY, {"ETag": '"v2"'})
    (tmp_path / "part").write_bytes(b"x" * HALF)
    (tmp_path / "part.validator").write_text('"v1"')

    def pretend() -> None:
        resource.headers["Last-Modified"] = '"v1"'  # so that the stand-in takes the condition for true

    resource.on_get = pretend
    assert http.download(site.put("/m.onnx", resource), tmp_path / "part") == '"v2"'
    assert (tmp_path / "part").read_bytes() == BODY
    assert len(site.asked) == 2


def test_without_a_validator_nothing_is_appended(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, cuts=[HALF]))
    assert http.download(url, tmp_path / "part") == ""
    assert (tmp_path / "part").read_bytes() == BODY
    assert "Range" not in site.asked[1].headers


def test_breaking_off_every_time_is_the_machine_s_fault(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, V1, cuts=[100_000] * http.TRIES))
    with pytest.raises(MachineError, match=r"broke off 5 times.*m\.onnx"):
        http.download(url, tmp_path / "part")
    assert (tmp_path / "part").stat().st_size > 100_000, "what came is kept for the next run"


def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    url = site.put("/m.onnx", Resource(BODY, statuses=[(503, {"Retry-After": "0"}), (429, {}), (500, {})]))
    http.download(url, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    assert len(site.asked) == 4


def test_retry_after_is_honoured_within_reason(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    url = site.put("/m.onnx", Resource(BODY, statuses=[(503, {"Retry-After": "7"}), (503, {"Retry-After": "86400"})]))
    http.download(url, tmp_path / "part")
    assert slept == [7, http.LONGEST_WAIT]


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (401, UsageError, "refuses access"),
        (403, UsageError, "refuses access"),
        (404, UsageError, "no such file"),
        (410, UsageError, "no such file"),
        (418, UsageError, "not a file"),
        (500, MachineError, "server fails"),
        (501, MachineError, "server fails"),
    ],
)
def test_what_the_server_refuses_is_said_without_secrets(
    site: Site, tmp_path: Path, status: int, kind: type[QnnciError], says: str
) -> None:
    url = site.put("/m.onnx", Resource(status=status)).replace("//", "//user:hunter2@") + "?sig=hush#hush"
    with pytest.raises(kind, match=says) as caught:
        http.download(url, tmp_path / "part")
    assert f"HTTP {status}" in str(caught.value)
    assert site.asked[0].headers["Authorization"].startswith("Basic ")
    assert "hunter2" not in str(caught.value)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not (tmp_path / "part").exists()


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BACKOFF", 0.001)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(MachineError, match="cannot reach") as caught:
        http.download(f"http://127.0.0.1:{port}/m.onnx?sig=hush", tmp_path / "part")
    assert "hush" not in str(caught.value)


def test_not_a_tls_server(site: Site, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"no trusted connection|cannot reach"):
        http.download(site.root.replace("http:", "https:") + "/m.onnx", tmp_path / "part")


def test_a_missing_ca_bundle_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    with pytest.raises(MachineError, match=r"none\.pem"):
        http.download("https://127.0.0.1:1/m.onnx", tmp_path / "part")


def test_a_full_disk(site: Site, tmp_path: Path) -> None:
    (tmp_path / "part").symlink_to("/dev/full")
    with pytest.raises(MachineError, match="No space left"):
        http.download(site.put("/m.onnx", Resource(BODY, V1)), tmp_path / "part")


def test_redirects_are_followed_but_not_to_plain_http_elsewhere(site: Site, tmp_path: Path) -> None:
    site.put("/m.onnx", Resource(BODY, V1))
    url = site.put("/moved", Resource(status=302, headers={"Location": "/m.onnx"}))
    http.download(url, tmp_path / "part")
    assert (tmp_path / "part").read_bytes() == BODY
    url = site.put("/away", Resource(status=302, headers={"Location": "http://models.example/m.onnx"}))
    with pytest.raises(UsageError, match=r"plain http.*models\.example"):
        http.download(url, tmp_path / "other")
    url = site.put("/round", Resource(status=302, headers={"Location": "/round"}))
    with pytest.raises(UsageError, match="TooManyRedirects"):
        http.download(url, tmp_path / "other")


@pytest.mark.parametrize(
    "url",
    [
        "http://models.example/m.onnx",
        "http://127.0.0.1@models.example/m.onnx",
        "http://127.0.0.1.models.example/m.onnx",
        "http://127.0.0.1\\@models.example/m.onnx",
        "http://[2001:db8::1]/m.onnx",
        "ftp://localhost/m.onnx",
        "https:///m.onnx",
        "https://[::1",
        "m.onnx",
        "",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(UsageError):
        http.check_url(url)


@pytest.mark.parametrize(
    "url",
    ["https://models.example/m.onnx", "http://localhost:1/m", "http://127.9.9.9/m", "http://[::1]:80/m", "HTTPS://h/m"],
)
def test_addresses_that_pass(url: str) -> None:
    http.check_url(url)


def test_the_public_form_of_an_address() -> None:
    assert http.public("https://me:pw@h.example:8443/a/m.onnx?sig=x#y") == "https://h.example:8443/a/m.onnx"
    assert http.public("https://me:pw@[") == "https://…"


def test_whether_a_file_is_unchanged(site: Site) -> None:
    dated = {"Last-Modified": "Mon, 01 Dec 2025 00:00:00 GMT"}
    url = site.put("/m.onnx", Resource(BODY, V1))
    assert http.unchanged(url, '"v1"')
    assert not http.unchanged(url, '"v0"')
    assert http.unchanged(site.put("/dated", Resource(BODY, dated)), dated["Last-Modified"])
    assert not http.unchanged(site.put("/dated", Resource(BODY, dated)), "Sun, 30 Nov 2025 00:00:00 GMT")
    assert http.unchanged(f"{site.root}/gone", '"v1"'), "a file that is gone is not a changed one"
    assert http.unchanged("http://127.0.0.1:1/m.onnx", '"v1"'), "offline nobody can tell"
    assert not site.gets()


@given(st.text(max_size=40) | st.from_regex(r"https?://[\w.@:\[\]%\\/?#-]{0,40}", fullmatch=True))
def test_no_address_whatever_crashes(url: str) -> None:
    assert http.public(url).isprintable()
    message = ""
    try:
        http.check_url(url)
    except UsageError as error:
        message = error.message
    assert message.isprintable()
