"""The one way to the network: a patient session, and downloads that resume. No message shows a credential."""

from __future__ import annotations

import ipaddress
import time
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse
from urllib3.util import Retry, Url, parse_url

from qnnci import __version__
from qnnci.errors import MachineError, UsageError
from qnnci.files import disk_errors

TRIES = 5  # how often a request, and after it a broken body, is begun
BACKOFF = 0.5  # seconds; doubled each time
LONGEST_WAIT = 120.0  # seconds; a server may ask for hours by Retry-After
TIMEOUT = (10.0, 60.0)  # seconds to connect, and between two reads
CHUNK = 1 << 16
_SENT = 1 << 20  # bytes of a file that are sent at a time; urllib3's own 16 KiB halve what loopback can do
PLAIN = {"Accept-Encoding": "identity"}  # lengths and ranges count the file's own bytes


class _Retry(Retry):
    def get_retry_after(self, response: BaseHTTPResponse) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, LONGEST_WAIT)


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> str | None:
        target = super().get_redirect_target(resp)
        if target:
            check_url(urljoin(resp.url, target))
        return target


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs, blocksize=_SENT)


def session(*, tries: int = TRIES) -> requests.Session:
    """A session that waits and retries idempotent requests on 429, 5xx and broken connections.

    After the last try the failing response is returned as it is. A redirect to plain http raises UsageError.
    """
    retry = _Retry(
        total=tries - 1,
        backoff_factor=BACKOFF,
        status_forcelist=(429, 500, 502, 503, 504),
        raise_on_status=False,
    )
    http = _Session()
    http.mount("https://", _Adapter(max_retries=retry))
    http.mount("http://", _Adapter(max_retries=retry))
    http.headers["User-Agent"] = f"qnnci/{__version__}"
    return http


def check_url(url: str) -> None:
    """Let pass what may be fetched: https, and http from this machine itself.

    Raises:
        UsageError: anything else.

    """
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.host:
        raise UsageError(f"not a web address: {public(url)}", hint="write it as https://host/path/model.onnx")
    if parts.scheme == "http" and not _loopback(parts.host):
        raise UsageError(
            f"plain http is not safe to fetch a model by: {public(url)}",
            hint="use https://; http:// is for servers on this machine (localhost) only",
        )


def public(url: str) -> str:
    """The address without user, password, query and fragment, which may all hold secrets."""
    parts = _parts(url)
    if parts is None or not parts.host:
        scheme = url.partition("://")[0]
        return f"{scheme}://…" if scheme.isascii() and scheme.isalpha() else "…"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.host}{port}{parts.path or ''}"


def download(url: str, part: Path) -> str:
    """Download to `part`, going on from where an earlier attempt (of this or another run) stopped.

    Returns what names this version of the file: a strong ETag, else Last-Modified, else "". It is kept
    in `<part>.validator` meanwhile, so that a file which changed on the server is begun anew.

    Raises:
        UsageError: the address is bad, or the server says that there is no such file or no right to it.
        MachineError: no connection, the server fails, the body ends early each time, or the disk is full.

    """
    check_url(url)
    note = part.with_name(f"{part.name}.validator")
    with session() as http:
        for attempt in range(TRIES):
            if attempt:
                time.sleep(BACKOFF * 2**attempt)
            with _get(http, url, part, note) as response:
                if _receive(response, part, note):
                    return note.read_text(encoding="utf-8")
    raise MachineError(
        f"the download broke off {TRIES} times: {public(url)}", hint="run it again: it goes on where it stopped"
    )


def unchanged(url: str, validator: str) -> bool:
    """Whether the server still has the version that `validator` names; True also when it cannot tell."""
    condition = "If-None-Match" if validator.startswith('"') else "If-Modified-Since"
    try:
        with (
            session(tries=1) as http,
            http.head(
                url, headers={**PLAIN, condition: validator}, allow_redirects=True, timeout=TIMEOUT[0]
            ) as response,
        ):
            return response.status_code != requests.codes.ok or _validator(response) == validator
    except (requests.RequestException, HTTPError, ValueError):
        return True


