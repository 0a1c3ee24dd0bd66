"""What an export wrote: taken in whole under names of ours, and compared with what the original model gives."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from qnnci.arrays import Arrays
from qnnci.errors import UsageError
from qnnci.files import commit, replacing
from qnnci.findings import Finding
from qnnci.model import weights
from qnnci.model.feeds import Spec, plain, read_archive, rows
from qnnci.model.graph import load
from qnnci.model.parity import distance
from qnnci.model.reference import Original
from qnnci.rules import finding

_FORM = "a .npz with feed_<input> and want_<output>, each with one sample a row"


def take(made: Path, folder: Path) -> None:
    """Move a model from a scratch folder to `folder`; what it keeps outside goes first, as one file: `<name>.data`.

    Raises:
        UsageError: it is no ONNX model, or its weights are not all there.

    """
    model = load(made)
    for problem in weights.missing(model, made):
        raise UsageError(problem)
    data = f"{made.name}.data"
    beside = weights.files_beside(made)
    if beside == [made.parent / data]:
        commit(beside[0], folder / data)
    elif beside:
        # Under other names they could fall onto files of ours; and exporters write hundreds.
        with replacing(folder / data) as part:
            weights.copy_out(model, made.parent, part, data)
        made.write_bytes(model.SerializeToString())
    commit(made, folder / made.name)


def load_reference(path: Path) -> list[tuple[Arrays, Arrays]]:
    """Feeds and wanted outputs of the original model, one pair a sample.

    Raises:
        UsageError: not there, not a .npz, no such keys, or rows that do not match.

    """
    try:
        arrays = read_archive(path)
    except UsageError as error:
        error.hint = f"a reference is {_FORM}"
        raise
    where, hint = str(path), f"a reference is {_FORM}"
    named: dict[str, Arrays] = {"feed": {}, "want": {}}
    for key, array in arrays.items():
        kind, _, name = key.partition("_")
        if kind not in named or not name:
            raise UsageError(f"an array has the name {key!r}", where=where, hint=hint)
        if not array.ndim:
            raise UsageError(f"{key} has no axis of samples", where=where, hint=hint)
        named[kind][name] = array
    if not named["want"]:
        raise UsageError("there is no want_<output> in it", where=where, hint=hint)
    counts = {key: len(array) for key, array in arrays.items()}
    if len(set(counts.values())) > 1 or not min(counts.values()):
        told = ", ".join(f"{key} has {count}" for key, count in counts.items())
        raise UsageError(f"the arrays must have the same number of samples, one or more: {told}", where=where)
    count = next(iter(counts.values()))
    return [
        ({name: array[row] for name, array in named["feed"].items()}, {n: a[row] for n, a in named["want"].items()})
        for row in range(count)
    ]


def feeds_of(reference: Path, specs: Sequence[Spec], *, count: int) -> tuple[list[Arrays], str]:
    """Up to `count` of the inputs that the original model was run on, for a prepared graph; or why they do not fit it.

    Raises:
        UsageError: the reference cannot be read.

    """
    samples = load_reference(reference)[:count]
    arrays = {name: np.stack([feed[name] for feed, _ in samples]) for name in samples[0][0]}
    try:
        return rows(arrays, specs, reference), ""
    except UsageError as error:
        return [], error.message


def compare(model: Path, reference: Path, constants: Mapping[str, Any]) -> tuple[int, dict[str, Any], list[Finding]]:
    """Run an exported graph on the CPU on the original model's inputs: samples, figures of each output, findings.

    Raises:
        UsageError: the reference cannot be read, names what the graph has not, or the graph refuses its inputs.

    """
    samples, original = load_reference(reference), Original(model, constants)
    where = str(reference)
    gots: list[Arrays] = []
    for feed, want in samples:
        named = _named(feed, [name for name in original.inputs if name not in constants or plain(name) in feed], where)
        for name, array in named.items():
            if not np.can_cast(array.dtype, original.inputs[name], "same_kind"):
                message = f"feed_{plain(name)} is {array.dtype}, the exported graph takes {original.inputs[name]}"
                raise UsageError(message, where=where)
        try:
            got = original.run(named)
        except UsageError as error:
            error.message = error.message.replace("the original does not run", "the exported graph does not run")
            error.where = where
            raise
        _known(want, got, where)
        gots.append({plain(name): array for name, array in got.items()})
    return _figures([want for _, want in samples], gots)


def _named(feed: Arrays, inputs: Sequence[str], where: str) -> Arrays:
    by_name = {plain(name): array for name, array in feed.items()}
    missing = [name for name in inputs if plain(name) not in by_name]
    if missing:
        message = f"there is no feed_{plain(missing[0])}, an input of the exported graph"
        raise UsageError(message, where=where, hint=f"a reference is {_FORM}")
    _known(feed, dict.fromkeys(inputs), where)
    return {name: by_name[plain(name)] for name in inputs}


def _known(given: Arrays, names: Mapping[str, Any], where: str) -> None:
    known = [plain(name) for name in names]
    for name in given:
        if plain(name) not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise UsageError(f"the exported graph has no {name!r}", where=where, hint=hint)


def _figures(wants: Sequence[Arrays], gots: Sequence[Arrays]) -> tuple[int, dict[str, Any], list[Finding]]:
    outputs: dict[str, Any] = {}
    found = []
    for name in wants[0]:
        want, got = wants[0][name], gots[0][plain(name)]
        if want.shape != got.shape:
            message = f"{name} has shape {list(got.shape)} in the exported graph, {list(want.shape)} in the original"
            found.append(finding("export-parity", message))
            continue
        far = distance(
            np.concatenate([sample[name].ravel() for sample in wants]),
            np.concatenate([sample[plain(name)].ravel() for sample in gots]),
        )
        outputs[name] = {key: getattr(far, key) for key in ("cosine", "snr_db", "max_abs", "max_rel")}
    return len(wants), outputs, found
