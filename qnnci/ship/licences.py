"""Whether what a build made may be given to others: a compiled model is the model, and the runtime is Qualcomm's."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from importlib import resources

from qnnci.findings import Finding
from qnnci.rules import finding


def _known() -> dict[str, dict[str, str]]:
    """By SPDX id, or id of the Hugging Face Hub.

    `terms` are free, for anybody to pass on, or bound, not to all and for everything; `hub` is the Hub's id, empty
    where it has none (https://huggingface.co/docs/hub/repositories-licenses).
    """
    with (resources.files("qnnci") / "data" / "licences.csv").open(encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def _id(licence: str | None) -> str:
    return re.sub(r"-(only|or-later)$", "", (licence or "").strip().lower())


def hub_licence(licence: str) -> str:
    """The Hub's own id of a licence, empty where it has none."""
    return _known().get(_id(licence), {}).get("hub", "")


_RUNTIME = re.compile(r"(?i)(lib)?Qnn[A-Za-z0-9]*\.(so|dll)")
_NOTICE = re.compile(r"(?i)(qualcomm_|qairt_|qnn_)?licen[cs]e(\.pdf|_qualcomm.*)|(qualcomm|qairt|qnn).*licen[cs]e.*")


def judge(licences: Iterable[str | None], names: Sequence[str], allowed_because: str = "") -> list[Finding]:
    """What speaks against publishing files of these names.

    `allowed_because` is a person's own statement, in place of a known licence.
    """
    found = []
    known = _known()
    for licence in dict.fromkeys(licences):
        terms = known.get(_id(licence), {}).get("terms")
        if terms == "free" or allowed_because:
            continue
        if terms == "bound":
            found.append(finding("licence-bound", f"the model's licence is {licence}"))
        else:
            told = f"the model's licence is {licence[:100]!r}" if licence else "no licence of the model is named"
            found.append(finding("licence-unknown", told))
    runtime = [name for name in names if _RUNTIME.fullmatch(name)]
    if runtime and not any(map(_NOTICE.fullmatch, names)):
        found.append(finding("licence-qairt", f"{runtime[0]} is among the files"))
    return found
