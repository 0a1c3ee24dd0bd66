"""The Hugging Face Hub on loopback, as its API is: repos, trees, LFS, commits on a parent, pull requests, OIDC.

It has no Xet. Commits are kept whole: each is all files of the repo by path, and its parent.
"""

from __future__ import annotations

import base64
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
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_0123456789abcdefTHESECRET"  # noqa: S105 - of this server only
EXCHANGED = "hf_jwt_ofOneHourANDSECRET"
IDENTITY, ASKING = "eyJ.identity.SECRET", "asks-for-an-identity-SECRET"
REPO = "org/model"
PAGE = 7  # entries of a tree; the Hub's are 1,000

Answer = tuple[int, Any, dict[str, str]]


@dataclass(frozen=True)
class Blob:
    """A file at a commit; `lfs` where git has only a pointer to it."""

    body: bytes
    lfs: bool

    def told(self, path: str) -> dict[str, Any]:
        name = hashlib.sha1(b"blob %d\0" % len(self.body) + self.body, usedforsecurity=False).hexdigest()
        about = {"type": "file", "path": path, "size": len(self.body), "oid": name}
        if self.lfs:
            digest = hashlib.sha256(self.body).hexdigest()
            about |= {"oid": "f" * 40, "lfs": {"oid": digest, "size": len(self.body), "pointerSize": 130}}
        return about


@dataclass
class Repo:
    private: bool
    commits: dict[str, dict[str, Blob]] = field(default_factory=dict)
    history: list[tuple[str, str, str]] = field(default_factory=list)  # revision, id, message
    refs: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    stored: dict[str, bytes] = field(default_factory=dict)  # of LFS, by sha256
    verified: set[str] = field(default_factory=set)

    def commit(self, revision: str, files: dict[str, Blob], message: str) -> str:
        made = hashlib.sha1(f"{len(self.history)} {revision}".encode(), usedforsecurity=False).hexdigest()
        self.commits[made], self.refs[revision] = files, made
        self.history.append((revision, made, message))
        return made

    def put(self, path: str, body: bytes, revision: str = "main", *, lfs: bool = False) -> str:
        """What a person commits."""
        return self.commit(revision, {**self.at(revision), path: Blob(body, lfs)}, "by hand")

    def at(self, revision: str) -> dict[str, Blob]:
        return self.commits[self.refs.get(revision, revision)]

    def bodies(self, revision: str = "main") -> dict[str, bytes]:
        return {path: blob.body for path, blob in self.at(revision).items() if path != ".gitattributes"}


