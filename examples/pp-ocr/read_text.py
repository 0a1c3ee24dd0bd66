"""Reads lines.npz with the recogniser and reports what it read beside what is written: `{model} {graph} {report}`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx

from qnnci.runtime import load


def characters(graph: str) -> list[str]:
    """What each class stands for: nothing, the characters that PP-OCR keeps in the graph itself, a space."""
    metadata = {each.key: each.value for each in onnx.load(graph, load_external_data=False).metadata_props}
    return ["", *metadata["character"].splitlines(), " "]


def text_of(scores: np.ndarray, characters: list[str]) -> str:
    """CTC, greedy: the best class of each step, repeats once."""
    best = scores[0].argmax(axis=1)
    kept = best[np.insert(best[1:] != best[:-1], 0, True)]
    return "".join(characters[each] for each in kept)


def main() -> None:
    model, graph, report = sys.argv[1:]
    lines = np.load(Path(__file__).with_name("lines.npz"))
    known = characters(graph)
    read = []
    with load(model) as runner:
        for image in lines["images"]:
            pixels = np.broadcast_to(image / np.float32(127.5) - 1, (1, 3, *image.shape)).astype(np.float32)
            (scores,) = runner.run({"x": pixels}).values()
            read.append(text_of(scores, known))
    Path(report).write_text(json.dumps({"reference": lines["texts"].tolist(), "hypothesis": read}))


if __name__ == "__main__":
    main()
