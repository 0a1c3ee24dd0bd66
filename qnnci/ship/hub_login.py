"""Who publishes on the Hub: a token, or on GitHub the workflow itself, which the Hub knows as a trusted publisher."""

from __future__ import annotations

import os

from qnnci.errors import UsageError
from qnnci.ship.hub_calls import Sleep, again, status_of


def login(repo: str, sleep: Sleep) -> None:
    """See that huggingface_hub finds a token: HF_TOKEN, that of a trusted publisher, or the one of `hf auth login`.

    The library itself asks GitHub who this job is and changes the answer for a token of one hour, of this repo alone
    (https://huggingface.co/docs/hub/trusted-publishers); HF_OIDC_RESOURCE makes it do so.

    Raises:
        UsageError: there is none, or the Hub does not know this workflow. Else the library's own errors.

    """
    from huggingface_hub import get_token

    identified = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL") or os.environ.get("HF_OIDC_ID_TOKEN")
    if identified and not os.environ.get("HF_TOKEN"):
        os.environ.setdefault("HF_OIDC_RESOURCE", repo)
    try:
        found = again(get_token, sleep=sleep)
    except Exception as error:
        if status_of(error) not in (400, 401, 403):
            raise
        raise _unknown(repo) from None
    if not found:
        hint = "set HF_TOKEN; a workflow that is a trusted publisher of the repo needs none, see docs/publish.md"
        raise UsageError("publishing needs a token of the Hub", hint=hint)


def _unknown(repo: str) -> UsageError:
    who = os.environ.get("GITHUB_REPOSITORY", "this repository")
    return UsageError(
        f"the Hub knows no trusted publisher of {repo} that is this workflow",
        hint=f"in the repo's settings on the Hub, under Trusted Publishers, add GitHub Actions, repository = {who}; "
        "a repo that is not there yet is made with HF_TOKEN first",
    )
