"""A static graph cut at named tensors into several that follow one another, each a model of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from qnnci.errors import UsageError
from qnnci.files import replacing
from qnnci.model.fold import fold
from qnnci.model.graph import broken_graphs, elements, label, load, static_shape
from qnnci.model.infer import SMALL
from qnnci.model.named import known
from qnnci.model.names import reads

_SHOWN = 12  # tensors in a message


@dataclass(frozen=True, slots=True)
class Part:
    """One of the graphs: what it takes of the whole's inputs and of what earlier parts give, and what it gives."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]


def cut(model: Path, cuts: Sequence[Sequence[str]], outs: Sequence[Path]) -> list[Part]:
    """Write the parts of `model` to `outs`, in the order in which they run; there is one more than there are cuts.

    `outs` stand in the model's own folder: weights that it keeps outside stay where they are, and are not read. What
    only constants lead to, such as a DequantizeLinear of a weight, is in each part that needs it.

    Raises:
        UsageError: tensors that the graph has not, or that nodes do not make; cuts in the wrong order, or that leave
            a part empty; or tensors that pass from one part to another and are not named.

    """
    with broken_graphs(model):
        whole = load(model)
        split = _Split(whole.graph, cuts)
        types = fold(_light(whole), str(model)).types
        for out, part, nodes in zip(outs, split.parts, split.nodes, strict=True):
            made = _model(whole, part, nodes, types)
            with replacing(out) as scratch:
                scratch.write_bytes(made.SerializeToString(deterministic=True))
            del made
        return split.parts


def _light(whole: Any) -> Any:
    """The same graph without the bytes of its weights: no shape follows from them, and they would be there twice."""
    light = onnx.ModelProto(ir_version=whole.ir_version)
    light.opset_import.extend(whole.opset_import)
    for field in ("node", "input", "output"):
        getattr(light.graph, field).extend(getattr(whole.graph, field))
    for tensor in whole.graph.initializer:
        if elements(tensor) <= SMALL:
            light.graph.initializer.append(tensor)
        else:
            light.graph.initializer.add(
                name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=onnx.TensorProto.EXTERNAL
            )
    return light


