"""Every layer of a graph on the HTP against the CPU: what the verb `debug graph` asks of a worker."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from qnnci.arrays import Arrays
from qnnci.errors import QnnciError
from qnnci.files import SCRATCH, disk_errors
from qnnci.model.layers import Alone, Layer, Tensor, chunks, ends, exposed, jumps, rounded, tensors
from qnnci.model.parity import distance
from qnnci.model.reference import Original
from qnnci.model.weights import files_beside
from qnnci.toolchain import ort

_CHUNK_BYTES = 64 << 20  # of one sample's tensors that are exposed at once
_ALONE = 8  # so many layers are run alone, those that lose most


@dataclass(frozen=True, slots=True)
class Chip:
    """For what the probes are compiled, as `qnnci.toolchain.ort.compile_context` takes it."""

    soc_id: int
    vtcm_mb: int
    optimization: int
    fp16: bool


def measure(prepared: Path, compiled: Path, feeds: Sequence[Arrays], chip: Chip | None, fine: float) -> list[Layer]:
    """Each computed float tensor of `prepared`, as `compiled` (the same graph, or its QDQ form) has it on the HTP.

    Layers with `fine` dB are not looked at alone. Without a chip, fp16 is simulated on the CPU. Tensors that the
    compiler does not give out are left out.
    """
    probe = _Probe(prepared, compiled, feeds, chip)
    found = tensors(prepared)
    figures: dict[str, tuple[float | None, float]] = {}
    for chunk in chunks(found, _CHUNK_BYTES):
        want, got = probe.run([each.name for each in chunk])
        for name, array in got.items():
            figures[name] = distance(want[name], array).snr_db, float(np.abs(want[name]).max(initial=0))
    reached = ends(prepared)
    by_name = {each.name: each for each in found}
    layers = [_layer(each, figures, reached.get(each.name, ()), by_name) for each in found if each.name in figures]
    worst = sorted(jumps(layers, fine), key=lambda each: -each.drop_db)[:_ALONE]
    alone = {each.tensor: probe.alone(by_name[each.tensor]) for each in worst}
    return [replace(each, alone_db=alone.get(each.tensor)) for each in layers]


def _layer(
    of: Tensor, figures: dict[str, tuple[float | None, float]], reached: tuple[str, ...], by_name: dict[str, Tensor]
) -> Layer:
    known, parts = _sources(of, figures, by_name)
    before = None if not known else min(-200.0 if each is None else each for each in known)
    snr, peak = figures[of.name]
    return Layer(of.name, of.depth, of.node, of.op, snr, before, peak, ends=reached, parts=parts)


def _sources(
    of: Tensor, figures: dict[str, tuple[float | None, float]], by_name: dict[str, Tensor]
) -> tuple[list[float | None], tuple[str, ...]]:
    """Figures of what a tensor is made of, and the nodes between that have none: they became part of its node."""
    known: list[float | None] = []
    parts: dict[str, None] = {}
    waiting, seen = list(of.inputs), set(of.inputs)
    for name in waiting:  # it grows meanwhile
        if name in figures:
            known.append(figures[name][0])
        elif name in by_name:
            parts[by_name[name].node] = None
            waiting += [each for each in by_name[name].inputs if each not in seen]
            seen.update(by_name[name].inputs)
    return known, tuple(parts)


class _RefusedError(Exception):
    """The compiler does not give out these tensors."""


class _Probe:
    """Runs a graph on the CPU and on the HTP with some of its tensors as outputs."""

    def __init__(self, prepared: Path, compiled: Path, feeds: Sequence[Arrays], chip: Chip | None) -> None:
        self._prepared, self._compiled, self._feeds, self._chip = prepared, compiled, feeds, chip

    def run(self, names: Sequence[str]) -> tuple[Arrays, Arrays]:
        """The tensors on the CPU and on the HTP, each one long vector over all samples."""
        pairs = self.samples(names)
        return _joined([want for want, _ in pairs]), _joined([got for _, got in pairs])

    def samples(self, names: Sequence[str]) -> list[tuple[Arrays, Arrays]]:
        """By sample, the tensors on the CPU and on the HTP; where the compiler refuses, in halves, down to none."""
        try:
            return self._try(names)
        except _RefusedError as error:
            sys.stderr.write(f"not with {len(names)} tensors as outputs: {error}\n")
        if len(names) == 1:
            return [({}, {}) for _ in self._feeds]
        half = len(names) // 2
        parts = zip(self.samples(names[:half]), self.samples(names[half:]), strict=True)
        return [({**want, **more_want}, {**got, **more_got}) for (want, got), (more_want, more_got) in parts]

    def _try(self, names: Sequence[str]) -> list[tuple[Arrays, Arrays]]:
        with _room(self._prepared, self._compiled) as room:
            exposed(self._prepared, names, room / "cpu.onnx")
            original = Original(room / "cpu.onnx", {})
            runner, where = self._runner(names, room)
            pairs = []
            for feed in self._feeds:
                want, made = original.run(feed), runner.run(feed)
                got = {name: made[there] for name, there in where.items() if name in want}
                pairs.append(({name: want[name] for name in got}, got))
            return pairs

    def _runner(self, names: Sequence[str], room: Path) -> tuple[Original | ort.Emulator, dict[str, str]]:
        probe = room / "probe.onnx"
        if self._chip is None:
            rounded(self._compiled, room / "half.onnx")
            where = exposed(room / "half.onnx", names, probe)
            return Original(probe, {}), where
        where = exposed(self._compiled, names, probe)
        context_model = room / "probe_ctx.onnx"
        try:
            ort.compile_context(probe, context_model, room / "probe.bin", **asdict(self._chip))
        except QnnciError:
            raise
        except Exception as error:
            raise _RefusedError(error) from error  # ONNX Runtime raises types of its own
        if not context_model.exists():
            raise _RefusedError("no binary was written")
        return ort.Emulator(context_model, soc_id=self._chip.soc_id), where

    def alone(self, tensor: Tensor) -> float | None:
        """The SNR of a node by itself: what the HTP made of its own inputs, against the CPU on the same inputs."""
        with _room(self._prepared, self._compiled) as room:
            node = Alone(self._prepared, tensor.name, room / "alone.onnx")
            computed = [name for name in node.inputs if name not in self._feeds[0]]
            pairs = self.samples([*computed, tensor.name])
            if any(name not in pairs[0][1] for name in (*computed, tensor.name)):
                return None
            wants = [
                node.run({**feed, **got})[tensor.name].ravel()
                for feed, (_, got) in zip(self._feeds, pairs, strict=True)
            ]
            gots = [got[tensor.name].ravel() for _, got in pairs]
        return distance(np.concatenate(wants), np.concatenate(gots)).snr_db


@contextmanager
def _room(*models: Path) -> Iterator[Path]:
    """A scratch folder beside the models with their external data in it, which ONNX looks for beside a file."""
    folder = models[0].parent
    with disk_errors(folder), tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as name:
        for file in {each for model in models for each in files_beside(model)}:
            os.link(file, Path(name) / file.name)
        yield Path(name)


def _joined(samples: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([each[name].ravel() for each in samples]) for name in samples[0]}
