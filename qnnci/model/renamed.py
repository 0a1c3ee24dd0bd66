"""What preparing made of tensors' names, kept in the prepared graph, for files that name tensors of the source."""

from __future__ import annotations

import json
from typing import Any

from qnnci.model.names import defined

_KEY = "qnnci.renamed"


def remember(before: Any, after: Any) -> None:
    """Keep in `after`, by old names, which of its tensors are what `before` called otherwise."""
    if found := _renames(before.graph, after.graph):
        after.metadata_props.add(key=_KEY, value=json.dumps(found, sort_keys=True))


def recall(model: Any) -> dict[str, str]:
    """What was kept; nothing where that makes no sense."""
    for each in model.metadata_props:
        if each.key == _KEY:
            try:
                found = json.loads(each.value)
            except ValueError:
                return {}
            return {str(old): str(new) for old, new in found.items()} if isinstance(found, dict) else {}
    return {}


def _renames(before: Any, after: Any) -> dict[str, str]:
    """A weight that has the same values under another name, and what an Identity, now gone, only passed on."""
    old, new = defined(before), defined(after)
    values = {_value(each): each.name for each in reversed(after.initializer)}
    found = {
        each.name: values[_value(each)]
        for each in before.initializer
        if each.name not in new and _value(each) in values
    }
    for node in before.node:
        if node.op_type == "Identity":
            source, made = found.get(node.input[0], node.input[0]), node.output[0]
            if made not in new and source in new:
                found[made] = source
            elif source not in new and made in new and source in old:
                found[source] = made
    return found


def _value(tensor: Any) -> tuple[object, ...]:
    outside = tuple((each.key, each.value) for each in tensor.external_data)
    numbers = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    return tensor.data_type, tuple(tensor.dims), tensor.raw_data, outside, tuple(map(tuple, numbers))
