"""The model card on the Hugging Face Hub: our part of it is written anew, all that people wrote around it stays."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from qnnci.manifest import Entry, Manifest, newest
from qnnci.project import HuggingFace, Layout
from qnnci.report import figures, front_matter
from qnnci.report.exports import export_lines, task_text
from qnnci.report.summary import EMULATOR, markdown
from qnnci.ship.licences import hub_licence

BEGIN = "<!-- qnn-compile: what stands between these two lines is written anew each time -->"
END = "<!-- qnn-compile: end -->"
_OURS = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}\n?", re.DOTALL)
_ADDRESS = re.compile(r"https://[A-Za-z0-9.:-]+(/[A-Za-z0-9._-]+)*")
_TAGS = ("qnn", "qualcomm", "snapdragon", "htp", "npu")
_LONGEST = 200  # characters of a value
_SETTINGS = 20_000  # characters of the settings


@dataclass(frozen=True, slots=True)
class Facts:
    """What a card is made of: `binaries` are their paths on the Hub by graph and SoC, the others are paths there too.

    `license` is the model's and `notice` the path of its text, `run` the address of the workflow run and `commit` what
    it built, each empty where it is not known.
    """

    repo: str
    manifest: Manifest
    about: HuggingFace
    layout: Layout
    license: str
    binaries: Mapping[tuple[str, str], str]
    context_models: Sequence[str] = ()
    archives: Sequence[str] = ()
    notice: str = ""
    allowed_because: str = ""
    commit: str = ""
    run: str = ""


def card(facts: Facts, old: str) -> str:
    """The new README.md in place of `old`, which is empty where there is none."""
    front, body = front_matter.split(old)
    front = front_matter.merged(front, metadata(facts, front_matter.tags(front)))
    part = _part(facts)
    if _OURS.search(body):
        body = _OURS.sub(lambda _: part, body, count=1)
    elif body.strip():
        body = f"{body.rstrip()}\n\n{part}"
    else:
        body = f"\n# {markdown(facts.manifest.name)} for Snapdragon\n\n{part}"
    return f"---\n{front}---\n{body}"


def metadata(facts: Facts, tags: Sequence[str] = ()) -> dict[str, Any]:
    """Our keys of the card's YAML; None for one that does not hold here, a missing one is left to people."""
    about, known = facts.about, hub_licence(facts.license)
    found: dict[str, Any] = {"license": known or "other"}
    found["license_name"] = None if known else about.license_name or _slug(facts.license)
    found["license_link"] = about.license_link or (None if known else facts.notice or None)
    library = about.library_name or {"sherpa-onnx": "sherpa-onnx"}.get(facts.layout, "onnxruntime")
    found["library_name"] = library
    if about.base_model:
        found |= {"base_model": list(about.base_model), "base_model_relation": "quantized"}
    if about.pipeline_tag:
        found["pipeline_tag"] = about.pipeline_tag
    if about.language:
        found["language"] = list(about.language)
    found["tags"] = list(dict.fromkeys((*tags, *_TAGS, *about.tags)))
    return found


def _slug(licence: str) -> str:
    """As the Hub wants a licence's name: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9.]+", "-", licence.lower()).strip("-.")[:_LONGEST] or "unknown"


def _part(facts: Facts) -> str:
    from jinja2 import Environment, StrictUndefined

    # What is not escaped here is escaped by `markdown` already, or is a path or name of a checked form.
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701
    template = environment.from_string((files("qnnci") / "data" / "report" / "card.md.j2").read_text(encoding="utf-8"))
    manifest = facts.manifest
    socs = list(dict.fromkeys(entry.soc for entry in manifest.entries))
    number = _shown(next((entry.dsp_arch.removeprefix("v") for entry in manifest.entries), ""))
    count, chips = len(manifest.entries), len(socs)
    text = template.render(
        BEGIN=BEGIN,
        END=END,
        verdict=f"{count} QNN context {'binary' if count == 1 else 'binaries'} for {chips} "
        f"{'chip' if chips == 1 else 'chips'}: {', '.join(map(_shown, socs))}.",
        runtime=_shown(newest(entry.qairt for entry in manifest.entries)),
        rows=[_row(entry, facts.binaries.get((entry.graph, entry.soc), "")) for entry in manifest.entries],
        measured=any(entry.parity and entry.parity.runner == "emulator" for entry in manifest.entries),
        measures=_measures(manifest.entries),
        emulator=EMULATOR,
        repo=facts.repo,
        sherpa=facts.archives[0] if facts.layout == "sherpa-onnx" and facts.archives else "",
        example=PurePosixPath(facts.context_models[0]) if facts.context_models else None,
        pages=[] if facts.context_models or facts.layout != "onnxruntime" else facts.archives,
        libraries="`libQnnHtp.so`, `libQnnSystem.so`, and the stub and skel of the chip's arch, such as "
        f"`libQnnHtpV{number}Stub.so` and `libQnnHtpV{number}Skel.so`",
        origin=list(_origin(facts)),
        settings=html.escape(json.dumps(manifest.settings, indent=2)[:_SETTINGS]),
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def _row(entry: Entry, path: str) -> dict[str, str]:
    cosine, snr = figures.worst(entry.parity)
    told = {"soc": entry.soc, "arch": entry.dsp_arch, "graph": entry.graph, "precision": entry.precision}
    link = f"[{PurePosixPath(path).name}]({path})" if path else figures.NONE
    shown = {key: _shown(text) for key, text in told.items()}
    return {**shown, "size": figures.size(entry.bytes), "cosine": cosine, "snr": snr, "file": link}


def _measures(entries: Sequence[Entry]) -> list[str]:
    """What was measured of exported graphs, and of each binary by a command of the project's own."""
    told = [f"{_shown(graph)}, exported: {_shown(text)}" for graph, text in export_lines(entries).items()]
    tasks = [
        f"{_shown(each.graph)} on {_shown(each.soc)}: {_shown(task_text(each.task))}" for each in entries if each.task
    ]
    return [*told, *tasks]


def _origin(facts: Facts) -> Iterator[str]:
    sources = dict.fromkeys((entry.graph, entry.source, entry.source_sha256) for entry in facts.manifest.entries)
    for graph, source, digest in sources:
        yield f"{_shown(graph)}: {_shown(source)}, sha256 {_shown(digest)}"
    yield f"licence of the model: {_shown(facts.license or 'not named')}"
    if facts.allowed_because:
        yield f"published because: {_shown(facts.allowed_because)}"
    tools = ", ".join(f"{name} {version}" for name, version in facts.manifest.tools.items())
    yield f"compiled by qnn-compile with {_shown(tools)}"
    if facts.commit:
        yield f"of commit {_shown(facts.commit)}"
    if facts.run:
        yield f"in [a workflow run]({facts.run})" if _ADDRESS.fullmatch(facts.run) else f"in {_shown(facts.run)}"


def _shown(text: str) -> str:
    return markdown(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
