"""A build as Markdown, for GitHub's step summary: what passed, the figures, and what to do about the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from qnnci.findings import Finding
from qnnci.manifest import Entry, Manifest
from qnnci.report.chains import chain_lines, context_lines
from qnnci.report.exports import export_lines, task_text
from qnnci.report.figures import size, worst
from qnnci.report.problems import Problem, clean, counted, problems, shortened
from qnnci.report.verdict import excused, marred

CUT = "\n\n**The summary was cut here: GitHub takes 1 MiB. `manifest.json` has everything.**\n"
EMULATOR = (
    "Parity is the worst output's distance from the original ONNX on the CPU. The binary ran in the host emulator, "
    "which checks numbers, not speed."
)

_TEXT = 4000  # characters of one message
_MARKDOWN = re.compile(r"[&<>|\\`*~\[\]#$!]|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_")
# What GitHub makes links, mentions and emoji of, it looks for in the text as rendered: an empty comment parts it.
_LINKED = re.compile(r"(@|&#35;(?=\d)|\bwww|:(?=//|[\w+-]+:))")
_PARTED = r"\1<!-- -->"


def summary(manifest: Manifest, errors: Sequence[Finding] = ()) -> str:
    """The build as Markdown: a row for each target, then every finding with what to do about it.

    `errors` are those that are in no manifest, because something else than the model broke.
    """
    findings = [*errors, *(Finding(**record.model_dump()) for record in manifest.findings)]
    rows = [*(_row(entry, manifest) for entry in manifest.entries), *_rows_without_binary(manifest, findings)]
    passed = sum(entry.passed for entry in manifest.entries)
    spared = excused(manifest.findings) if manifest.passed else None
    mark = "⚠️" if spared else "✅" if manifest.passed else "❌"
    verdict = f"{passed} of {len(rows)} binaries passed" if rows else "no binary was made"
    if spared:
        verdict += f", {spared.why}"
    blocks = [f"## {mark} {markdown(manifest.name)}: {verdict}"]
    if rows:
        head: tuple[str, ...] = (
            "", "graph", "SoC", "precision", "size", "spill-fill", "VTCM", "cosine", "SNR", "compiled in"
        )  # fmt: skip
        if any(entry.task for entry in manifest.entries):
            head = (*head, "metric (CPU)")
            told = [markdown(task_text(entry.task)) for entry in manifest.entries]
            rows = [(*row, task) for row, task in zip_longest(rows, told, fillvalue="—")]
        lines = (head, tuple("---" for _ in head), *rows)
        blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if any(entry.parity for entry in manifest.entries):
        blocks.append(EMULATOR)
    if manifest.chains:
        blocks.append("Parts one after the other:")
        blocks.append("\n".join(f"- {markdown(line)}" for line in chain_lines(manifest.chains)))
    if manifest.contexts:
        blocks.append("Graphs that share a context:")
        blocks.append("\n".join(f"- {markdown(line)}" for line in context_lines(manifest.contexts)))
    if exports := export_lines(manifest.entries):
        blocks.append("Exported graphs against their original models, on the CPU:")
        blocks.append("\n".join(f"- {markdown(graph)}: {markdown(text)}" for graph, text in exports.items()))
    if findings:
        blocks.append("### Findings")
        blocks.append(_list(findings))
    if manifest.tools:
        tools = ", ".join(f"{name} {version}" for name, version in manifest.tools.items())
        blocks.append(f"<sub>{markdown(tools)}</sub>")
    return "\n\n".join(blocks) + "\n"


def export_summary(name: str, exports: Mapping[str, str], findings: Sequence[Finding], *, passed: bool) -> str:
    """An export as Markdown: `exports` are the figures of each graph, empty where nothing was measured."""
    verdict = f"exported {', '.join(map(markdown, exports))}" if exports else "no graph was exported"
    blocks = [f"## {'✅' if passed else '❌'} {markdown(name)}: {verdict}"]
    figures = [f"- {markdown(graph)}: {markdown(text)}" for graph, text in exports.items() if text]
    if figures:
        blocks += ["Against their original models, on the CPU:", "\n".join(figures)]
    if findings:
        blocks += ["### Findings", _list(findings)]
    return "\n\n".join(blocks) + "\n"


def findings_summary(what: str, findings: Sequence[Finding], *, passed: bool) -> str:
    """What was found of one thing, as Markdown."""
    errors = sum(f.severity == "error" for f in findings)
    mark = "❌" if not passed else "⚠️" if errors else "✅"
    return f"## {mark} {markdown(what)}: {counted(len(findings), 'finding')}\n\n{_list(findings)}\n"


def _list(findings: Sequence[Finding]) -> str:
    return "\n".join(_item(problem) for problem in problems(findings))


def _row(entry: Entry, manifest: Manifest) -> tuple[str, ...]:
    cosine, snr = worst(entry.parity)
    return (
        "❌" if not entry.passed else "⚠️" if marred(entry, manifest) else "✅",
        markdown(entry.graph),
        markdown(f"{entry.soc} ({entry.dsp_arch})"),
        markdown(entry.precision),
        size(entry.bytes),
        size(entry.spill_fill_bytes),
        size(entry.vtcm_bytes),
        cosine,
        snr,
        f"{entry.compile_seconds:.1f} s",
    )


def _rows_without_binary(manifest: Manifest, findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    """A target that failed to compile has no entry; its findings still say that it was wanted."""
    built = {(entry.graph, entry.soc) for entry in manifest.entries}
    built |= {(shared.name, shared.soc) for shared in manifest.contexts}
    built |= {(chain.graph, chain.soc) for chain in manifest.chains}
    wanted = dict.fromkeys((f.graph, f.soc) for f in findings if f.graph and f.soc)
    return [("❌", markdown(graph), markdown(soc), *("—",) * 7) for graph, soc in wanted if (graph, soc) not in built]


def _item(problem: Problem) -> str:
    f = problem.finding
    where = f" {markdown(problem.where)}:" if problem.where else ""
    hint = f"<br>→ {markdown(f.hint)}" if f.hint else ""
    place = f"{f.file}:{f.line}" if f.line else f.file
    file = f" ({markdown(place)})" if place else ""
    return f"- **{f.severity}** `{_code(f.rule)}`{where} {markdown(shortened(problem.message, _TEXT))}{file}{hint}"


def _code(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text)


def markdown(text: str) -> str:
    """Text that shows as itself on one line, in a table too: what has a meaning becomes a character reference."""
    one_line = " ".join(clean(text).split())
    return _LINKED.sub(_PARTED, _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", one_line))


def capped(text: str, room: int) -> str:
    """At most `room` bytes of UTF-8, cut after a whole line, saying that it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= room:
        return data.decode("utf-8")
    kept = data[: max(room - len(CUT.encode()), 0)].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n") + 1].rstrip("\n")
    return kept + CUT if kept else ""
