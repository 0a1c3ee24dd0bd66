"""A model repo on the Hugging Face Hub, by its own library: made, looked at, and changed by one commit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from qnnci import __version__, hub
from qnnci.errors import MachineError, UsageError
from qnnci.http import check_url
from qnnci.manifest import PublishedFile
from qnnci.ship.hub_calls import Sleep, again
from qnnci.ship.hub_changes import CARD, MANIFEST, Remote, earlier

T = TypeVar("T")
HUB = "https://huggingface.co"
_MISSING = 404


@dataclass(frozen=True, slots=True)
class Seen:
    """The repo at one commit: its files, its card, and what an earlier publish wrote down."""

    commit: str
    files: Mapping[str, Remote]
    card: str
    earlier: tuple[PublishedFile, ...]


@dataclass(frozen=True, slots=True)
class Repo:
    """One model repo, `org/name`. Its methods raise the library's errors, which `hub_calls.told` knows."""

    name: str
    api: Any
    sleep: Sleep

    @property
    def url(self) -> str:
        return f"{self.api.endpoint}/{self.name}"

    def make(self, *, private: bool | None) -> str:
        """See that it is there, as private as was asked for; returns what was done.

        Raises:
            UsageError: it is there, and private where it must not be, or the other way round.

        """
        from huggingface_hub.errors import RepositoryNotFoundError

        made = ""
        try:
            found = self._again(lambda: self.api.model_info(self.name))
        except RepositoryNotFoundError:
            self._again(lambda: self.api.create_repo(self.name, private=private, exist_ok=True))
            found = self._again(lambda: self.api.model_info(self.name))
            made = f"made {'private ' if found.private else ''}{self.url}"
        if private is not None and bool(found.private) != private:
            is_, asked = ("private", "public") if found.private else ("public", "private")
            hint = f"change that on the Hub, or publish without `--{asked}`"
            raise UsageError(f"{self.name} is {is_}, and {asked} was asked for", hint=hint)
        return made

    def branch(self, name: str) -> str:
        """See that there is the branch; returns what was done."""
        from huggingface_hub.errors import RevisionNotFoundError

        try:
            self.head(name)
        except RevisionNotFoundError:
            self._again(lambda: self.api.create_branch(self.name, branch=name, exist_ok=True))
            return f"made the branch {name}"
        return ""

    def head(self, revision: str) -> str:
        """The commit that a branch stands at."""
        commit = self._again(lambda: self.api.model_info(self.name, revision=revision)).sha
        if not isinstance(commit, str):
            raise MachineError(f"the Hub tells no head of {self.name}", hint="run it again")
        return commit

    def files(self, commit: str) -> dict[str, Remote]:
        """Every file at a commit, by its path."""
        entries = self._again(lambda: list(self.api.list_repo_tree(self.name, recursive=True, revision=commit)))
        blobs = [each for each in entries if hasattr(each, "blob_id")]
        return {each.path: Remote(each.blob_id, each.lfs.sha256 if each.lfs else "") for each in blobs}

    def look(self, revision: str, room: Path) -> Seen:
        """The repo as it is now; files that are read come into `room`.

        Raises:
            UsageError: a card or manifest there that cannot be gone on with.

        """
        commit = self.head(revision)
        files = self.files(commit)
        texts = {path: self._text(path, commit, room) if path in files else "" for path in (CARD, MANIFEST)}
        return Seen(commit, files, texts[CARD], earlier(texts[MANIFEST]))

    def pull_requests(self) -> dict[int, str]:
        """Titles of pull requests, by their number."""
        every = self._again(lambda: list(self.api.get_repo_discussions(self.name, discussion_type="pull_request")))
        return {each.num: each.title for each in every}

    def commit(
        self,
        onto: Seen,
        revision: str,
        *,
        add: Mapping[str, Path | bytes],
        delete: Sequence[str],
        message: tuple[str, str],
        request: bool,
        jobs: int,
    ) -> tuple[str, str]:
        """One commit, all or nothing, in one try; its id, and the address of the pull request that it opened."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        operations = [
            *(CommitOperationAdd(path, content) for path, content in add.items()),
            *(CommitOperationDelete(path, is_folder=False) for path in delete),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library warns of its own calls, and of what the card might say too
            made = self.api.create_commit(
                self.name,
                operations,
                commit_message=message[0],
                commit_description=message[1],
                revision=revision,
                create_pr=request,
                num_threads=jobs,
                parent_commit=onto.commit,
            )
        return made.oid, made.pr_url or ""

    def _text(self, path: str, commit: str, room: Path) -> str:
        folder = room / commit
        again(lambda: hub.download(hub.HubFile(self.name, path, commit), folder), sleep=self.sleep)
        try:
            return (folder / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UsageError(f"{path} of {self.name} is not text", hint="mend or remove it on the Hub") from None

    def _again(self, call: Callable[[], T]) -> T:
        return again(call, sleep=self.sleep)


def connect(name: str, sleep: Sleep) -> Repo:
    """A repo at HF_ENDPOINT, by a library that is silent.

    Raises:
        UsageError: the endpoint would send the token in the clear.

    """
    import huggingface_hub
    from huggingface_hub.utils import disable_progress_bars

    endpoint = (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    check_url(endpoint)
    disable_progress_bars()
    huggingface_hub.logging.set_verbosity_error()  # its warnings spell out signed addresses
    api = huggingface_hub.HfApi(endpoint=endpoint, library_name="qnnci", library_version=__version__)
    return Repo(name, api, sleep)


def without_xet(repo: Repo, revision: str) -> bool:
    """Turn the library's Xet off where this server has none: it does not look itself, and could not upload."""
    from urllib.parse import quote

    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers, get_session

    if repo.api.endpoint == HUB:
        return False
    url = f"{repo.api.endpoint}/api/models/{repo.name}/xet-write-token/{quote(revision, safe='')}"
    answer = again(lambda: get_session().get(url, headers=build_hf_headers()), sleep=repo.sleep)
    if answer.status_code == _MISSING:
        constants.HF_HUB_DISABLE_XET = True
    return bool(constants.HF_HUB_DISABLE_XET)