def _parts(url: str) -> Url | None:
    if not url.isprintable() or " " in url or "\\" in url:
        return None
    try:
        return parse_url(url)
    except (HTTPError, ValueError):
        return None


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _get(http: requests.Session, url: str, part: Path, note: Path) -> requests.Response:
    """Ask for the file, or for the rest of it; what comes back has a status that `_receive` knows."""
    headers = dict(PLAIN)
    with disk_errors(part):
        if (have := _size(part)) and note.exists() and (validator := note.read_text(encoding="utf-8")):
            headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    # An exception of requests spells out the address with its secrets: `from None`, and only its kind is told.
    try:
        response = http.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    except requests.exceptions.SSLError:
        raise MachineError(
            f"no trusted connection to {public(url)}",
            hint="if a proxy has a certificate of its own, name it in REQUESTS_CA_BUNDLE",
        ) from None
    except (requests.ConnectionError, requests.Timeout) as error:
        raise MachineError(
            f"cannot reach {public(url)} ({type(error).__name__})",
            hint="check the network, and HTTPS_PROXY if there is a proxy",
        ) from None
    except (requests.RequestException, HTTPError, ValueError) as error:
        raise UsageError(f"cannot fetch {public(url)} ({type(error).__name__})", hint="check the address") from None
    except OSError as error:
        raise MachineError(f"cannot reach {public(url)}: {error}", hint="check REQUESTS_CA_BUNDLE") from None
    if response.status_code in (200, 206, 416):
        return response
    response.close()
    raise _refusal(response.status_code, public(url))


def _refusal(status: int, shown: str) -> UsageError | MachineError:
    if status in (401, 403, 407):
        return UsageError(
            f"the server refuses access (HTTP {status}): {shown}",
            hint="the link may have expired, or needs a login (netrc is read)",
        )
    if status in (404, 410):
        return UsageError(f"there is no such file (HTTP {status}): {shown}", hint="check the address")
    if status == requests.codes.too_many_requests or status >= requests.codes.internal_server_error:
        return MachineError(f"the server fails (HTTP {status}): {shown}", hint="try again later")
    return UsageError(f"the server's answer is not a file (HTTP {status}): {shown}", hint="check the address")


def _receive(response: requests.Response, part: Path, note: Path) -> bool:
    """Write the body to `part`; False if another request is needed for what is missing."""
    with disk_errors(part):
        have = _size(part) if response.status_code != requests.codes.ok else 0
        given = response.headers.get("Content-Range", "")
        if response.status_code == 416 and given == f"bytes */{have}":  # noqa: PLR2004 - the rest of it is nothing
            return True
        if response.status_code != requests.codes.ok and not _goes_on(response, have, note):
            part.unlink(missing_ok=True)
            return False
        if not have:
            note.write_text(_validator(response), encoding="utf-8")
        with part.open("ab" if have else "wb") as file:
            try:
                for chunk in response.iter_content(CHUNK):
                    file.write(chunk)
            except requests.RequestException:
                return False
        length = response.headers.get("Content-Length", "")
        encoded = "Content-Encoding" in response.headers
        return encoded or not length.isdigit() or _size(part) == have + int(length)


def _goes_on(response: requests.Response, have: int, note: Path) -> bool:
    """Whether a 206 answer is the rest, from `have` on, of the same version of the file."""
    given = response.headers.get("Content-Range", "")
    same = note.exists() and _validator(response) in ("", note.read_text(encoding="utf-8"))
    return response.status_code == requests.codes.partial_content and given.startswith(f"bytes {have}-") and same


def _validator(response: requests.Response) -> str:
    """What may stand in If-Range for this version; weak ETags may not."""
    if "Content-Encoding" in response.headers:
        return ""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
