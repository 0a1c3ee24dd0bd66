"""Layout onnxruntime: each binary with the EPContext model that points at it, and a page on how to open them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from qnnci.context.ep_context import refuse_other_binary
from qnnci.manifest import Entry, Manifest, Tensor, devices
from qnnci.ship import plain
from qnnci.ship.item import Item
from qnnci.ship.member import Member

NAME = "{project}-{soc}-{precision}-onnxruntime"
PAGE = "ONNXRUNTIME.md"


def members(manifest: Manifest, items: Sequence[Item]) -> list[Member]:
    """All of layout plain, with models and page.

    Raises:
        UsageError: an EPContext model that is missing, or does not point at its binary.

    """
    made = plain.members(manifest, items)
    for item in items:
        model = Member.of_file(item.context_model.name, item.context_model)
        refuse_other_binary(item.context_model, item.binary.name)
        made.append(model)
    return [*made, Member.of_text(PAGE, page(manifest.name, [each.entry for each in items]))]


def page(name: str, entries: Sequence[Entry]) -> str:
    """How to open the models in Python, C++ and Kotlin; their inputs and outputs."""
    first = entries[0]
    text = (files("qnnci") / "data" / "onnxruntime.md").read_text(encoding="utf-8")
    qairt = next((device.min_runtime for device in devices(tuple(entries))), first.qairt)
    ports = "\n\n".join(_ports(entry) for entry in entries)
    given = {"NAME": name, "SOC": first.soc, "ARCH": first.dsp_arch, "QAIRT": qairt, "PORTS": ports}
    given["MODEL"] = first.context_model.rsplit("/", 1)[-1]
    given["NUMBER"] = first.dsp_arch.removeprefix("v")
    for key, value in given.items():
        text = text.replace(f"@{key}@", value)
    return text


def _ports(entry: Entry) -> str:
    rows = [f"| {side} | {_row(tensor)} |" for side in ("input", "output") for tensor in getattr(entry, f"{side}s")]
    head = "| | name | type | shape | scale, offset |\n| --- | --- | --- | --- | --- |"
    return "\n".join([f"`{entry.context_model.rsplit('/', 1)[-1]}`, {entry.precision}:", "", head, *rows])


def _row(tensor: Tensor) -> str:
    name = "".join(letter for letter in tensor.name if letter.isprintable()).replace("|", "\\|").replace("`", "'")
    scale = f"{tensor.scale:g}, {tensor.offset}" if tensor.scale else ""
    return f"`{name}` | {tensor.dtype} | {list(tensor.shape)} | {scale}"
