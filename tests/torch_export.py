"""`make test-torch`: a PyTorch model of two graphs from its own export to verified binaries, with all figures.

It is no part of `make test`, since torch is hundreds of megabytes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from qnnci import manifest
from qnnci.manifest import Entry, Figures
from tests.support.command import qnnci

EXAMPLE = Path(__file__).resolve().parents[1] / "examples/whisper-tiny-export"
FLOAT_DB = 100  # two float32 programs of one model; fp16 has about 40 to 60
INPUTS = {
    "encoder": {"mel": "FLOAT_32"},
    "decoder": {
        "token": "INT_32",
        "position": "INT_32",
        **dict.fromkeys(("keys", "values", "cross_keys", "cross_values"), "FLOAT_32"),
    },
}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="qnnci-torch-") as name:
        folder = shutil.copytree(EXAMPLE, Path(name) / "whisper", ignore=shutil.ignore_patterns("build"))
        started = time.monotonic()
        ended = qnnci("build", cwd=folder)
        print(ended.said)
        print(f"{time.monotonic() - started:.1f} s in all")
        if ended.code:
            return ended.code
        entries = manifest.load(folder / "build/manifest.json").entries
        assert {entry.graph for entry in entries} == set(INPUTS)
        for entry in entries:
            check(entry)
        started = time.monotonic()
        assert " done in " not in qnnci("build", cwd=folder).said
        print(f"{time.monotonic() - started:.1f} s for a second build, which does nothing")
    return 0


def check(entry: Entry) -> None:
    assert {tensor.name: tensor.dtype for tensor in entry.inputs} == INPUTS[entry.graph]
    assert entry.export_parity
    assert entry.parity
    print(f"{entry.graph} for {entry.soc}: {entry.bytes:,} bytes, compiled in {entry.compile_seconds:.2f} s")
    for output, figures in entry.export_parity.items():
        print(f"  {output}: graph against PyTorch {told(figures)}; binary {told(entry.parity.outputs[output])}")
        assert figures.snr_db
        assert figures.snr_db > FLOAT_DB


def told(figures: Figures) -> str:
    return f"cosine {figures.cosine:.7f}, SNR {figures.snr_db:.1f} dB, max_abs {figures.max_abs:.2g}"


if __name__ == "__main__":
    sys.exit(main())
