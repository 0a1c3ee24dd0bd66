"""Keep files under a name that nobody has taken: names and contents, no times, links or rights."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def main() -> None:
    name, lines = os.environ["NAME"], os.environ["PATHS"].split("\n")
    if not name or re.search(r'["<>|*?:\r\n\\/]', name):
        sys.exit(f"not a name for an artifact: {name!r}")
    wanted = [Path(line.strip()) for line in lines if line.strip() and not line.startswith("!")]
    excluded = {path for line in lines if line.startswith("!") for path in Path().glob(line[1:].strip())}
    (root,) = wanted  # the root of several paths is their nearest common folder, which nobody here needs
    found = [path for path in files(root) if path not in excluded]
    if not found:
        print(f"no files at {root}")
        sys.exit(1 if os.environ["MISSING"] == "error" else 0)
    if os.environ["ARCHIVE"] == "false":
        (only,) = found
        name = only.name
    kept = Path(os.environ["TEST_ARTIFACTS"], name)
    if os.environ["OVERWRITE"] == "true":
        shutil.rmtree(kept, ignore_errors=True)
    try:
        kept.mkdir(parents=True)
    except FileExistsError:
        sys.exit(f"an artifact with the name {name} exists: they are immutable")
    start = root if root.is_dir() else root.parent
    for path in found:
        to = kept / path.relative_to(start)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as file:
        file.write(f"artifact-url=https://github.test/artifacts/{name}\n")


def files(root: Path) -> Iterator[Path]:
    for path in [root] if root.is_file() else sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if path.is_file() and (not hidden or os.environ["HIDDEN"] == "true"):
            yield path


if __name__ == "__main__":
    main()
