"""Choosing where run-time libraries come from: what was asked for, else what fits the platform."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from qnnci.errors import QnnciError, UsageError
from qnnci.ship import runtime_fetch as fetch
from qnnci.ship import runtime_shelf as shelf
from qnnci.ship.runtime_set import Need, Platform, Wanted, parted
from qnnci.ship.runtime_shelf import Shelf
from qnnci.toolchain import sdk

FORMS = "sdk, pypi, pypi==VERSION, maven, https://…, or a path: an SDK's folder, a wheel or an AAR"


@dataclass(frozen=True, slots=True)
class Request:
    """What is looked for. `source` is what the user named, empty where anything will do.

    `tools` are the versions that the manifest tells, `maven` the address of a repository.
    """

    platform: Platform
    need: Need
    source: str
    tools: Mapping[str, str]
    maven: str
    cache: Path
    say: fetch.Say


def find(request: Request, libraries: Iterable[Wanted]) -> Shelf:
    """The first source that has every library; where none has, the first that could be opened.

    Raises:
        UsageError: the source is malformed, missing, refused, or of another QAIRT.
        ToolMissing: there is no such SDK, or no pip.
        MachineError: the network or disk failed.
        ToolCrashed: pip did not end.

    """
    opened: list[Shelf] = []
    problems: list[QnnciError] = []
    libraries = list(libraries)
    for open_it in _openers(request):
        try:
            found = open_it(request)
        except QnnciError as error:
            problems.append(error)
            continue
        if not found.lacks(libraries):
            return found
        opened.append(found)
    if opened:
        return opened[0]
    if len(problems) == 1:
        raise problems[0]
    told = "; ".join(problem.message for problem in problems)
    raise type(problems[0])(f"no source has the libraries: {told}", hint=problems[-1].hint, where=problems[0].where)


def _openers(request: Request) -> list[Callable[[Request], Shelf]]:
    source = request.source
    if not source:
        return [_sdk, _maven] if not request.platform.wheel else [_pypi, _sdk]
    named = {"sdk": _sdk, "pypi": _pypi, "maven": _maven}
    if source in named:
        return [named[source]]
    if source.startswith("pypi=="):
        return [_pypi]
    if "://" in source:
        return [_web]
    return [_path]


def _sdk(request: Request) -> Shelf:
    return shelf.of_sdk(sdk.find(request.need.version, cache=request.cache), request.platform)


def _pypi(request: Request) -> Shelf:
    platform, needed = request.platform, request.need
    if not platform.wheel:
        raise UsageError(f"there is no wheel for {platform.name}", hint="`--from sdk` or `--from maven`")
    asked = request.source.partition("==")[2]
    fitting = (each for each in fetch.packages() if each.qairt.startswith(f"{needed.version}."))
    known = [each.version for each in fitting if platform.name in each.wheels]
    told = re.fullmatch(r"[0-9][\w.]*", request.tools.get(fetch.PACKAGE, ""))
    version = asked or next(iter(known), "") or (told[0] if told else "")
    if not version:
        raise UsageError(
            f"no {fetch.PACKAGE} is known to have QAIRT {needed.version}",
            hint=f"name one that has: `--from pypi==VERSION`; else `--from sdk`, with an SDK {needed.version}",
        )
    wheel = fetch.from_pypi(version, platform.wheel, request.cache, request.say)
    return _opened(wheel, f"{fetch.PACKAGE} {version} ({platform.wheel})", needed)


def _maven(request: Request) -> Shelf:
    """Only x.y.0 is published; what the libraries inside say decides whether they are those of x.y.z."""
    if request.platform.name != "android":
        raise UsageError(
            f"{fetch.ARTIFACT} is for Android, not for {request.platform.name}", hint="`--from pypi` or `--from sdk`"
        )
    version = published(request.need.version)
    aar = fetch.from_maven(version, request.maven or fetch.CENTRAL, request.cache, request.say)
    found = _opened(aar, f"{fetch.ARTIFACT}:{version}", None, claim=version)
    if version == request.need.version:
        return found
    return replace(found, note=f"{fetch.ARTIFACT} is published as {version} only, not as {request.need.version}")


def published(version: str) -> str:
    """The version of qnn-runtime that Maven Central may have for a QAIRT version."""
    return f"{version.rpartition('.')[0]}.0"


def _web(request: Request) -> Shelf:
    path = fetch.from_web(request.source, request.cache, request.say)
    return _opened(path, path.name, request.need)


def _path(request: Request) -> Shelf:
    path = sdk.path_of(request.source)
    if path.is_file():
        return shelf.of_zip(path, path.name)
    if not path.is_dir():
        raise UsageError(f"there is no {request.source[:200]}", hint=f"sources are {FORMS}")
    return shelf.of_sdk(sdk.find(root=str(path)), request.platform)


def _opened(path: Path, where: str, needed: Need | None, *, claim: str = "") -> Shelf:
    """Open what was downloaded; what cannot be used does not stay in the cache."""
    try:
        found = shelf.of_zip(path, where, claim)
    except UsageError:
        path.unlink(missing_ok=True)
        raise
    parts = parted(found.claim)
    if needed and parts and parts[0] != needed.version:
        raise UsageError(
            f"{where} has QAIRT {parts[0]}, the binaries are of {needed.version}",
            hint=f"name a source of {needed.version} with `--from`, or compile with what carries {parts[0]}",
        )
    return found
