"""A graph that is cut into parts: the cut, what each part is fed with, and all parts one after the other.

Plans first, then what workers do. Weights are read by one part at a time, samples one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qnnci.arrays import Arrays, Feeds, load_samples, save_samples
from qnnci.build.adapt import Order, from_binary, to_binary
from qnnci.build.cache import Record, key_of
from qnnci.build.calls import PREPARED, REFERENCE, Call
from qnnci.context.info import ContextInfo
from qnnci.findings import plain
from qnnci.plan import Target
from qnnci.project import Split
from qnnci.rules import finding

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Link:
    """A compiled part in a chain: where it is, and what its binary says."""

    target: Target
    folder: Path
    info: ContextInfo
    compiled: dict[str, str]


def part_file(index: int) -> str:
    """The part's graph as it was cut, in the folder of the whole."""
    return f"part-{index}.onnx"


def _passed(index: int, kept: str) -> str:
    return f"part-{index}.{kept}"


def split(name: str, settings: Split, folder: Path, prepared: dict[str, str]) -> Call:
    """Cut the prepared graph."""
    outs = tuple(part_file(index) for index in range(len(settings.at) + 1))
    cuts = [list(names) for names in settings.at]
    arguments = {"model": str(folder / PREPARED), "cuts": cuts, "outs": [str(folder / out) for out in outs]}
    return Call(name, "split", folder, arguments, key_of(model=prepared, cuts=cuts), outs, module="parts")


def passing(name: str, folder: Path, parts: Sequence[Json], files: dict[str, str], samples: dict[str, str]) -> Call:
    """Run the parts on the CPU, each on what those before it give, from the samples of the whole in `samples`."""
    (kept,) = samples
    stage = "pass" if kept == REFERENCE else "pass_calibration"
    outs = tuple(_passed(index, kept) for index in range(len(parts)))
    arguments = {
        "samples": str(folder / kept),
        "models": [str(folder / part_file(index)) for index in range(len(parts))],
        "outs": [str(folder / out) for out in outs],
        "takes": [part["takes"] for part in parts],
    }
    return Call(name, stage, folder, arguments, key_of(parts=files, samples=samples), outs, module="parts")


def samples_of(
    part: str, index: int, whole: Path, folder: Path, kept: str, *, passed: Record, prepared: dict[str, str], told: str
) -> Call:
    """Make what was passed to a part its own: its reference, or its calibration inputs; `told` says of what."""
    stage = "reference" if kept == REFERENCE else "calibrate"
    name = _passed(index, kept)
    arguments = {"samples": str(whole / name), "model": str(folder / PREPARED), "out": str(folder / kept), "told": told}
    key = key_of(samples=passed.files[name], model=prepared, told=told)
    return Call(part, stage, folder, arguments, key, (kept,), module="parts")


def chain(
    whole: str, links: Sequence[Link], folder: Path, reference: dict[str, str], *, seconds: float, order: Order
) -> Call:
    """Run the binaries of all parts, each on what those before it gave, from the reference of the whole."""
    soc = links[0].target.soc
    said = [{"info": link.info.to_json(), "order": order} for link in links]
    paths = [
        {
            "context_model": str(link.folder / link.target.context_model),
            "reference": str(link.folder.parent / REFERENCE),
        }
        for link in links
    ]
    arguments = {
        "parts": [{**place, **each} for place, each in zip(paths, said, strict=True)],
        "reference": str(folder / REFERENCE),
        "soc_id": soc.id,
        "seconds": seconds,
    }
    key = key_of(binaries=[link.compiled for link in links], reference=reference, said=said, seconds=seconds)
    return Call(f"{whole}-{soc.name}", "chain", folder / soc.name, arguments, key, module="parts")


def split_stage(*, model: str, cuts: list[list[str]], outs: list[str]) -> Json:
    """In a worker: write the parts."""
    from qnnci.model.cut import cut

    made = cut(Path(model), cuts, [Path(out) for out in outs])
    return {"parts": [{"takes": list(part.takes), "gives": list(part.gives)} for part in made]}