class Hub:
    """The server's state, and how it fails: each request with `failing` probability, in one of `ways`."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.lock = threading.RLock()
        self.dice = random.Random(5)
        self.failing = 0.0
        self.ways = ("500", "503", "reset", "lost", "half", "limit")
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.next: list[tuple[str, int, dict[str, str], bytes]] = []  # answers to requests of an address
        self.before_commit: list[str] = []  # paths that a person commits just before ours
        self.publishers: set[str] = set()
        self.lose_commits = 0
        self.root = ""

    def make(self, name: str = REPO, *, private: bool = False) -> Repo:
        made = self.repos[name] = Repo(private)
        made.commit("main", {".gitattributes": Blob(b"*.bin filter=lfs\n", lfs=False)}, "initial commit")
        return made

    @property
    def repo(self) -> Repo:
        return self.repos[REPO]

    def count(self, method: str, part: str) -> int:
        return len([each for each in self.asked if each[0] == method and part in each[1]])


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


def _error(status: int, text: str, code: str = "") -> Answer:
    return status, {"error": text}, {"X-Error-Message": text} | ({"X-Error-Code": code} if code else {})


_NO_REPO = _error(404, "Repository not found", "RepoNotFound")
_NO_FILE = _error(404, "Entry not found", "EntryNotFound")


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None: ...

    def _serve(self) -> None:
        hub, url = self.hub, urlsplit(self.path)
        self.query = {key: values[0] for key, values in parse_qs(url.query).items()}
        path = url.path
        with hub.lock:
            hub.asked.append((self.command, path))
            way = hub.dice.choice(hub.ways) if hub.dice.random() < hub.failing else ""
            prepared = next((each for each in hub.next if each[0] in path), None)
            if prepared:
                hub.next.remove(prepared)
        length = int(self.headers.get("Content-Length") or 0)
        if way == "half" and length > 1:
            self.rfile.read(length // 2)
            self._hang_up()
            return
        self.body = (
            self._chunked() if "chunked" in self.headers.get("Transfer-Encoding", "") else self.rfile.read(length)
        )
        if prepared:
            self._raw(*prepared[1:])
        elif way == "limit":
            self._answer(429, {"error": "Too many requests"}, {"Retry-After": "1"})
        elif way in {"500", "503"}:
            self._answer(int(way), {"error": "Server error"}, {})
        elif way in {"reset", "half"}:
            self._hang_up()
        else:
            with hub.lock:
                answer = self._guarded(path)
            if "/commit/" in path and self.hub.lose_commits:
                self.hub.lose_commits -= 1
                way = "lost"
            if way == "lost":
                self._hang_up()
            else:
                self._answer(*answer)

    do_GET = _serve  # noqa: N815 - http.server's names
    do_HEAD = _serve  # noqa: N815
    do_POST = _serve  # noqa: N815
    do_PUT = _serve  # noqa: N815

    def _chunked(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(2)

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    def _guarded(self, path: str) -> Answer:
        if path == "/identity":
            known = self.headers["Authorization"] == f"Bearer {ASKING}" and self.query["audience"] == self.hub.root
            return (200, {"value": IDENTITY}, {}) if known else _error(403, "no identity")
        if path == "/oauth/token":
            known = self.data["subject_token"] == IDENTITY and self.data["resource"] in self.hub.publishers
            token = {"access_token": EXCHANGED, "token_type": "bearer", "expires_in": 3600}
            return (200, token, {}) if known else (400, {"error": "invalid_grant"}, {})
        if found := re.fullmatch(r"/storage/([^/]+/[^/]+)/(\w+)", path):
            if self.headers.get("Authorization"):
                return _error(400, "a signed address takes no token")
            self.hub.repos[found[1]].stored[found[2]] = self.body
            return 200, None, {"ETag": '"x"'}
        if self.headers.get("Authorization") not in {f"Bearer {TOKEN}", f"Bearer {EXCHANGED}"}:
            return _error(401, "Invalid credentials in Authorization header")
        return self._route(path)

    def _route(self, path: str) -> Answer:
        if path == "/api/repos/create":
            return self._create()
        if path == "/api/validate-yaml":
            bad = "license: not-a-licence" in self.data["content"]
            said = {"errors": [{"message": '"license" must be one of'}] if bad else [], "warnings": []}
            return 400 if bad else 200, said, {}
        found = re.fullmatch(r"(?:/api/models)?/([\w.-]+/[\w.-]+?)(\.git)?(?:/(.*))?", path)
        repo = self.hub.repos.get(found[1]) if found else None
        if not found or not repo:
            return _NO_REPO
        verb, _, rest = (found[3] or "").partition("/")
        if verb in {"resolve", "tree", "revision", "commit", "preupload", "branch"}:
            return getattr(self, f"_{verb}")(repo, *map(unquote, rest.split("/", 1)))
        others = {"": self._about, "info": self._lfs, "discussions": self._discussions, "verify": self._verify}
        return others[verb](repo) if verb in others else _error(404, "Not found")

    def _create(self) -> Answer:
        name = f"{self.data['organization']}/{self.data['name']}"
        if name in self.hub.repos:
            return _error(409, "You already created this model repo")
        if self.headers["Authorization"] == f"Bearer {EXCHANGED}":
            return _error(403, "this token is of one repo")
        self.hub.make(name, private=self.data.get("visibility") == "private" or bool(self.data.get("private")))
        return 200, {"url": f"{self.hub.root}/{name}"}, {}

    def _about(self, repo: Repo) -> Answer:
        return self._revision(repo, "main")

    def _revision(self, repo: Repo, revision: str) -> Answer:
        if revision not in {*repo.refs, *repo.commits}:
            return _error(404, "Invalid rev id", "RevisionNotFound")
        (name,) = [name for name, each in self.hub.repos.items() if each is repo]
        return 200, {"id": name, "sha": repo.refs.get(revision, revision), "private": repo.private, "tags": []}, {}

    def _branch(self, repo: Repo, name: str) -> Answer:
        if name in repo.refs:
            return _error(409, "Reference already exists")
        if name.startswith("refs/"):
            return _error(400, "Invalid reference for a branch")
        repo.refs[name] = repo.refs["main"]
        return 200, {}, {}

    def _tree(self, repo: Repo, revision: str) -> Answer:
        files = sorted(repo.at(revision).items())
        folders = sorted({path.rsplit("/", 1)[0] for path, _ in files if "/" in path})
        entries = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in folders]
        entries += [blob.told(path) for path, blob in files]
        start = int(self.query.get("cursor", 0))
        more = f'<{self.hub.root}/api/models/{REPO}/tree/{revision}?recursive=true&cursor={start + PAGE}>; rel="next"'
        return 200, entries[start : start + PAGE], {"Link": more} if len(entries) > start + PAGE else {}

    def _resolve(self, repo: Repo, revision: str, path: str) -> Answer:
        blob = repo.at(revision).get(path)
        if not blob:
            return _NO_FILE
        etag = blob.told(path)["lfs"]["oid"] if blob.lfs else blob.told(path)["oid"]
        return 200, blob.body, {"ETag": f'"{etag}"', "X-Repo-Commit": repo.refs.get(revision, revision)}

    def _preupload(self, repo: Repo, revision: str) -> Answer:
        ignored = repo.at(revision).get(".gitignore", Blob(b"", lfs=False)).body.decode().split()
        told = []
        for each in self.data["files"]:
            large = each["path"].endswith((".bin", ".bz2")) or each["size"] > 1 << 20
            mode = "lfs" if large else "regular"
            told.append(
                {"path": each["path"], "uploadMode": mode, "shouldIgnore": each["path"] in ignored, "oid": None}
            )
        return 200, {"files": told}, {}

    def _lfs(self, repo: Repo) -> Answer:
        assert "xet" not in self.data["transfers"]
        name = next(name for name, each in self.hub.repos.items() if each is repo)
        objects = []
        for each in self.data["objects"]:
            about = {"oid": each["oid"], "size": each["size"]}
            if each["oid"] not in repo.stored or each["oid"] not in repo.verified:
                put = {"href": f"{self.hub.root}/storage/{name}/{each['oid']}?X-Amz-Signature=SIGNED"}
                about["actions"] = {"upload": put, "verify": {"href": f"{self.hub.root}/api/models/{name}/verify"}}
            objects.append(about)
        return 200, {"objects": objects, "transfer": "basic"}, {}

    def _verify(self, repo: Repo) -> Answer:
        body = repo.stored.get(self.data["oid"], b"")
        if hashlib.sha256(body).hexdigest() != self.data["oid"] or len(body) != self.data["size"]:
            return _error(422, "not what was announced")
        repo.verified.add(self.data["oid"])
        return 200, {}, {}

    def _commit(self, repo: Repo, revision: str) -> Answer:
        lines = [json.loads(line) for line in self.body.splitlines()]
        (header,) = [line["value"] for line in lines if line["key"] == "header"]
        if self.hub.before_commit:
            repo.put(self.hub.before_commit.pop(0), b"of a person", revision)
        request = self.query.get("create_pr") == "1"
        head, parent = repo.refs[revision], header.get("parentCommit")
        if not request and parent and parent != head:
            return _error(412, "A commit has happened since. Please refresh and try again.")
        files = dict(repo.commits[parent or head])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), lfs=False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in repo.verified:
                    return _error(400, f"{value['path']} was not uploaded")
                files[value["path"]] = Blob(repo.stored[value["oid"]], lfs=True)
            elif line["key"] == "deletedFile":
                if value["path"] not in files:
                    return _error(404, "A file with this name doesn't exist", "EntryNotFound")
                del files[value["path"]]
        if request:
            repo.requests.append(header["summary"])
            revision = f"refs/pr/{len(repo.requests)}"
        made = repo.commit(revision, files, header["summary"])
        told = {"success": True, "commitOid": made, "commitUrl": f"{self.hub.root}/{REPO}/commit/{made}"}
        page = f"{self.hub.root}/{REPO}/discussions/{len(repo.requests)}"
        return 200, {**told, "hookOutput": "", "pullRequestUrl": page if request else None}, {}

    def _discussions(self, repo: Repo) -> Answer:
        about = {"repo": {"name": REPO, "type": "model"}, "author": {"name": "bot"}, "isPullRequest": True}
        about |= {"status": "open", "createdAt": "2026-12-01T10:00:00.000Z"}
        found = [{**about, "num": number, "title": title} for number, title in enumerate(repo.requests, 1)]
        return 200, {"discussions": found, "count": len(found), "start": 0}, {}

    def _answer(self, status: int, data: Any, headers: dict[str, str]) -> None:
        body = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        self._raw(status, headers, body)

    def _raw(self, status: int, headers: dict[str, str], body: bytes) -> None:
        with contextlib.suppress(OSError):
            self.send_response(status)
            for key, value in {"X-Request-Id": "1", **headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
