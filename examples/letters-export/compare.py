"""The texts that the original reads, and those that the graph reads: `compare.py GRAPH.onnx REPORT.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import reader
from onnx.reference import ReferenceEvaluator


def main() -> None:
    graph, report = sys.argv[1:]
    runner, samples = ReferenceEvaluator(graph), reader.samples()
    texts = {
        "reference": [reader.text(reader.logits(each)) for each in samples],
        "hypothesis": [reader.text(runner.run(None, {"features": each})[0]) for each in samples],
    }
    Path(report).write_text(json.dumps(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
