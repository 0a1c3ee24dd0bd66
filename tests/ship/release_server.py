"""GitHub's release API on loopback, as documented: drafts, upload address, 422, half assets, limits, immutability."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghp_0123456789abcdefTHESECRET"  # noqa: S105 - of this server only
REPO = "org/model"


@dataclass
class Asset:
    id: int
    name: str
    body: bytes
    state: str = "uploaded"


@dataclass
class Release:
    id: int
    tag: str
    draft: bool
    immutable: bool = False
    about: dict[str, Any] = field(default_factory=dict)
    assets: list[Asset] = field(default_factory=list)


class Hub:
    """The server's state, and how it fails: each request with `failing` probability, in one of `ways`."""

    def __init__(self) -> None:
        self.releases: list[Release] = []
        self.lock = threading.RLock()
        self.dice = random.Random(3)
        self.failing = 0.0
        self.ways = ("500", "502", "reset", "lost", "half", "limit")
        self.asked: list[tuple[str, str]] = []
        self.next: list[tuple[int, dict[str, str], bytes]] = []  # answers that come before any other
        self.root = ""
        self.uploads_at = ""  # another host than the API's, where it is to name one
        self.ids = iter(range(1, 1 << 30))
        self.digests = True
        self.slow = threading.Event()
        self.uploads = 0

    def release(self, tag: str, *, draft: bool = False, immutable: bool = False) -> Release:
        made = Release(next(self.ids), tag, draft, immutable)
        self.releases.append(made)
        return made

    def put(self, release: Release, name: str, body: bytes, state: str = "uploaded") -> Asset:
        made = Asset(next(self.ids), name, body, state)
        release.assets.append(made)
        return made

    def names(self, tag: str) -> list[str]:
        return sorted(each.name for each in self.only(tag).assets)

    def only(self, tag: str) -> Release:
        (found,) = [each for each in self.releases if each.tag == tag]
        return found


@contextlib.contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_MISSING = (404, {"message": "Not Found"})


