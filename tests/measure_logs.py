"""`python -m tests.measure_logs DIR [--mutate SEED]`: how well the log reader does on lines and runs that are labelled.

DIR holds `corpus.jsonl` (one line of a tool an object: tool, line, severity, kind, must_not_flag, verbatim) and
`runs/*.log` with a `.json` beside each (outcome, expected_kinds, exit_code). Prints precision and recall for each
severity and kind, then every miss. Ends with 1 where a line or run that has to come out right does not.

With `--mutate` names, numbers, paths and times in the lines are changed first: what a pattern must not depend on.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.findings import SEVERITIES, worst
from qnnci.logs import LogReport, read

OUTCOMES = {
    "success": "success",
    "failure": "failed",
    "failure-rc0": "failed",
    "success-with-fallback": "warning",
    "warning": "warning",
}
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[,.]\d+|\b\d\d-\d\d \d\d:\d\d:\d\d\.\d+")
_PLACE = re.compile(r"(?<=\.cc:)\d+|(?<=\.cpp:)\d+|(?<= - )\d{3}(?= - )|\b\d+\.\d(?=ms)|\b\d{6,}\b|\bpid:\d+")
_FOLDER = re.compile(r"(?<![\w.])(?:[A-Z]:)?(?:[/\\][\w.+-]+){2,}")
_NAME = re.compile(r"\b[A-Z][a-z]+\w*_\d+\w*\b|\bgraph_\w+\b|(?<=')/[\w./]+(?=')")
_VERSION = re.compile(r"\bv\d+\.\d+\.\d+\.\d+_\d+\b")


def mutated(text: str, random_: random.Random) -> str:
    """The line with other times, source lines, sizes, versions, folders and node names."""

    def digits(match: re.Match[str]) -> str:
        return re.sub(r"\d", lambda _: str(random_.randint(1, 9)), match[0])

    def folder(match: re.Match[str]) -> str:
        parts = re.split(r"([/\\])", match[0])
        return "".join(
            part if index % 2 or not part or index == len(parts) - 1 else f"d{random_.randint(0, 999)}"
            for index, part in enumerate(parts)
        )

    def name(_: re.Match[str]) -> str:
        return random_.choice(["", "/"]) + "".join(random_.choices("abcXYZ019_./", k=random_.randint(3, 40))) + "q"

    text = _TIME.sub(lambda match: f"2031-0{random_.randint(1, 9)}-17{match[0][-13:]}", text)
    for pattern, other in ((_FOLDER, folder), (_PLACE, digits), (_VERSION, digits), (_NAME, name)):
        text = pattern.sub(other, text)
    return text


@dataclass
class Score:
    """Of one severity or kind: lines that have it and are said to, lines that are said to only, that have it only."""

    right: int = 0
    extra: int = 0
    missed: int = 0

    def __str__(self) -> str:
        said, had = self.right + self.extra, self.right + self.missed
        precision = f"{self.right / said:7.1%}" if said else "      –"
        recall = f"{self.right / had:7.1%}" if had else "      –"
        return f"precision {precision}  recall {recall}  ({had} lines)"


def one(text: str, tool: str | None) -> LogReport:
    return read(io.BytesIO(text.encode()), tool, wanted="all")


def severity(report: LogReport) -> str:
    return worst(report.findings) or "info"


class Lines:
    """The scores of single lines."""

    def __init__(self) -> None:
        self.severities = {name: Score() for name in (*SEVERITIES, "info")}
        self.kinds: dict[str, Score] = {}
        self.misses: list[str] = []
        self.broken = 0

    def add(self, row: dict[str, Any], text: str) -> None:
        report = one(text, row.get("tool"))
        said, wanted = severity(report), row["severity"]
        self._score(self.severities, wanted, {said})
        found = {kind for kind in report.kinds if kind not in {"unknown-error", "python-exception"}}
        self._score(self.kinds, row["kind"], found)
        must = row.get("must_not_flag") or (wanted == "error" and str(row.get("verbatim", "")).startswith("exact"))
        wrong = bool(report.findings) if row.get("must_not_flag") else said != wanted
        if wrong or row["kind"] not in report.kinds:
            self.broken += bool(must and wrong)
            mark = "MUST" if must and wrong else "    "
            kinds = ",".join(report.kinds) or "nothing"
            self.misses.append(f"{mark} {wanted}/{row['kind']} but {said}/{kinds}: {text[:160]!r}")

    def _score(self, scores: dict[str, Score], wanted: str, found: set[str]) -> None:
        for name in found | {wanted}:
            score = scores.setdefault(name, Score())
            score.right += name == wanted and name in found
            score.extra += name != wanted
            score.missed += name not in found


def measure_runs(folder: Path) -> tuple[int, int, list[str]]:
    """How many runs came out right, of how many, and what is wrong with the others."""
    misses = []
    labels = sorted(folder.glob("*.json"))
    for label in labels:
        wanted = json.loads(label.read_text(encoding="utf-8"))
        with label.with_suffix(".log").open("rb") as stream:
            report = read(stream, wanted.get("tool"), wanted.get("exit_code"), wanted="all")
        missing = sorted(set(wanted["expected_kinds"]) - set(report.kinds))
        if report.outcome != OUTCOMES[wanted["outcome"]] or missing:
            without = f", without {', '.join(missing)}" if missing else ""
            misses.append(f"{label.stem}: {wanted['outcome']} but {report.outcome}{without}; has {dict(report.kinds)}")
    return len(labels) - len(misses), len(labels), misses


def table(title: str, scores: Iterable[tuple[str, Score]]) -> None:
    print(f"\n{title}")
    for name, score in scores:
        print(f"  {name:34} {score}")


def main(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.measure_logs", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mutate", type=int, help="seed; change what patterns must not depend on")
    given = parser.parse_args(arguments)
    random_ = random.Random(given.mutate)
    rows = [json.loads(line) for line in (given.folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = Lines()
    for row in rows:
        lines.add(row, row["line"] if given.mutate is None else mutated(row["line"], random_))
    right, count, wrong = measure_runs(given.folder / "runs")
    table("severity", lines.severities.items())
    table("kind", sorted(lines.kinds.items()))
    total = Counter[str]()
    for score in lines.kinds.values():
        total.update(vars(score))
    print(f"\nall kinds: {Score(**total)}")
    print(f"runs: {right} of {count} right")
    print("\nmisses")
    for miss in [*lines.misses, *wrong]:
        print(f"  {miss}")
    print(f"\n{lines.broken} lines that must come out right do not, {count - right} runs do not")
    return 1 if lines.broken or wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
