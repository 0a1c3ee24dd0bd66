"""`each:` in a graph: one entry that stands for many graphs, such as one for every chunk length of an export."""

from __future__ import annotations

import itertools
import re
from typing import Any

from qnnci.errors import UsageError
from qnnci.yaml_lines import Loc

_MOST = 4096  # graphs; more than any matrix of jobs can take
_SCALARS = (str, int, float)


def expand(data: dict[str, Any], lines: dict[Loc, int], where: str) -> tuple[dict[str, Any], dict[Loc, int]]:
    """Replace every graph that has `each` by its variants, in the order of the lists, the last varying fastest.

    `{key}` stands for a value in the graph's name and in every text below it. Lines follow: those of the entry.

    Raises:
        UsageError: an `each` that is no mapping of lists, a name that does not tell its variants apart.

    """
    graphs = data.get("graphs")
    if not isinstance(graphs, dict) or not any(
        isinstance(graph, dict) and "each" in graph for graph in graphs.values()
    ):
        return data, lines
    made: dict[str, Any] = {}
    places = dict(lines)
    for name, graph in graphs.items():
        if not isinstance(graph, dict) or "each" not in graph:
            made[name] = graph
            continue
        place = f"{where}:{lines.get(('graphs', str(name), 'each'), 1)}"
        rest = {key: value for key, value in graph.items() if key != "each"}
        for values in _combinations(graph["each"], place):
            variant = _filled(str(name), values)
            if variant in made or "{" in variant:
                hint = f"write each of {', '.join(f'{{{key}}}' for key in values)} into the graph's name"
                raise UsageError(f"the name {name!r} does not tell its variants apart", where=place, hint=hint)
            made[variant] = _filled(rest, values)
            places |= _moved(lines, ("graphs", str(name)), ("graphs", variant))
        if len(made) > _MOST:
            raise UsageError(f"more than {_MOST} graphs", where=place, hint="split the project into several files")
    return {**data, "graphs": made}, places


def _combinations(each: Any, where: str) -> list[dict[str, Any]]:
    fits = isinstance(each, dict) and all(
        isinstance(values, list) and values and all(isinstance(value, _SCALARS) for value in values)
        for values in each.values()
    )
    if not fits or not each:
        raise UsageError(
            "`each` is a mapping of names to lists of values", where=where, hint="`each: {seconds: [5, 8]}`"
        )
    count = 1
    for values in each.values():
        count *= len(values)
    if count > _MOST:
        raise UsageError(f"`each` stands for {count} graphs; {_MOST} are the most", where=where)
    return [dict(zip(map(str, each), values, strict=True)) for values in itertools.product(*each.values())]


def _filled(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), value)
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if isinstance(value, dict):
        return {_filled(key, values): _filled(item, values) for key, item in value.items()}
    return value


def _moved(lines: dict[Loc, int], old: Loc, new: Loc) -> dict[Loc, int]:
    return {(*new, *loc[2:]): line for loc, line in lines.items() if loc[:2] == old}
