"""A build on the Hugging Face Hub: by one commit on what was seen there, seen anew where that was stale."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnnci.errors import MachineError, UsageError
from qnnci.http import TRIES
from qnnci.ship.hub_calls import STALE, Sleep, passes, pause, status_of, told
from qnnci.ship.hub_changes import CARD, Changes, Upload, changes
from qnnci.ship.hub_login import login
from qnnci.ship.hub_repo import Repo, Seen, connect, without_xet

Say = Callable[[str], None]
Card = Callable[[str], str]

_NAMED = 3  # files that a message names


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to publish and how. `private` None leaves a repo as it is, and a new one to the Hub's default."""

    repo: str
    message: str
    description: str = ""
    revision: str = "main"
    pull_request: bool = False
    private: bool | None = None
    jobs: int = 4
    sleep: Sleep = time.sleep


@dataclass(frozen=True, slots=True)
class Published:
    """What came of it: page of the repo, branch or pull request, and the commit that has the files."""

    url: str
    commit: str
    pull_request: str = ""


def publish(settings: Settings, files: Sequence[Upload], card: Card, say: Say) -> Published:
    """Make the repo have these files, and none of an earlier build; `card` makes the new README.md of the old one.

    Raises:
        UsageError: no token or no right to it, or something there that must not be changed.
        MachineError: the Hub or the network fails for too long. What was uploaded is kept: run it again.

    """
    try:
        repo = connect(settings.repo, settings.sleep)
        login(settings.repo, settings.sleep)
        for done in (repo.make(private=settings.private), repo.branch(settings.revision)):
            if done:
                say(done)
        without_xet(repo, settings.revision)
        return _publish(repo, settings, files, card, say)
    except Exception as error:  # noqa: BLE001 - the library speaks through several HTTP stacks, each with its own
        raise told(error, settings.repo) from None


def _publish(repo: Repo, settings: Settings, files: Sequence[Upload], card: Card, say: Say) -> Published:
    before = set(repo.pull_requests()) if settings.pull_request else set()
    for attempt in range(1, TRIES + 1):
        opened = _opened(repo, settings, before)
        revision = f"refs/pr/{opened}" if opened else settings.revision
        with tempfile.TemporaryDirectory(prefix="qnnci-hub-") as room:
            seen = repo.look(revision, Path(room))
        todo, text = changes(files, seen.files, seen.earlier), card(seen.card)
        if todo.nothing and text == seen.card:
            say(f"{settings.repo} has these very files" if attempt == 1 else "it had arrived")
            return _published(repo, settings, seen.commit, opened)
        _tell(todo, len(files), say)
        try:
            commit, request = _commit(repo, settings, seen, revision, todo, text)
        except Exception as error:
            stale = status_of(error) == STALE
            if not stale and (attempt == TRIES or not passes(error)):
                raise
            say("somebody else has changed the repo: looking again" if stale else "the Hub failed: looking again")
            settings.sleep(pause(error, attempt))
            continue
        _hold(repo, settings, files, commit)
        number = int(request.rsplit("/", 1)[-1]) if request else opened
        made = _published(repo, settings, commit, number)
        say(f"published {made.pull_request or made.url}")
        return made
    raise MachineError(f"{settings.repo} is changed all the time", hint="run it again")


def _opened(repo: Repo, settings: Settings, before: set[int]) -> int:
    """The pull request of this run whose answer was lost; 0 where there is none."""
    if not settings.pull_request:
        return 0
    mine = [number for number, title in repo.pull_requests().items() if title == settings.message]
    return max({*mine} - before, default=0)


def _commit(repo: Repo, settings: Settings, seen: Seen, revision: str, todo: Changes, text: str) -> tuple[str, str]:
    add: dict[str, Path | bytes] = {each.path: each.file for each in todo.add}
    if text != seen.card:
        add[CARD] = text.encode()
    return repo.commit(
        seen,
        revision,
        add=add,
        delete=todo.delete,
        message=(settings.message, settings.description),
        request=settings.pull_request and revision == settings.revision,
        jobs=settings.jobs,
    )


def _hold(repo: Repo, settings: Settings, files: Sequence[Upload], commit: str) -> None:
    """Hold what arrived against the files: the Hub leaves out what a .gitignore names, without a word."""
    lacking = changes(files, repo.files(commit), ()).add
    if lacking:
        names = ", ".join(each.path for each in lacking[:_NAMED])
        hint = "does a .gitignore there name it?"
        raise UsageError(f"{settings.repo} did not take {len(lacking)} of the files: {names}", hint=hint)


def _published(repo: Repo, settings: Settings, commit: str, request: int) -> Published:
    if request:
        page = f"{repo.url}/discussions/{request}"
        return Published(page, commit, page)
    return Published(repo.url if settings.revision == "main" else f"{repo.url}/tree/{settings.revision}", commit)


def _tell(todo: Changes, count: int, say: Say) -> None:
    kept = count - len(todo.add)
    if kept:
        say(f"{kept} of {count} files are there already")
    if todo.add:
        say(f"uploading {len(todo.add)} files, {sum(each.bytes for each in todo.add) / (1 << 20):.1f} MB")
    if todo.over:
        say(f"replaced, being there but not as an earlier build left it: {', '.join(todo.over)}")
    if todo.delete:
        say(f"of an earlier build, removed: {', '.join(todo.delete)}")
    if todo.left:
        say(f"of an earlier build, but changed since, and left: {', '.join(todo.left)}")
