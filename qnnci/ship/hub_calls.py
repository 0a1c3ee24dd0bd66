"""Calls of huggingface_hub: tried again where that may help, and what they say made fit for people."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from qnnci.errors import MachineError, QnnciError, UsageError
from qnnci.http import BACKOFF, LONGEST_WAIT, TRIES

T = TypeVar("T")
Sleep = Callable[[float], None]

STALE = 412  # somebody else committed since the head was read
_REFUSED = (401, 403)
_RIGHT = "does the token have the right to write to it? Fine-grained ones name the repos that they are for"
_PASSING = (408, 429, *range(500, 600))


def again(call: Callable[[], T], *, sleep: Sleep = time.sleep, tries: int = TRIES) -> T:
    """What the call returns; broken connections, rate limits and 5xx are waited for.

    Raises the last try's error, and at once one that waiting does not help.
    """
    for attempt in range(1, tries):
        try:
            return call()
        except Exception as error:
            if not passes(error):
                raise
            sleep(pause(error, attempt))
    return call()


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error, or what it came from, tells of."""
    seen: BaseException | None = error
    while seen is not None:
        status = getattr(getattr(seen, "response", None), "status_code", None)
        if isinstance(status, int):
            return status
        seen = seen.__cause__
    return None


def passes(error: BaseException) -> bool:
    """Whether another try may go well. The library speaks through several stacks, so what is not known passes."""
    from huggingface_hub import errors

    final = (UsageError, errors.HFValidationError, errors.OIDCError, errors.OfflineModeIsEnabled)
    if isinstance(error, final) or _is_of_card(error):
        return False
    status = status_of(error)
    return status is None or status in _PASSING


def pause(error: BaseException, attempt: int) -> float:
    """Seconds to wait before the next try: what the Hub asks for, else doubled each time and not the same for all."""
    seen: BaseException | None = error
    while seen is not None:
        headers = getattr(getattr(seen, "response", None), "headers", {})
        asked = str(headers.get("Retry-After", ""))
        if asked.isdecimal():
            return min(float(asked), LONGEST_WAIT)
        seen = seen.__cause__
    return float(BACKOFF * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - nobody is to be kept from guessing


def told(error: Exception, repo: str) -> QnnciError:
    """An error of the library for people. Its own text may hold signed addresses, so little of it is passed on."""
    from huggingface_hub import errors

    if isinstance(error, QnnciError):
        return error
    if _is_of_card(error):
        return UsageError(f"the Hub does not take the card of {repo}: {_line(str(error))}", hint="mend what it names")
    known: tuple[tuple[type[Exception], type[QnnciError], str, str], ...] = (
        (errors.OIDCError, UsageError, "GitHub does not tell the Hub who this job is",
         "the job needs `permissions: {id-token: write}`; else give HF_TOKEN"),
        (errors.OfflineModeIsEnabled, MachineError, "HF_HUB_OFFLINE forbids the network", "unset it to publish"),
        (errors.HFValidationError, UsageError, f"not a repo on the Hub: {repo}", "`--repo org/name`"),
        (errors.RevisionNotFoundError, UsageError, f"{repo} has no such revision", "see the branches of the repo"),
        (errors.RepositoryNotFoundError, UsageError, f"{repo} is not there, or this token may not see it", _RIGHT),
    )  # fmt: skip
    for theirs, ours, message, hint in known:
        if isinstance(error, theirs):
            return ours(message, hint=hint)
    return _refusal(error, status_of(error), repo)


def _refusal(error: Exception, status: int | None, repo: str) -> QnnciError:
    if status in _REFUSED:
        return UsageError(f"the Hub does not let this token publish in {repo} (HTTP {status})", hint=_RIGHT)
    if status is not None and status not in _PASSING:
        said = _line(getattr(error, "server_message", None) or "no reason given")
        return UsageError(f"the Hub refuses (HTTP {status}): {said}", hint="see the message")
    kind = f"HTTP {status}" if status else type(error.__cause__ or error).__name__
    return MachineError(
        f"the Hub does not answer as it should ({kind}), for {repo}", hint="run it again: what was uploaded is kept"
    )


def _is_of_card(error: BaseException) -> bool:
    return isinstance(error, ValueError) and str(error).startswith("Invalid metadata in README.md")


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