def _taken(field_name: str) -> tuple[int, Any]:
    return 422, {"message": "Validation Failed", "errors": [{"code": "already_exists", "field": field_name}]}


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def _serve(self) -> None:
        hub, url = self.hub, urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        uploads = url.path.startswith("/uploads/")
        with hub.lock:
            hub.asked.append((self.command, url.path))
            way = hub.dice.choice(hub.ways) if hub.dice.random() < hub.failing else ""
            prepared = hub.next.pop(0) if hub.next else None
        length = int(self.headers.get("Content-Length") or 0)
        if way == "half" and uploads:
            length //= 2
        body = self.rfile.read(length)
        if prepared:
            self._raw(*prepared)
        elif self.command == "GET" and "Authorization" not in self.headers and url.path.startswith("/download/"):
            self._raw(200, {}, self._download(url.path))
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}" and not self._public(url.path):
            self._answer(401, {"message": "Bad credentials"})
        elif way == "limit":
            self._answer(403, {"message": "You have exceeded a secondary rate limit"}, {"Retry-After": "1"})
        elif way in {"500", "502"}:
            self._answer(int(way), {"message": "Server Error"})
        elif way == "reset":
            self._hang_up()
        elif way == "half" and uploads:
            with hub.lock:
                self._upload(url.path, query["name"], body, "starter")
            self._hang_up()
        else:
            with hub.lock:
                answer = self._route(url.path, query, body)
            if way == "lost":
                self._hang_up()
            else:
                self._answer(*answer)

    do_GET = _serve  # noqa: N815 - http.server's names
    do_POST = _serve  # noqa: N815
    do_PATCH = _serve  # noqa: N815
    do_DELETE = _serve  # noqa: N815

    def _public(self, path: str) -> bool:
        """Whether anybody may read it."""
        return self.command == "GET" and "Authorization" not in self.headers and "/releases/tags/" in path

    def _download(self, path: str) -> bytes:
        number = int(path.rpartition("/")[2])
        return next(each.body for release in self.hub.releases for each in release.assets if each.id == number)

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(2)

    def _route(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:  # noqa: PLR0911 - by address
        root = f"/repos/{REPO}/releases"
        if path.startswith("/uploads/"):
            self.hub.uploads += 1
            return self._upload(path, query["name"], body)
        if not path.startswith(root):
            return _MISSING
        rest = path.removeprefix(root).strip("/")
        if not rest:
            return self._list(query) if self.command == "GET" else self._create(json.loads(body))
        if found := re.fullmatch(r"tags/(.+)", rest):
            published = [each for each in self.hub.releases if each.tag == found[1] and not each.draft]
            return (200, self._release(published[0])) if published else _MISSING
        if found := re.fullmatch(r"assets/(\d+)", rest):
            return self._delete(int(found[1]))
        found = re.fullmatch(r"(\d+)(/assets)?", rest)
        releases = [each for each in self.hub.releases if found and each.id == int(found[1])]
        if not releases or not found:
            return _MISSING
        if found[2]:
            return 200, self._page([self._asset(each) for each in releases[0].assets], query)
        return self._change(releases[0], json.loads(body) if self.command == "PATCH" else {})

    def _list(self, query: dict[str, str]) -> tuple[int, Any]:
        return 200, self._page([self._release(each) for each in reversed(self.hub.releases)], query)

    def _create(self, data: dict[str, Any]) -> tuple[int, Any]:
        if any(each.tag == data["tag_name"] and not each.draft for each in self.hub.releases):
            return _taken("tag_name")
        made = self.hub.release(data["tag_name"], draft=data["draft"])
        made.about = data
        return 201, self._release(made)

    def _delete(self, number: int) -> tuple[int, Any]:
        for release in self.hub.releases:
            for asset in release.assets:
                if asset.id == number:
                    if release.immutable and not release.draft:
                        return 422, {"message": "Cannot delete asset from an immutable release"}
                    release.assets.remove(asset)
                    return 204, None
        return _MISSING

    def _change(self, release: Release, data: dict[str, Any]) -> tuple[int, Any]:
        release.draft = data.get("draft", release.draft)
        release.about |= data
        return 200, self._release(release)

    def _upload(self, path: str, name: str, body: bytes, state: str = "uploaded") -> tuple[int, Any]:
        number = int(re.findall(r"/releases/(\d+)/assets", path)[0])
        (release,) = [each for each in self.hub.releases if each.id == number]
        if any(each.name == name for each in release.assets):
            return _taken("name")
        if release.immutable and not release.draft:
            return 422, {"message": "Cannot upload assets to an immutable release"}
        return 201, self._asset(self.hub.put(release, name, body, state))

    def _page(self, items: list[Any], query: dict[str, str]) -> list[Any]:
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        return items[(page - 1) * size : page * size]

    def _release(self, of: Release) -> dict[str, Any]:
        upload = f"{self.hub.uploads_at or self.hub.root}/uploads/repos/{REPO}/releases/{of.id}/assets{{?name,label}}"
        page = f"https://github.com/{REPO}/releases/tag/{of.tag}"
        told = {"id": of.id, "tag_name": of.tag, "draft": of.draft, "immutable": of.immutable and not of.draft}
        return {**told, "html_url": page, "upload_url": upload, "assets": [self._asset(each) for each in of.assets]}

    def _asset(self, of: Asset) -> dict[str, Any]:
        told: dict[str, Any] = {"id": of.id, "name": of.name, "size": len(of.body), "state": of.state}
        told["browser_download_url"] = f"{self.hub.root}/download/{of.id}"
        digest = (
            f"sha256:{hashlib.sha256(of.body).hexdigest()}" if self.hub.digests and of.state == "uploaded" else None
        )
        return {**told, "digest": digest}

    def _answer(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
        self._raw(status, headers or {}, b"" if data is None else json.dumps(data).encode())

    def _raw(self, status: int, headers: dict[str, str], body: bytes) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)
