"""Where graphs come from: a path, the web, the Hugging Face Hub, or a wheel on PyPI. Cached, checked, never trusted."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qnnci import files, hub
from qnnci.errors import MachineError, QnnciError, UsageError
from qnnci.model import digests, wheel

FORMS = "a source is a path, https://…, hf://org/repo/file@revision or pypi://name==version/path/in/wheel"
LONGEST = 2000  # characters of a source; no honest one comes near
LFS = b"version https://git-lfs.github.com/spec"


@dataclass(frozen=True, slots=True)
class Source:
    """A graph's file as it stands on this machine; `spec` is what was asked for, without credentials."""

    spec: str
    path: Path
    sha256: str


def fetch(spec: str, *, sha256: str | None, base: Path, cache: Path) -> Source:
    """Bring the file of a source onto this machine.

    A path is taken relative to `base` and used where it lies, so external data files stay beside it. Everything
    else comes into `cache`: only the file that is named, so a graph with external data needs a local path.
    What is in the cache is used again if it is intact and has the digest asked for; a moving revision, and an
    https address without a digest, are looked up for changes first, and used as they are when offline.

    Raises:
        UsageError: the source is malformed, missing, refused, not the digest asked for, or not a model at all.
        MachineError: the network or the disk failed.
        ToolMissing: pip is needed and not installed.
        ToolCrashed: pip did not end.

    """
    scheme, _, rest = spec.partition("://") if "://" in spec else ("", "", spec)
    scheme = scheme.lower()
    expected = sha256.lower() if sha256 else None
    try:
        match scheme:
            case "":
                return _local(spec, expected, base, cache)
            case "http" | "https":
                return _web(_remote(spec), expected, cache)
            case "hf":
                return _from_hub(_remote(spec), hub.parse(rest), expected, cache)
            case "pypi":
                return _from_wheel(_remote(spec), wheel.parse(rest), expected, cache)
            case _:
                raise UsageError(f"sources of the form {shown(scheme)}:// are not known", hint=FORMS)
    except OSError as error:
        raise MachineError(
            f"{error.strerror or type(error).__name__}: {error.filename or cache}",
            hint="QNNCI_CACHE names the folder for downloads",
        ) from error


