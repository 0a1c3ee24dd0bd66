"""One line: where its prefixes end, what it says for people, and which error codes it names."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from qnnci.logs.patterns import ERRORS, Pattern
from qnnci.qnn_errors import explain, is_known

Level = Literal["error", "warning", "calm", "none"]

_CALM = "INFO|VERBOSE|DEBUG|TRACE|trace|USER_INFO"
_LEVEL = r"(?:ERROR|WARNING|WARN|INFO|VERBOSE|DEBUG|FATAL|CRITICAL|trace|USER_INFO)"
_PREFIX = re.compile(
    rf"""(?:\s*(?:
      \[?\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:[+-]\d\d:?\d\d|Z)?\]?   # Python, ONNX Runtime, AI Hub
    | \d\d-\d\d\ \d\d:\d\d:\d\d\.\d+(?:\s+\d+){{0,2}}(?:\s+[VDIWEF]\b)?          # logcat
    | \d+-\d+\s+\S+\s+\S+\s+[VDIWEF]\b
    | [VDIWEF]/[\w.:]+:
    | \d+(?:\.\d+)?\ ?ms\b
    | \[\s*{_LEVEL}\s*\]
    | \[\^?\w+\]\[\d+\]
    | \[[VIWEF]:onnxruntime:[^\]]*\]
    | \[Qnn\ ExecuTorch\]:
    | Genie:
    | QnnDsp\b\s*:?
    | <[EWIVD]>
    | -\ +\d+\ +-(?=\s*[A-Z]+\ -)
    | -?\ *{_LEVEL}\ +-
    | [\w./\\:-]+\.(?:cc|cpp|h|c):\d+:+(?:(?:ERROR|WARNING|STAT):)?
    | [\w-]+\ pid:\d+
    | \|(?=\ )
    ))+\s*""",
    re.VERBOSE,
)
_WRAPPER = re.compile(r"\[\d{4}-\d\d-\d\d[T ][\d:.,+]+\]\s\[INFO\]\s")  # of a service around the tool's own line
_LOUD = re.compile(
    r"<E>|\[\s*(?:ERROR|FATAL|CRITICAL)\s*\]|[: -](?:ERROR|FATAL)(?::| -)|\[[EF]:onnxruntime"
    r"|(?:\d|^|\s)\s[EF]\s\s?\S|^[EF]/"
)
_WARNING = re.compile(
    r"<W>|\[\s*WARN(?:ING)?\s*\]|(?:^|[: -])WARNING(?::| -)|\[W:onnxruntime|(?:\d|^)\s+W\s|^W/|Warning:"
)
_CALM_LEVEL = re.compile(
    rf"<[IVD]>|\[\s*(?:{_CALM})\s*\]|[: -](?:{_CALM}|STAT)(?::| -)|\[[VID]:onnxruntime|(?:\d|^)\s+[VDI]\s|^[VDI]/"
    r"|\.(?:cc|cpp|h):\d+:(?!:?ERROR)"
)
_FAILING = re.compile(r"(?i)\b(?:fail(?:ed|ure|s)?|errors?|mismatch|unable|cannot)\b")
_CODE = re.compile(
    r"(?i)\b(?:err(?:or)?(?:[_ ]?code)?|status|failed|with|symbols|device)\s*[:=]?\s*(0x[0-9a-f]+|\d{4,5})\b"
)
_INSERTED = re.compile(r"(_token_\d+|_nhwc|_nchw|_\d+)$")  # what ORT's layout transformer appends to a node's name
_LARGEST = 0xFFFF  # QNN error number; larger ones are of the DSP's own parts
_GIGABYTE = 1024  # MB
_SHOWN = 400  # characters of a line in a finding


def prefixed(text: str) -> bool:
    return _PREFIX.match(text) is not None


def behind_prefix(text: str) -> str:
    """What a line says, without times, levels and sources."""
    prefix = _PREFIX.match(text)
    return text[prefix.end() :] if prefix else text.lstrip()


def level(text: str) -> Level:
    """The level that a line says it has. Tools nest, so it may name several: the worst counts."""
    text = _WRAPPER.sub("", text, count=1)
    if _LOUD.search(text):
        return "error"
    if _WARNING.search(text):
        return "warning"
    return "calm" if _CALM_LEVEL.search(text) else "none"


def counts(pattern: Pattern, text: str) -> bool:
    """Whether a line's level lets the pattern have it: no error of a warning, no progress of a failure."""
    if pattern.role == "progress":
        return not _FAILING.search(text) and level(text) != "error"
    if pattern.loud:
        return level(text) in {"error", "none"}
    return pattern.role not in ERRORS or pattern.quiet or level(text) != "warning"


def codes(text: str, groups: dict[str, str | None]) -> list[int]:
    """The QNN error numbers in a line, decimal or hex, as far as the table knows them."""
    given = [groups["code"]] if groups.get("code") else _CODE.findall(text)
    numbers = (int(each, 16 if each[:2].lower() == "0x" else 10) for each in given if each)
    return [number for number in dict.fromkeys(numbers) if number <= _LARGEST and is_known(number)]


def message(pattern: Pattern, text: str, groups: dict[str, str | None], nodes: Collection[str]) -> tuple[str, str]:
    """What a finding says, and the node that it is about."""
    given = {key: value or "" for key, value in groups.items()}
    node = given["node"] = original(given.get("node", ""), nodes)
    if pattern.say:
        shown = {key: _size(key, value) for key, value in given.items()}
        said = pattern.say.format(**shown)
        if not node:
            said = said.replace("node ''", "node without a name")
    else:
        said = behind_prefix(text).strip() or text.strip()
        if len(said) > _SHOWN:
            said = said[:_SHOWN] + "…"
    # q::… is an op of the compiler's own making, which no node of the graph stands for.
    return said, "" if node.startswith("q::") else node


def explained(said: str, numbers: list[int]) -> str:
    """The message with its error numbers in words."""
    return f"{said} ({'; '.join(map(explain, numbers))})" if numbers else said


def _size(key: str, value: str) -> str:
    unit = key.rpartition("_")[2]
    if unit not in {"bytes", "kb"} or not value:
        return value
    megabytes = int(value, 16 if value[:2] == "0x" else 10) / (1 << (20 if unit == "bytes" else 10))
    return f"{megabytes:.1f} MB" if megabytes < _GIGABYTE else f"{megabytes / _GIGABYTE:.2f} GB"


def original(name: str, nodes: Collection[str]) -> str:
    """The graph's own node behind a name that the compiler derived from it; the name itself where none is known."""
    candidate = name
    while candidate not in nodes:
        shorter = _INSERTED.sub("", candidate)
        if shorter == candidate:
            return name
        candidate = shorter
    return candidate
