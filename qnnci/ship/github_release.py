"""A release on GitHub: drafted, filled, held against the files, then published. Begun again, it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from qnnci.errors import MachineError, UsageError
from qnnci.http import TRIES, session
from qnnci.ship.assets import Asset, Remote, remote, work
from qnnci.ship.github_api import Api, Broken, Conflict, NotFound, as_error, pause

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a release is to be. `target` is the commit that a new tag is put on; empty is the default branch."""

    tag: str
    name: str
    notes: str
    target: str = ""
    prerelease: bool = False
    draft: bool = False
    update: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """A release as GitHub has it."""

    id: int
    tag: str
    url: str
    upload_url: str
    draft: bool
    immutable: bool


def publish(api: Api, settings: Settings, files: Sequence[Asset], *, jobs: int, say: Say) -> Release:
    """Make the release have exactly these files, then publish it, unless it is to stay a draft.

    Raises:
        UsageError: no right to it, or a published release that has other files.
        MachineError: GitHub or the network fails for too long. What arrived is kept: run it again.

    """
    try:
        return _publish(api, settings, files, jobs, say)
    except (NotFound, Conflict) as error:
        raise as_error(error, f"release {settings.tag} of {api.repo}") from error


def _publish(api: Api, settings: Settings, files: Sequence[Asset], jobs: int, say: Say) -> Release:
    release = find(api, settings.tag)
    if release and not release.draft:
        found, strangers = _known(files, there(api, release))
        if strangers:
            say(f"left as they are, being not of this build: {', '.join(strangers)}")
        lacking = work(files, found)
        if lacking.nothing:
            say(f"{settings.tag} is published already, with these very files")
            return release
        if release.immutable:
            raise UsageError(f"{settings.tag} is published and immutable", hint="publish under another tag")
        if not settings.update:
            told = f"{settings.tag} is published, and {len(lacking.upload)} of its files are missing or others"
            raise UsageError(told, hint="publish under another tag, or say `--update` to change it")
    if release is None:
        release = _drafted(api, settings)
        say(f"drafted {settings.tag}")
    _fill(api, release, files, jobs, say)
    if settings.draft or not release.draft:
        return release
    body = {"draft": False, "name": settings.name, "body": settings.notes, "prerelease": settings.prerelease}
    made = _release(api.patch(f"releases/{release.id}", body))
    say(f"published {made.url}")
    return made


def find(api: Api, tag: str) -> Release | None:
    """The release of a tag, else the draft that is to become it: GitHub finds no draft by its tag."""
    try:
        return _release(api.get(f"releases/tags/{tag}"))
    except NotFound:
        drafts = (_release(each) for each in api.pages("releases") if each.get("tag_name") == tag)
        return next((each for each in drafts if each.draft), None)


def there(api: Api, release: Release) -> list[Remote]:
    """Assets of a release, half ones too."""
    return [found for each in api.pages(f"releases/{release.id}/assets") if (found := remote(each))]


def _there(api: Api, release: Release, files: Sequence[Asset]) -> list[Remote]:
    """What may be replaced or removed: everything in a draft, in a published release only what is called as ours is."""
    found = there(api, release)
    return found if release.draft else _known(files, found)[0]


def _known(files: Sequence[Asset], found: Sequence[Remote]) -> tuple[list[Remote], list[str]]:
    """Assets whose names are of this build, and the names of others, which somebody may have added by hand."""
    names = {each.name for each in files}
    return [each for each in found if each.name in names], [each.name for each in found if each.name not in names]


def _drafted(api: Api, settings: Settings) -> Release:
    body = {"tag_name": settings.tag, "name": settings.name, "body": settings.notes, "draft": True}
    body |= {"prerelease": settings.prerelease}
    if settings.target:
        body["target_commitish"] = settings.target
    for attempt in range(1, TRIES):
        try:
            return _release(api.post_once("releases", body))
        except MachineError:
            api.sleep(pause(attempt))
            if made := find(api, settings.tag):  # it was made, only the answer was lost
                return made
    return _release(api.post_once("releases", body))


def _fill(api: Api, release: Release, files: Sequence[Asset], jobs: int, say: Say) -> None:
    lacking = work(files, _there(api, release, files))
    kept = len(files) - len(lacking.upload)
    if kept:
        say(f"{kept} of {len(files)} files are there already")
    for number in lacking.delete:
        api.delete(f"releases/assets/{number}")
    with ThreadPoolExecutor(jobs) as threads:
        tasks = [threads.submit(_upload, api, release, each, say) for each in lacking.upload]
        try:
            for task in tasks:
                task.result()
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
    left = work(files, _there(api, release, files), {each.name for each in lacking.upload})
    if not left.nothing:
        names = ", ".join(each.name for each in left.upload[:3]) or "files that are not ours"
        raise MachineError(f"after uploading, {release.tag} still has not what it should: {names}", hint="run it again")


def _upload(api: Api, release: Release, asset: Asset, say: Say) -> None:
    """One file, until it is there whole; what an attempt left half is removed first."""
    own = replace(api, http=session(tries=1))  # sessions are of one thread
    told = ""
    for attempt in range(TRIES):
        if attempt:
            own.sleep(pause(attempt))
        try:
            got = remote(own.upload(release.upload_url, asset.name, asset.path, asset.bytes))
        except (Broken, Conflict) as error:
            told = str(error)
            got = next((each for each in there(own, release) if each.name == asset.name), None)
        if got and got.arrived(asset):
            say(f"uploaded {asset.name}")
            return
        if got:
            told = told or "it arrived changed"
            own.delete(f"releases/assets/{got.id}")
    raise MachineError(
        f"{asset.name} does not arrive after {TRIES} tries ({told})", hint="run it again: what was uploaded is kept"
    )


def _release(data: Any) -> Release:
    """What GitHub tells of a release.

    Raises:
        MachineError: that makes no sense.

    """
    try:
        return Release(
            id=int(data["id"]),
            tag=str(data["tag_name"]),
            url=str(data["html_url"]),
            upload_url=str(data["upload_url"]).split("{")[0],
            draft=data["draft"] is True,
            immutable=data.get("immutable") is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"GitHub's answer is no release: {type(error).__name__}"
        raise MachineError(message, hint="is the API's address right? `--api-url`") from None