def shown(text: str) -> str:
    """Text of a user made fit for a message: short, and no control characters or broken Unicode."""
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= 200 else f"{clean[:199]}…"  # noqa: PLR2004 - what a line can bear


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint that names what is most like `name`, else what could be meant at all."""
    known = sorted(set(names))
    close = difflib.get_close_matches(name, known, n=4, cutoff=0.5) or [n for n in known if n.endswith(".onnx")][:8]
    return f"there is {', '.join(map(shown, close))}" if close else "check the path: there is no .onnx file there"


def _local(spec: str, expected: str | None, base: Path, cache: Path) -> Source:
    path = base / spec
    try:
        if path.is_file():
            digest = digests.sha256_of(path, cache)
            _refuse_impostor(spec, path)
            _demand(spec, digest, expected, "if the file is the right one, put its digest into the project file")
            return Source(spec, path, digest)
        exists = path.exists()
        folder = path if path.is_dir() else path.parent
        names = [entry.name for entry in itertools.islice(os.scandir(folder), 10_000)] if folder.is_dir() else None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a possible file name"
        raise UsageError(f"cannot read {shown(spec)}: {why}", hint=FORMS) from error
    if exists:
        raise UsageError(f"{shown(spec) or 'the source'} is not a file", hint=nearest("", names or ()))
    if re.match(r"[\w.-]+@[\w.-]+:|[A-Za-z]{2,}:", spec):
        raise UsageError(f"sources of the form {shown(spec.partition(':')[0])}: are not known", hint=FORMS)
    if names is None:
        raise UsageError(f"{shown(spec)}: there is no folder {shown(str(folder))}", hint="check the path")
    raise UsageError(f"there is no file {shown(str(path))}", hint=nearest(path.name, names))


def _remote(spec: str) -> str:
    if not spec.isprintable() or " " in spec or "\\" in spec or len(spec) > LONGEST:
        raise UsageError(f"not a possible address: {shown(spec.partition('://')[0])}://…", hint=FORMS)
    return spec


def _web(url: str, expected: str | None, cache: Path) -> Source:
    from qnnci import http

    http.check_url(url)
    spec = http.public(url)
    with _entry(cache, "https", url) as folder:
        path, part, note = folder / _safe_name(spec), folder / ".part", folder / ".validator"
        digest = digests.intact(path, cache)
        if digest and expected is None and note.exists():
            validator = note.read_text(encoding="utf-8")
            digest = digest if not validator or http.unchanged(url, validator) else None
        if digest and expected in (None, digest):
            return Source(spec, path, digest)
        validator = http.download(url, part)
        digest = _accept(spec, part, path, expected, cache)
        files.write_text(note, validator)
    return Source(spec, path, digest)


def _from_hub(spec: str, file: hub.HubFile, expected: str | None, cache: Path) -> Source:
    # All files of one revision share a folder, side by side as in the repo and as files, not links.
    with _entry(cache, "hf", f"{file.repo}@{file.revision}") as folder:
        path = folder / file.path
        digest = digests.intact(path, cache)
        if digest and (digest == expected or (expected is None and file.pinned)):
            return Source(spec, path, digest)
        if digest is None:
            path.unlink(missing_ok=True)
        hub.download(file, folder)
        digest = digests.intact(path, cache) or files.sha256(path)
        with _removed_on_refusal(path):
            _refuse_impostor(spec, path)
            _demand(spec, digest, expected, _MOVED)
        digests.remember(path, cache, digest)
    return Source(spec, path, digest)


def _from_wheel(spec: str, member: wheel.Member, expected: str | None, cache: Path) -> Source:
    with _entry(cache, "pypi", spec) as folder:
        path, part = folder / _safe_name(member.path), folder / ".part"
        digest = digests.intact(path, cache)
        if digest and expected in (None, digest):
            return Source(spec, path, digest)
        with _entry(cache, "pypi", member.requirement) as shelf:
            whole = shelf / "whole.whl"
            if not digests.intact(whole, cache):
                wheel.download(member, whole)
                digests.remember(whole, cache, files.sha256(whole))
            names = wheel.names(whole)
            if member.path not in names:
                raise UsageError(
                    f"{member.requirement} has no file {shown(member.path)}", hint=nearest(member.path, names)
                )
            wheel.take(whole, member, part)
        digest = _accept(spec, part, path, expected, cache)
    return Source(spec, path, digest)


@contextlib.contextmanager
def _entry(cache: Path, kind: str, identity: str) -> Iterator[Path]:
    """The cache folder of one source, held by this process alone meanwhile. A killed one lets go of it."""
    folder = cache / kind / hashlib.sha256(identity.encode()).hexdigest()
    with files.disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with files.locked(folder.with_suffix(".lock")):
        yield folder


def _safe_name(path: str) -> str:
    """A file name made of the last part of any path: no separators, no leading dot, at most 100 characters."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", path.rpartition("/")[2]).lstrip(".")
    return name[-100:].lstrip(".") or "model.onnx"


def _accept(spec: str, part: Path, path: Path, expected: str | None, cache: Path) -> str:
    """Judge what was downloaded to `part`; the good comes to stand as `path`, anything else is removed."""
    with _removed_on_refusal(part):
        digest = files.sha256(part)
        _refuse_impostor(spec, part)
        _demand(spec, digest, expected, _MOVED)
    with files.disk_errors(path):
        files.commit(part, path)
    digests.remember(path, cache, digest)
    return digest


_MOVED = "if the file was changed on purpose, put the new digest into the project file; otherwise do not use it"


@contextlib.contextmanager
def _removed_on_refusal(path: Path) -> Iterator[None]:
    try:
        yield
    except QnnciError:
        path.unlink(missing_ok=True)
        raise


def _demand(spec: str, digest: str, expected: str | None, hint: str) -> None:
    if expected not in (None, digest):
        raise UsageError(f"{shown(spec)} has sha256 {digest}, but {expected} was asked for", hint=hint)


def _refuse_impostor(spec: str, path: Path) -> None:
    """Refuse what servers and repos hand out in place of a model. No ONNX file begins with `<`."""
    with path.open("rb") as file:
        head = file.read(512).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise UsageError(f"{shown(spec)} is empty", hint="export or download the model again")
    if head.startswith(LFS):
        raise UsageError(
            f"{shown(spec)} is a Git LFS pointer, not the model itself",
            hint="run `git lfs pull` in its repository (in a workflow: actions/checkout with `lfs: true`), "
            "or give the address of the file itself",
        )
    if head.startswith(b"<"):
        raise UsageError(
            f"{shown(spec)} is a web page (HTML or XML), not a model",
            hint="give the address of the file itself: on GitHub the raw one, on the Hub hf://org/repo/file",
        )
