"""What ONNX Runtime's log says about a compile that failed, as findings. Patterns measured on onnxruntime-qnn 2.7.0."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from qnnci.findings import Finding
from qnnci.rules import finding

_UNSUPPORTED = "Unsupported nodes in QNN EP:"
_NODE = re.compile(r"\{ name: (.*?), type: (\w+) \}")
_SIZE = r"(0x[0-9a-f]+|\d+)"
_TCM = (
    # A whole op's working set, with the node's name from the second form.
    re.compile(
        rf'(?:op, |<E> )"(?P<node>[^"]*)".*?[Rr]equires (?P<need>{_SIZE}) bytes of TCM.*?size of (?P<have>{_SIZE})'
    ),
    # One of its two forms writes decimal digits behind 0x.
    re.compile(
        r"Operator named (?P<node>.+?) \(0x[0-9a-f]+\) not sufficiently tiled to fit in TCM"
        r"(?: \(0x\d+\))?\. Requires (?:0x)?(?P<need>\d+) bytes"
    ),
)
_INSERTED = re.compile(r"(_token_\d+|_nhwc|_nchw|_\d+)$")  # what ORT's layout transformer appends to a node's name
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_ERROR = re.compile(r"\[E:onnxruntime:[^\]]*\] (?P<said>.*)|QnnLogging\] (?P<native>.*:ERROR:.*)")


def read_log(path: Path) -> list[str]:
    """The lines of a log, however broken its bytes; a missing log has none."""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return []
    return [_ANSI.sub("", line).strip("\0 ") for line in re.split(r"[\r\n]+", text)]


def compile_findings(lines: Iterable[str], nodes: Collection[str] = ()) -> list[Finding]:
    """Root causes of a failed compile, each once.

    `nodes` are the names in the graph: a name of the compiler's own making is led back to the node it came from.
    """
    found: dict[tuple[str, str], Finding] = {}
    for line in lines:
        for each in _line_findings(line, nodes):
            found.setdefault((each.rule, each.node or each.message), each)
    return list(found.values())


def _line_findings(line: str, nodes: Collection[str]) -> Iterator[Finding]:
    if _UNSUPPORTED in line:
        for name, kind in _NODE.findall(line):
            node = original(name, nodes)
            which = f"{kind} node {node!r}" if node else f"an unnamed {kind} node"
            yield finding("cpu-fallback", f"{which} is not supported by the QNN compiler", node=node)
    elif match := next((found for pattern in _TCM if (found := pattern.search(line))), None):
        yield _too_wide(match.groupdict(), nodes)


def _too_wide(said: dict[str, str], nodes: Collection[str]) -> Finding:
    name = original(said["node"], nodes)
    need = int(said["need"], 0) / (1 << 20)
    have = f", the chip has {int(said['have'], 0) / (1 << 20):.0f} MB" if "have" in said else ""
    # q::… is an op of the compiler's own making, which no node of the graph stands for.
    node = "" if name.startswith("q::") else name
    return finding("vtcm-exceeded", f"{name} needs {need:.1f} MB of VTCM at once{have}", node=node)


def original(name: str, nodes: Collection[str]) -> str:
    """The graph's own node behind a name that the compiler derived from it; the name itself where none is known."""
    candidate = name
    while candidate not in nodes:
        shorter = _INSERTED.sub("", candidate)
        if shorter == candidate:
            return name
        candidate = shorter
    return candidate


def last_errors(lines: Iterable[str], count: int = 3) -> list[str]:
    """The last distinct error lines, for a failure that no pattern knows."""
    said = (match["said"] or match["native"] for line in lines if (match := _ERROR.search(line)))
    return list(dict.fromkeys(text.strip() for text in said))[-count:]