def pass_stage(*, samples: str, models: list[str], outs: list[str], takes: list[list[str]]) -> Json:
    """In a worker: what each part takes and gives on the CPU, and whether the last ones give what the whole does."""
    from qnnci.model.same import COARSE, unlike

    count = _pass(Path(samples), models, outs, takes)
    wrong: dict[str, str] = {}
    for index in range(count):
        made = _joined([Feeds(Path(out), "want")[index] for out in outs])
        for name, want in Feeds(Path(samples), "want")[index].items():
            if why := unlike(want, made.get(name), COARSE):
                wrong.setdefault(name, why)
    message = "; ".join(f"{name}: {why}" for name, why in wrong.items())
    return {"samples": count, "findings": plain([finding("split-differs", message)] if wrong else [])}


def pass_calibration_stage(*, samples: str, models: list[str], outs: list[str], takes: list[list[str]]) -> Json:
    """In a worker: the calibration inputs of each part."""
    return {"samples": _pass(Path(samples), models, outs, takes)}


def _pass(samples: Path, models: list[str], outs: list[str], takes: list[list[str]]) -> int:
    from qnnci.model.reference import Original

    sources = [Feeds(samples)]
    for model, out, names in zip(models, outs, takes, strict=True):
        graph = Original(Path(model), {})

        def pair(index: int, names: list[str] = names, graph: Original = graph) -> tuple[Arrays, Arrays]:
            there = _joined([source[index] for source in sources])
            feed = {name: there[name] for name in names}
            return feed, graph.run(feed)

        save_samples(Path(out), map(pair, range(len(sources[0]))))
        sources.append(Feeds(Path(out), "want"))
    return len(sources[0])


def _joined(given: Sequence[Arrays]) -> Arrays:
    return {name: array for arrays in given for name, array in arrays.items()}


def reference_stage(*, samples: str, model: str, out: str, told: str) -> Json:
    """In a worker: the samples of a part, in the dtypes of its prepared graph."""
    from qnnci.model.reference import specs

    kinds = {spec.name: spec.dtype for spec in specs(Path(model))}
    feeds, wants = Feeds(Path(samples)), Feeds(Path(samples), "want")

    def pair(index: int) -> tuple[Arrays, Arrays]:
        feed = feeds[index]
        return {name: feed[name].astype(kind) for name, kind in kinds.items()}, wants[index]

    save_samples(Path(out), map(pair, range(len(feeds))))
    return {"samples": len(feeds), "inputs": told}


def calibrate_stage(*, samples: str, model: str, out: str, told: str) -> Json:
    return reference_stage(samples=samples, model=model, out=out, told=told)


def chain_stage(*, parts: list[Json], reference: str, soc_id: int, seconds: float) -> Json:
    """In a worker: binary after binary in the emulator, each on all samples; no sample is begun after its time."""
    from qnnci.context.ep_context import refuse_other_binary
    from qnnci.model.parity import compare
    from qnnci.toolchain.ort import Emulator

    samples = load_samples(Path(reference))
    pools = [dict(feed) for feed, _ in samples]
    for part in parts:
        path = Path(part["context_model"])
        refuse_other_binary(path, path.name.replace("_ctx.onnx", ".bin"))
        runner, graph = Emulator(path, soc_id=soc_id), ContextInfo.from_json(part["info"]).graphs[0]
        feeds, wants = Feeds(Path(part["reference"])), Feeds(Path(part["reference"]), "want")
        started, done = time.monotonic(), 0
        for index, pool in enumerate(pools):
            if done and time.monotonic() - started > seconds / len(parts):
                break
            feed = {name: pool[name].astype(like.dtype) for name, like in feeds[index].items()}
            got = runner.run({**feed, **to_binary(feed, graph.inputs, part["order"], {})})
            pool.update(from_binary(got, wants[index], graph.outputs, part["order"], {}))
            done += 1
        del pools[done:], runner
    outputs, found = compare([want for _, want in samples[: len(pools)]], pools)
    return {"samples": len(pools), "outputs": outputs, "findings": plain(found)}
