"""Bundling against tar, a manifest of 200 binaries checked, and a release uploaded against plain PUTs on loopback."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from qnnci.manifest import Manifest, devices, load, save
from tests.bench.graphs import SOCS, project
from tests.bench.table import Figure
from tests.bench.timed import qnnci, timed

MORE_SOCS = ("QCS8625", "SC8380XP", "SA8255", "QCS8300")
REPO = "o/m"


def measure(folder: Path) -> list[Figure]:
    made = {**project(), "socs": [*SOCS, *MORE_SOCS], "verify": {"enabled": False}, "license": "Apache-2.0"}
    made["graphs"] = {name: made["graphs"][name] for name in ("recogniser",)}
    (folder / "qnn.yaml").write_text(json.dumps(made))
    timed(qnnci("build"), folder)
    return [bundling(folder), checking(folder), *uploading(folder)]


def bundling(folder: Path) -> Figure:
    """Twelve binaries and the runtime libraries into .tar.bz2, by us and by `tar cjf`, archive by archive."""
    timed(
        qnnci("runtime-libs", "--for", "build", "--platform", "linux-aarch64", "--archive", "folder", "-o", "libs"),
        folder,
    )
    libraries = [str(path) for path in sorted((folder / "libs").rglob("*")) if path.is_file()]
    for path in libraries:
        (folder / "all").mkdir(exist_ok=True)
        shutil.copy(path, folder / "all")
    ours = min(timed(qnnci("bundle", "--add", "all", "-o", f"bundles-{number}"), folder).seconds for number in range(2))
    entries = load(folder / "build/manifest.json").entries
    started = time.monotonic()
    for entry in entries:
        argv = ["tar", "cjf", f"{entry.soc}.tar.bz2", f"build/{entry.binary}", "all"]
        subprocess.run(argv, cwd=folder, check=True)
    theirs = time.monotonic() - started
    return Figure(
        f"tar cjf / qnnci bundle, {len(entries)} binaries with {len(libraries)} libraries, {os.cpu_count()} cores",
        f"{theirs:.1f} s / {ours:.1f} s = {theirs / ours:.2f}",
        "≥ 1.6",
        met=theirs / ours >= 1.6,
    )


def checking(folder: Path) -> Figure:
    """`qnnci manifest check` of 200 binaries: each hashed and read again."""
    found = load(folder / "build/manifest.json")
    many = folder / "many"
    entries = []
    for number in range(200):
        entry = found.entries[number % len(found.entries)]
        place = many / f"{number:03}"
        place.mkdir(parents=True)
        for name in (entry.binary, entry.context_model):
            os.link(folder / "build" / name, place / Path(name).name)
        update = {"graph": f"g{number:03}", "binary": f"{number:03}/{Path(entry.binary).name}"}
        update["context_model"] = f"{number:03}/{Path(entry.context_model).name}"
        entries.append(entry.model_copy(update=update))
    whole: Manifest = found.model_copy(update={"entries": tuple(entries), "devices": devices(tuple(entries))})
    save(many / "manifest.json", whole)
    took = timed(qnnci("manifest", "check", "many/manifest.json"), folder, ends=(0, 1))
    size = sum((many / entry.binary).stat().st_size for entry in entries) / 1e6
    return Figure(f"manifest check of {len(entries)} binaries, {size:.0f} MB", f"{took.seconds:.1f} s")


def uploading(folder: Path) -> list[Figure]:
    """A release of eight files of 64 MB against streaming PUTs of the same by as many threads, to one server."""
    files = folder / "assets"
    files.mkdir()
    for number in range(8):
        (files / f"{number}.bin").write_bytes(os.urandom(64 << 20))
    with serving() as root:
        started = time.monotonic()
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda path: put(root, path), sorted(files.iterdir())))
        plain = time.monotonic() - started
        env = {"GITHUB_TOKEN": "t", "GITHUB_API_URL": root, "GITHUB_REPOSITORY": REPO}
        os.environ.update(env)
        argv = qnnci("publish", "release", "assets", "--tag", "v1", "--license", "MIT")
        whole = timed(argv, folder).seconds
    ours = Sink.ended - Sink.began
    return [
        Figure(
            "uploads of publish release / plain PUT, 512 MB on loopback, throughput",
            f"{512 / ours:.0f} / {512 / plain:.0f} MB/s = {plain / ours:.2f}",
            "≥ 0.8",
            met=plain / ours >= 0.8,
        ),
        Figure("the whole command, which also starts and hashes", f"{whole:.1f} s, of it uploads {ours:.1f} s"),
    ]


def put(root: str, path: Path) -> None:
    host = urlsplit(root).netloc
    connection = http.client.HTTPConnection(host, blocksize=1 << 20)
    with path.open("rb") as file:
        connection.request("PUT", "/plain", file, {"Content-Length": str(path.stat().st_size)}, encode_chunked=False)
        connection.getresponse().read()


@contextmanager
def serving() -> Iterator[str]:
    """A server that reads whatever comes in pieces, hashes it as GitHub must, and knows one release."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    Sink.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Sink.root
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root = ""
    released: dict[str, object] | None = None
    assets: list[dict[str, object]] = []  # noqa: RUF012 - of the one server

    def log_message(self, *_: object) -> None: ...

    began = ended = 0.0  # of the uploads, monotonic seconds

    def _take(self) -> tuple[int, str]:
        left, digest = int(self.headers.get("Content-Length") or 0), hashlib.sha256()
        size = left
        while left:
            piece = self.rfile.read(min(left, 1 << 20))
            digest.update(piece)
            left -= len(piece)
        return size, digest.hexdigest()

    def _serve(self) -> None:
        url = urlsplit(self.path)
        if url.path.startswith("/uploads"):
            Sink.began = Sink.began or time.monotonic()
        size, digest = self._take()
        answer: object = {}
        if url.path.startswith("/uploads"):
            name = parse_qs(url.query)["name"][0]
            number = len(Sink.assets) + 1
            answer = {"id": number, "name": name, "size": size, "state": "uploaded", "digest": f"sha256:{digest}"}
            Sink.ended = time.monotonic()
            Sink.assets.append(answer)  # type: ignore[arg-type] # it is such a dict
        elif url.path.endswith("/assets"):
            answer = Sink.assets if "page=1" in url.query.split("&") else []
        elif self.command in {"POST", "PATCH"} and "releases" in url.path:
            draft = self.command == "POST"
            upload = f"{Sink.root}/uploads/1/assets{{?name}}"
            answer = Sink.released = {
                "id": 1, "tag_name": "v1", "draft": draft, "html_url": f"{Sink.root}/v1", "upload_url": upload,
            }  # fmt: skip
        elif url.path.endswith("/releases"):
            answer = [Sink.released] if Sink.released and "page=1" in url.query.split("&") else []
        elif "tags" in url.path and Sink.released and not Sink.released["draft"]:
            answer = Sink.released
        elif "tags" in url.path:
            self._answer(404, {})
            return
        self._answer(200, answer)

    do_GET = do_PUT = do_POST = do_PATCH = _serve  # noqa: N815 - http.server's names

    def _answer(self, status: int, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
