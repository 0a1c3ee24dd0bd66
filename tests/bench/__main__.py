"""`python -m tests.bench [SUBJECT…]`: measure, and print each figure beside its goal. Compiles are the host's."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench import action, build, bundle, check, logs, manifest, quantize, setup, upload, workflow

SUBJECTS = {
    "build": build.measure,
    "check": check.measure,
    "logs": logs.measure,
    "setup": setup.measure,
    "action": action.measure,
    "bundle": bundle.measure,
    "manifest": manifest.measure,
    "upload": upload.measure,
    "workflow": workflow.measure,
    "quantize": quantize.measure,
}


def main() -> None:
    names = sys.argv[1:] or [*SUBJECTS]
    if unknown := set(names) - {*SUBJECTS}:
        sys.exit(f"no subject {', '.join(sorted(unknown))}: there are {', '.join(SUBJECTS)}")
    figures = []
    for name in names:
        print(f"measuring: {name}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="qnnci-bench-") as folder:
            figures += SUBJECTS[name](Path(folder))
    print(*figures, sep="\n")


if __name__ == "__main__":
    main()
