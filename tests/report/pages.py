"""Manifests for tests of report.html: every part of the page has something to show."""

from __future__ import annotations

from pathlib import Path

from qnnci.findings import Finding
from qnnci.manifest import Entry, Figures, FindingRecord, Manifest, Parity, StageTime, Task, Wanted
from qnnci.report.excerpts import Logs
from qnnci.report.page import render

SOCS = ("SM8550", "SM8650", "SM8750")
GATE = {"metric": "snr_db", "min": 12}
LOG = "build/logs/compile.log"


def entry(graph: str, soc: str, *, text: str = "x", snr: float | None = 40.0, **changes: object) -> Entry:
    figures = Figures(cosine=0.9995, snr_db=snr, max_abs=1e-3, max_rel=None)
    base: dict[str, object] = {
        "graph": graph, "soc": soc, "soc_id": 1, "dsp_arch": "v79", "precision": "fp16", "passed": True,
        "binary": f"{text}/{graph}.bin".replace("\0", ""),
        "sha256": "0" * 64, "bytes": 3 << 20, "context_model": "", "graph_name": text,
        "route": text, "qairt": text, "optimization": 3, "vtcm_bytes": 8 << 20, "spill_fill_bytes": 1 << 20,
        "const_bytes": 2 << 20, "op_data_bytes": 1 << 19, "io_bytes": 1 << 18, "inputs": (), "outputs": (),
        "source": text, "source_sha256": "1" * 64, "license": text, "compile_seconds": 1.25, "compile_peak_mb": 300,
        "parity": Parity(inputs=text, samples=4, outputs={text: figures}), "built_at": text, "built_by": text,
        "export_parity": {text: figures}, "task": Task(metric=text, value=0.5, cpu=0.75, samples=3),
    }  # fmt: skip
    return Entry.model_validate(base | changes)


def manifest(text: str = "x", graphs: tuple[str, ...] = ("enc", "dec"), socs: tuple[str, ...] = SOCS) -> Manifest:
    """A build of which the last target was not built, and others have findings; `text` is whatever others say."""
    targets = [(graph, soc) for graph in graphs for soc in socs]
    findings = (
        Finding(
            "cpu-fallback", "error", text, text, graphs[-1], socs[-1], "compile", text, "build/logs/compile.log", 40
        ),
        Finding("parity", "warning", text, text, graphs[0], socs[0], "gate", "", text, 3),
        Finding("not-verified", "notice", text, text, graphs[0], "", "verify", text),
    )
    stages = [StageTime(graph=graphs[0], stage="prepare", state="done", began=_at(0), seconds=2, peak_mb=200)]
    stages += [
        StageTime(graph=graph, soc=soc, stage="compile", state="done", began=_at(2 + at), seconds=1.5, peak_mb=300)
        for at, (graph, soc) in enumerate(targets)
    ]
    return Manifest(
        name=text, license=text, passed=False, tools={text: text, "qnnci": text}, devices=(),
        targets=tuple(Wanted(graph=graph, soc=soc) for graph, soc in targets),
        entries=tuple(
            entry(graph, soc, text=text, snr=10.0 + 3 * at, bytes=(at + 1) << 20, passed=at > 0)
            for at, (graph, soc) in enumerate(targets[:-1])
        ),
        findings=tuple(FindingRecord.model_validate(each.to_json()) for each in findings),
        stages=tuple(stages),
        settings={"route": text, "graphs": {graph: {"gates": {"parity": [GATE]}} for graph in graphs}},
    )  # fmt: skip


def _at(second: int) -> str:
    return f"2026-12-01T10:{second // 60:02}:{second % 60:02}.000+00:00"


def with_log(folder: Path, text: str, count: int = 300) -> Logs:
    """The logs of a build whose compile.log says `text` on many lines."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    lines = [f"line {number} {text}" for number in range(1, count + 1)]
    (folder / "logs/compile.log").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    return Logs([folder], 1 << 19)


def page(folder: Path, text: str = "x", **what: tuple[str, ...]) -> str:
    return render(manifest(text, **what), with_log(folder, text.replace("\n", " ")))
