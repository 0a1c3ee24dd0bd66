"""Where this runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import quote


def run_url(env: Mapping[str, str] = os.environ) -> str:
    """Where this runs: the GitHub run's address, or `local`."""
    if "GITHUB_RUN_ID" not in env:
        return "local"
    page = f"{env.get('GITHUB_SERVER_URL', '')}/{env.get('GITHUB_REPOSITORY', '')}/actions/runs/{env['GITHUB_RUN_ID']}"
    return quote(page, safe="/:", errors="replace")  # an address, whatever stands in the environment
