"""`split:` in a graph: beside the entry, one for each of its parts, which are graphs like any other."""

from __future__ import annotations

from typing import Any

from qnnci.errors import UsageError
from qnnci.yaml_lines import Loc

# Those of the whole: a part is made of it, and its own inputs follow from the cuts.
_WHOLE = frozenset({"split", "source", "export", "sha256", "inputs", "simplify"})


def expand(data: dict[str, Any], lines: dict[Loc, int], where: str) -> tuple[dict[str, Any], dict[Loc, int]]:
    """Add the parts of every graph that has `split`, behind it and in order; lines are those of the entry.

    What is wrong in `split` itself is left to the project's own validation.

    Raises:
        UsageError: a part has the name of another graph.

    """
    graphs = data.get("graphs")
    if not isinstance(graphs, dict):
        return data, lines
    made: dict[str, Any] = {}
    places = dict(lines)
    for name, graph in graphs.items():
        made[name] = graph
        for index, part in enumerate(_names(str(name), graph)):
            if part in made or (part in graphs and not _is_part(graphs[part], str(name))):
                place = f"{where}:{lines.get(('graphs', str(name), 'split'), 1)}"
                hint = "`split: {names: […]}` gives the parts other names"
                raise UsageError(f"a part of {name} has the name of another graph, {part!r}", where=place, hint=hint)
            rest = {key: value for key, value in graph.items() if key not in _WHOLE}
            made[part] = {**rest, "simplify": False, "part": {"of": str(name), "index": index}}
            places |= {("graphs", part, *loc[2:]): line for loc, line in lines.items() if loc[:2] == ("graphs", name)}
    return {**data, "graphs": made}, places


def _names(name: str, graph: Any) -> list[str]:
    split = graph.get("split") if isinstance(graph, dict) else None
    cuts = split.get("at") if isinstance(split, dict) else None
    if not isinstance(split, dict) or not isinstance(cuts, list):
        return []
    given = split.get("names")
    names = given if isinstance(given, list) and all(isinstance(each, str) for each in given) else []
    return names if len(names) == len(cuts) + 1 else [f"{name}-{index}" for index in range(len(cuts) + 1)]


def _is_part(graph: Any, of: str) -> bool:
    """Whether an entry is a part already, as in what `qnnci show` prints."""
    part = graph.get("part") if isinstance(graph, dict) else None
    return isinstance(part, dict) and part.get("of") == of
