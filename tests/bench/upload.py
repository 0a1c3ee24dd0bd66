"""`qnnci publish release` of eight files of 64 MB against plain PUTs by as many threads, to one server on loopback."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed

COUNT, SIZE = 8, 64 << 20
ARGV = ("publish", "release", "assets", "--tag", "v1", "--license", "MIT")


def measure(folder: Path) -> list[Figure]:
    files = [folder / "assets" / f"{number}.bin" for number in range(COUNT)]
    files[0].parent.mkdir()
    for file in files:
        file.write_bytes(os.urandom(SIZE))
    with serving() as server:
        started = time.monotonic()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda file: put(server.root, file), files))
        plain = time.monotonic() - started
        env = {"GITHUB_TOKEN": "t", "GITHUB_API_URL": server.root, "GITHUB_REPOSITORY": "o/m"}
        whole = timed(["env", *(f"{name}={value}" for name, value in env.items()), *qnnci(*ARGV)], folder).seconds
    ours, size = server.ended - server.began, COUNT * SIZE / 1e6
    return [
        Figure(
            f"uploads of publish release / plain PUT, {size:.0f} MB on loopback, throughput",
            f"{size / ours:.0f} / {size / plain:.0f} MB/s = {plain / ours:.2f}",
            "≥ 0.8",
            met=plain / ours >= 0.8,
        ),
        Figure("the whole command, which also starts and hashes", f"{whole:.1f} s, of it uploads {ours:.1f} s"),
    ]


def put(root: str, path: Path) -> None:
    connection = http.client.HTTPConnection(urlsplit(root).netloc, blocksize=1 << 20)
    with path.open("rb") as file:
        connection.request("PUT", "/plain", file, {"Content-Length": str(path.stat().st_size)}, encode_chunked=False)
        connection.getresponse().read()


class Server(ThreadingHTTPServer):
    """Knows one release and what was uploaded to it; from when to when, in monotonic seconds."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server_address[1]}"
        self.release: dict[str, object] | None = None
        self.assets: list[dict[str, object]] = []
        self.began = self.ended = 0.0


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """Reads what comes in pieces, and hashes it as GitHub must."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def _take(self) -> tuple[int, str]:
        left = size = int(self.headers.get("Content-Length") or 0)
        digest = hashlib.sha256()
        while left:
            piece = self.rfile.read(min(left, 1 << 20))
            digest.update(piece)
            left -= len(piece)
        return size, digest.hexdigest()

    def _serve(self) -> None:
        url, server = urlsplit(self.path), self.server
        status = 200
        answer: object = {}
        first_page = "page=1" in url.query.split("&")
        if url.path.startswith("/uploads"):
            answer = self._upload(parse_qs(url.query)["name"][0])
        else:
            self._take()
        if url.path.endswith("/assets") and self.command == "GET":
            answer = server.assets if first_page else []
        elif self.command in {"POST", "PATCH"} and "/releases" in url.path:
            answer = server.release = {
                "id": 1, "tag_name": "v1", "draft": self.command == "POST", "html_url": f"{server.root}/v1",
                "upload_url": f"{server.root}/uploads/1/assets{{?name}}",
            }  # fmt: skip
        elif url.path.endswith("/releases"):
            answer = [server.release] if server.release and first_page else []
        elif "/tags/" in url.path:
            published = server.release and not server.release["draft"]
            status, answer = (200, server.release) if published else (404, {})
        self._answer(status, answer)

    do_GET = do_PUT = do_POST = do_PATCH = _serve  # noqa: N815 - http.server's names

    def _upload(self, name: str) -> dict[str, object]:
        server = self.server
        server.began = server.began or time.monotonic()
        size, digest = self._take()
        server.ended = time.monotonic()
        asset: dict[str, object] = {
            "id": len(server.assets) + 1, "name": name, "size": size, "state": "uploaded", "digest": f"sha256:{digest}"
        }  # fmt: skip
        server.assets.append(asset)
        return asset

    def _answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