class _Split:
    """Which node goes into which part."""

    def __init__(self, graph: Any, cuts: Sequence[Sequence[str]]) -> None:
        self._graph, self._cuts = graph, [list(dict.fromkeys(names)) for names in cuts]
        self._maker = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
        self._reads = [reads(node) for node in graph.node]
        self._inputs = [each.name for each in graph.input]
        self._refuse_unknown()
        self._live = self._after(self._inputs)  # the rest only constants lead to
        self._place = self._places()
        self.parts = [self._part(number) for number in range(len(self._cuts) + 1)]
        self._refuse_crossing()
        self.nodes = [list(self._nodes(number)) for number in range(len(self.parts))]

    def _refuse_unknown(self) -> None:
        named = list(itertools.chain.from_iterable(self._cuts))
        known(named, [*self._inputs, *self._maker], "split: {at: …}")
        for name in named:
            if name not in self._maker:
                raise UsageError(
                    f"`split: {{at: …}}` names {name!r}, an input of the graph: nothing is before it",
                    hint="name what nodes make; inputs reach every part that reads them",
                )
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice:
            raise UsageError(
                f"`split: {{at: …}}` names {twice!r} in two cuts",
                hint="name it where it is made: it reaches all later parts",
            )

    def _after(self, names: Sequence[str]) -> set[int]:
        """Nodes to which tensors lead."""
        reached, found = set(names), set()
        for at, node in enumerate(self._graph.node):  # a prepared graph is in order
            if self._reads[at] & reached:
                found.add(at)
                reached.update(node.output)
        return found

    def _before(self, names: Sequence[str]) -> set[int]:
        """Nodes that lead to tensors, those that make them included."""
        waiting = [self._maker[name] for name in names]
        found = set(waiting)
        while waiting:
            for name in self._reads[waiting.pop()]:
                maker = self._maker.get(name)
                if maker is not None and maker not in found:
                    found.add(maker)
                    waiting.append(maker)
        return found

    def _places(self) -> dict[int, int]:
        """The part of each live node: after the cuts that lead to it, before those that it leads to, late if free."""
        count = len(self._graph.node)
        first, last = [0] * count, [len(self._cuts)] * count
        for number, names in enumerate(self._cuts, 1):
            before = self._before(names)
            for at in self._after(names) - before:
                first[at] = number
            for at in before:
                last[at] = min(last[at], number - 1)
        place: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        for at in sorted(self._live):
            makers = [self._maker[name] for name in self._reads[at] if self._maker.get(name) in self._live]
            first[at] = max([first[at], *(first[maker] for maker in makers)])
            for maker in makers:
                readers.setdefault(maker, []).append(at)
            if first[at] > last[at]:
                raise UsageError(
                    f"`split: {{at: …}}`: cut {first[at]} ({', '.join(self._cuts[first[at] - 1])}) leads to cut "
                    f"{last[at] + 1} ({', '.join(self._cuts[last[at]])})",
                    hint="name the cuts in the order in which the graph computes them; what one cut has to name "
                    "together goes into a list of its own: `at: [[a, b], c]`",
                )
        for at in sorted(self._live, reverse=True):
            later = [place[reader] for reader in readers.get(at, ())]
            place[at] = min([last[at], *later]) if later else first[at]
        for number in range(len(self._cuts) + 1):
            if number not in place.values():
                cuts = [", ".join(names) for names in self._cuts[max(number - 1, 0) : number + 1]]
                raise UsageError(
                    f"`split: {{at: …}}` leaves part {number} without a node, at {' and '.join(cuts)}",
                    hint="name tensors in the middle of the graph",
                )
        return place

    def _part(self, number: int) -> Part:
        """What a part takes and gives, in the order of the graph's inputs and outputs and of the cuts."""
        here = [at for at, place in self._place.items() if place == number]
        needs = set().union(*(self._reads[at] for at in here))
        for at in self._constant(here):
            needs |= self._reads[at]
        makes = {name for at in here for name in self._graph.node[at].output if name}
        later = [at for at, place in self._place.items() if place > number]
        passed = makes & set().union(*(self._reads[at] for at in later))
        makers = {name for at in self._live for name in self._graph.node[at].output}
        takes = [name for name in self._inputs if name in needs]
        takes += [name for name in self._maker if name in (needs & makers) - makes]
        gives = [name for name in self._maker if name in passed]
        outputs = [each.name for each in self._graph.output if each.name in makes]
        return Part(tuple(takes), tuple(dict.fromkeys([*gives, *outputs])))

    def _refuse_crossing(self) -> None:
        """What passes from part to part must have been named: it costs memory and time on the device."""
        named = set(itertools.chain.from_iterable(self._cuts))
        own = {each.name for each in self._graph.output}
        taken = set().union(*(part.takes for part in self.parts))
        crossing = [(name, at) for at, part in enumerate(self.parts) for name in part.gives if name in taken - named]
        if crossing:
            told = [f"{name} out of part {at}" for name, at in crossing[:_SHOWN]]
            more = f" and {len(crossing) - _SHOWN} more" if len(crossing) > _SHOWN else ""
            wanted: list[list[str]] = [list(names) for names in self._cuts]
            for name, at in crossing[:_SHOWN]:
                wanted[at].append(name)
            raise UsageError(
                f"`split: {{at: …}}` does not separate the graph: {', '.join(told)}{more} passes too",
                hint=f"cut elsewhere, or name these too: `at: [{', '.join(map(_listed, wanted))}]`",
            )
        for name in named:
            if name not in taken:
                also = ", an output of the graph" if name in own else ""
                raise UsageError(
                    f"`split: {{at: …}}` names {name!r}{also}, which no later part reads", hint="leave it out"
                )

    def _constant(self, nodes: Sequence[int]) -> set[int]:
        """Nodes that only constants lead to, and that lead to some of these."""
        found: set[int] = set()
        waiting = list(nodes)
        while waiting:
            for name in self._reads[waiting.pop()]:
                maker = self._maker.get(name)
                if maker is not None and maker not in self._live and maker not in found:
                    found.add(maker)
                    waiting.append(maker)
        return found

    def _nodes(self, number: int) -> Iterator[Any]:
        here = {at for at, place in self._place.items() if place == number}
        for at in sorted(here | self._constant(sorted(here))):
            yield self._graph.node[at]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _model(whole: Any, part: Part, nodes: Sequence[Any], types: Mapping[str, Any]) -> Any:
    """A model of some of the whole's nodes with the weights that they read."""
    ports = {each.name: each for each in (*whole.graph.input, *whole.graph.output)}

    def value(name: str) -> Any:
        if name in ports:
            return ports[name]
        if static_shape(types.get(name)) is None:
            hint = "cut at another tensor, behind or before it"
            raise UsageError(f"`split: {{at: …}}`: the shape of {name!r} is not known", hint=hint)
        return onnx.ValueInfoProto(name=name, type=types[name])

    needs = set().union(*(reads(node) for node in nodes))
    made = onnx.ModelProto(ir_version=whole.ir_version, producer_name=whole.producer_name)
    made.opset_import.extend(whole.opset_import)
    made.graph.name = f"{whole.graph.name or 'graph'} at {label(nodes[0])}"
    made.graph.input.extend(value(name) for name in part.takes)
    made.graph.output.extend(value(name) for name in part.gives)
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(tensor for tensor in whole.graph.initializer if tensor.name in needs)
    return made
