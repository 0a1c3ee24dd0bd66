"""Real binaries, compiled in a child: the compiler stays out of the tests' own process."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models and binaries of make_binaries.py: small, spilling, w8 and w16."""
    if importlib.util.find_spec("onnxruntime_qnn") is None:
        pytest.skip("no embedded compiler on this Python")
    folder = tmp_path_factory.mktemp("binaries")
    script = Path(__file__).with_name("make_binaries.py")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return folder
