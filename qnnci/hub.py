"""Files on the Hugging Face Hub, by its own library: HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE are honoured."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from qnnci import __version__
from qnnci.errors import MachineError, QnnciError, UsageError

FORM = "write it as hf://org/repo/path/to/file@revision (the revision is a branch, tag or commit; default main)"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_LONGEST = 180  # characters of a file or folder name: the library appends some of its own


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of one revision of a model repo."""

    repo: str
    path: str
    revision: str

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit, which never changes."""
        return re.fullmatch(r"[0-9a-f]{40}", self.revision) is not None


def parse(text: str) -> HubFile:
    """Read `org/repo/path/to/file@revision`.

    Raises:
        UsageError: it is not of that form, or the path leaves the repo.

    """
    place, _, revision = text.rpartition("@") if "@" in text else (text, "", "main")
    match = re.fullmatch(rf"({_NAME}/{_NAME})/(.+)", place)
    if not match or not _REVISION.fullmatch(revision) or ".." in revision:
        raise UsageError(f"not a file on the Hub: hf://{text[:200]}", hint=FORM)
    if any(part in ("", ".", "..") or len(os.fsencode(part)) > _LONGEST for part in match[2].split("/")):
        raise UsageError(f"not a path inside a repo: {match[2][:200]}", hint=FORM)
    return HubFile(match[1], match[2], revision)


def download(file: HubFile, folder: Path) -> None:
    """Bring the file to its path under `folder`, or up to date there; the library resumes and locks.

    Raises:
        UsageError: no such repo, revision or file, or no right to it.
        MachineError: the Hub cannot be reached or fails, or the disk is full.

    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.utils import disable_progress_bars

    from qnnci.files import disk_errors

    if "HF_HUB_DISABLE_PROGRESS_BARS" not in os.environ:
        disable_progress_bars()
    try:
        with disk_errors(folder):
            hf_hub_download(
                file.repo,
                file.path,
                revision=file.revision,
                local_dir=folder,
                endpoint=os.environ.get("HF_ENDPOINT") or None,
                library_name="qnnci",
                library_version=__version__,
            )
    except QnnciError:
        raise
    except Exception as error:  # noqa: BLE001 - the library speaks through several HTTP stacks, each with its own
        raise _failure(file, error) from None


def size(file: HubFile) -> int | None:
    """How many bytes the file has; the library's own errors where the Hub does not say."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(file.repo, file.path, revision=file.revision, endpoint=os.environ.get("HF_ENDPOINT") or None)
    found = get_hf_file_metadata(url, timeout=10).size
    return None if found is None else int(found)


def _failure(file: HubFile, error: Exception) -> QnnciError:
    """The library's error for people. Its own text may hold signed addresses, so it is not passed on."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError) and isinstance(error.__cause__, errors.HfHubHTTPError):
        error = error.__cause__  # the Hub did answer, with what is the real reason
    status = getattr(getattr(error, "response", None), "status_code", None)
    where = f"hf://{file.repo}/{file.path}@{file.revision}"
    # Subclasses come before their bases.
    known: tuple[tuple[type[Exception], type[QnnciError], str, str], ...] = (
        (errors.GatedRepoError, UsageError, f"{file.repo} is gated on the Hub",
         "accept its terms on its page, and give a token of that account as HF_TOKEN"),
        (errors.RepositoryNotFoundError, UsageError, f"there is no model repo {file.repo} on the Hub, or it is private",
         "check the name; for a private repo give a token as HF_TOKEN"),
        (errors.RevisionNotFoundError, UsageError, f"{file.repo} has no revision {file.revision}",
         "see the branches and tags of the repo"),
        (errors.LocalEntryNotFoundError, MachineError, f"cannot reach the Hub for {where}",
         "check the network, HF_ENDPOINT and HF_HUB_OFFLINE"),
        (errors.EntryNotFoundError, UsageError, f"{file.repo} has no file {file.path} at revision {file.revision}",
         "see the file list of the repo"),
        (errors.HFValidationError, UsageError, f"not a file on the Hub: {where}", FORM),
    )  # fmt: skip
    for theirs, ours, message, hint in known:
        if isinstance(error, theirs):
            return ours(message, hint=hint)
    if status in (401, 403, 404):
        return UsageError(
            f"the Hub does not give {where} (HTTP {status})",
            hint="check the name, and the token in HF_TOKEN and its rights",
        )
    kind = f"HTTP {status}" if status else type(error).__name__
    return MachineError(f"the download of {where} from the Hub failed ({kind})", hint="try again later")
