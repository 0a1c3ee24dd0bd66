"""A real web server on loopback that serves files well or badly, as each test asks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Resource:
    """What stands at one path. First come the `statuses`, one a request; each of `cuts` breaks one body off there."""

    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
    ranges: bool = True
    statuses: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    on_get: Callable[[], None] = lambda: None
    stall_after: int | None = None


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]


class Site:
    """The files of the server by path (query aside), and what was asked of it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, Resource] = {}
        self.asked: list[Asked] = []
        self.go_on = threading.Event()

    def put(self, path: str, resource: Resource) -> str:
        self.files[path] = resource
        return f"{self.root}{path}"

    def gets(self) -> list[Asked]:
        return [request for request in self.asked if request.method == "GET"]


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    site: Site

    def handle_error(self, *_request: object) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        site = self.server.site
        site.asked.append(Asked(self.command, self.path, dict(self.headers)))
        resource = site.files.get(self.path.partition("?")[0], Resource(status=404, body=b"no such file"))
        if body:
            resource.on_get()
        if resource.statuses:
            status, headers = resource.statuses.pop(0)
            self._head(status, {**headers, "Content-Length": "0"})
            return
        etag = resource.headers.get("ETag")
        if etag and self.headers.get("If-None-Match") == etag:
            self._head(304, {"ETag": etag})
            return
        start = self._start(resource)
        content = resource.body[start or 0 :]
        headers = {**resource.headers, "Content-Length": str(len(content))}
        if start is not None and not content:
            self._head(416, {"Content-Range": f"bytes */{len(resource.body)}", "Content-Length": "0"})
            return
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{len(resource.body) - 1}/{len(resource.body)}"
        self._head(206 if start is not None else resource.status, headers)
        if body:
            self._body(site, resource, content)

    def _start(self, resource: Resource) -> int | None:
        asked = self.headers.get("Range")
        if not asked or not resource.ranges:
            return None
        versions = (None, resource.headers.get("ETag"), resource.headers.get("Last-Modified"))
        if self.headers.get("If-Range") not in versions:
            return None
        return int(asked.removeprefix("bytes=").partition("-")[0])

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _body(self, site: Site, resource: Resource, content: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            if resource.stall_after is not None:
                self.wfile.write(content[: resource.stall_after])
                self.wfile.flush()
                site.go_on.wait()
                self.close_connection = True
            elif resource.cuts:
                self.wfile.write(content[: resource.cuts.pop(0)])
                self.close_connection = True
            else:
                self.wfile.write(content)
