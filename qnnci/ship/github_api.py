"""GitHub's REST API as releases need it: patient, honest about refusals, and silent about the token."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from qnnci.errors import MachineError, QnnciError, UsageError
from qnnci.http import BACKOFF, LONGEST_WAIT, TIMEOUT, TRIES, check_url, public, session

PER_PAGE = 100
_MOST_PAGES = 100
_FAILS = range(500, 600)
_LIMITED = (403, 429)
MINUTE = 60.0  # seconds; what GitHub asks to wait at least at a limit that names no time


class Conflict(Exception):
    """HTTP 422: what was to be made is there already, or GitHub does not take it."""


class NotFound(Exception):
    """HTTP 404."""


class _Bearer(AuthBase):
    """The token as requests' own kind of login: as a plain header, an entry in ~/.netrc would take its place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class Broken(Exception):
    """An upload that the server or the network ended; nobody knows what arrived."""


@dataclass(frozen=True, slots=True)
class Api:
    """One repository on GitHub or GitHub Enterprise. The token is sent to these hosts only, and is in no repr.

    `base` is the API's address, such as https://api.github.com. `sleep` waits for seconds.
    """

    base: str
    repo: str
    token: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep
    http: requests.Session = field(default_factory=lambda: session(tries=1), repr=False)

    def get(self, path: str, **query: str | int) -> Any:
        return self.ask("GET", f"{self._root()}/{path}", query=query)

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every item of a list that comes in pages."""
        for page in range(1, _MOST_PAGES + 1):
            items = self.get(path, per_page=PER_PAGE, page=page)
            if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
                raise MachineError(f"GitHub's answer about {path} is no list", hint="is the API's address right?")
            yield from items
            if len(items) < PER_PAGE:
                return

    def post_once(self, path: str, body: Mapping[str, Any]) -> Any:
        """Make something, in one try: whoever gets a MachineError looks whether it was made."""
        return self.ask("POST", f"{self._root()}/{path}", body=body, tries=1)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self.ask("PATCH", f"{self._root()}/{path}", body=body)

    def delete(self, path: str) -> None:
        """Delete what may be gone already."""
        try:
            self.ask("DELETE", f"{self._root()}/{path}")
        except NotFound:
            return

    def upload(self, url: str, name: str, file: Path, size: int) -> Any:
        """Send one file, streamed, in one try.

        Raises:
            Broken: nobody knows what arrived.
            Conflict: there is an asset of this name.
            UsageError, MachineError: as `ask`.

        """
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        with file.open("rb") as stream:
            try:
                answer = self._send("POST", url, {"name": name}, stream if size else b"", headers)
            except requests.RequestException as error:
                raise Broken(type(error).__name__) from None
        if answer.status_code in _FAILS:
            raise Broken(f"HTTP {answer.status_code}")
        if wait := _asked_to_wait(answer):
            self.sleep(wait)
            raise Broken("rate limit")
        return self._read(answer, url)

    def ask(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        tries: int = TRIES,
    ) -> Any:
        """One request, again on broken connections, 5xx and rate limits; what a JSON answer holds, None without one.

        Raises:
            NotFound, Conflict: 404 and 422.
            UsageError: the token is refused or may not do this.
            MachineError: no answer, or none that makes sense.

        """
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"} if body is not None else {}
        told = ""
        for attempt in range(tries):
            if attempt:
                self.sleep(pause(attempt))
            try:
                answer = self._send(method, url, query, data, headers)
            except requests.RequestException as error:  # its text holds the address; only its kind is told
                told = type(error).__name__
                continue
            if wait := _asked_to_wait(answer):
                told = f"rate limit, HTTP {answer.status_code}"
                self.sleep(wait)
            elif answer.status_code in _FAILS:
                told = f"HTTP {answer.status_code}"
            else:
                return self._read(answer, url)
        raise MachineError(
            f"GitHub does not answer after {tries} tries ({told}): {public(url)}",
            hint="run it again: what was uploaded is kept",
        )

    def _is_own(self, url: str) -> bool:
        """Whether an address is of this GitHub: its API's host, or the one of its uploads beside it."""
        own, host = urlsplit(self.base).netloc, urlsplit(url).netloc
        return host in {own, f"uploads.{own.removeprefix('api.')}"}

    def _root(self) -> str:
        return f"{self.base.rstrip('/')}/repos/{self.repo}"

    def _send(self, method: str, url: str, query: Any, data: Any, headers: Mapping[str, str]) -> requests.Response:
        check_url(url)
        if not self._is_own(url):
            message = f"GitHub's answer names {public(url)}, which is not of {public(self.base)}: the token stays here"
            raise MachineError(message, hint="is the API's address right? `--api-url`")
        return self.http.request(
            method,
            url,
            params=query,
            data=data,
            headers={
                **headers,
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
            },
            auth=_Bearer(self.token),
            timeout=TIMEOUT,
            allow_redirects=method == "GET",
        )

    def _read(self, answer: requests.Response, url: str) -> Any:
        status = answer.status_code
        if status == requests.codes.not_found:
            raise NotFound(public(url))
        if status == requests.codes.unprocessable_entity:
            raise Conflict(_said(answer))
        if status == requests.codes.unauthorized:
            raise UsageError("GitHub does not take the token (HTTP 401)", hint="it may have expired: make a new one")
        if status == requests.codes.forbidden:
            raise UsageError(
                f"the token may not do this (HTTP 403): {_said(answer)}",
                hint="the job needs `permissions: {contents: write}`, a token of your own the right to contents",
            )
        if not answer.ok:
            raise MachineError(f"GitHub refuses (HTTP {status}): {_said(answer)}, {public(url)}", hint="is it down?")
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            message = f"GitHub's answer is not JSON: {public(url)}"
            raise MachineError(message, hint="is the API's address right? `--api-url`") from None


def pause(attempt: int) -> float:
    """Seconds to wait before the nth try: doubled each time, and not the same for all that wait."""
    return float(BACKOFF * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - nobody is to be kept from guessing


def _asked_to_wait(answer: requests.Response) -> float:
    """Seconds that a rate limit asks for; 0 where this is none."""
    if answer.status_code not in _LIMITED:
        return 0.0
    headers = answer.headers
    asked = headers.get("Retry-After", "")
    if asked.isdecimal():
        return min(float(asked), LONGEST_WAIT) or BACKOFF
    if headers.get("X-RateLimit-Remaining") == "0" and headers.get("X-RateLimit-Reset", "").isdecimal():
        return min(max(float(headers["X-RateLimit-Reset"]) - time.time(), BACKOFF), LONGEST_WAIT)
    limited = answer.status_code == requests.codes.too_many_requests or "rate limit" in _said(answer).lower()
    return min(MINUTE, LONGEST_WAIT) if limited else 0.0


def _said(answer: requests.Response) -> str:
    """What GitHub says went wrong, on one line."""
    try:
        data = answer.json()
    except ValueError:
        return "no reason given"
    if not isinstance(data, dict):
        return "no reason given"
    errors = data.get("errors")
    codes = [str(each.get("code", "")) for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return " ".join(" ".join([str(data.get("message", "")), *codes]).split())[:300]


def as_error(error: Exception, what: str) -> QnnciError:
    """An answer that nobody waited for, for people."""
    if isinstance(error, NotFound):
        return UsageError(
            f"GitHub finds no {what}", hint="is the repository's name right, and may the token read and write it?"
        )
    return UsageError(f"GitHub does not take {what}: {error}", hint="see the message")
