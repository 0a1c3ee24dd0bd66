"""Whether what a build made may be given to others: a compiled model is the model, and the runtime is Qualcomm's."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from importlib import resources

from qnnci.findings import Finding
from qnnci.rules import finding
from qnnci.ship.assets import Asset


def _terms() -> dict[str, str]:
    """By SPDX id, or id of the Hugging Face Hub: free, for anybody to pass on; bound, not to all and for everything."""
    with (resources.files("qnnci") / "data" / "licences.csv").open(encoding="utf-8") as file:
        return {row["id"]: row["terms"] for row in csv.DictReader(file)}


_RUNTIME = re.compile(r"(?i)(lib)?Qnn[A-Za-z0-9]*\.(so|dll)")
_NOTICE = re.compile(r"(?i)(qualcomm_|qairt_|qnn_)?licen[cs]e(\.pdf|_qualcomm.*)|(qualcomm|qairt|qnn).*licen[cs]e.*")


def judge(licences: Iterable[str | None], files: Sequence[Asset], allowed_because: str = "") -> list[Finding]:
    """What speaks against publishing. `allowed_because` is a person's own statement, in place of a known licence."""
    found = []
    for licence in dict.fromkeys(licences):
        terms = _terms().get(re.sub(r"-(only|or-later)$", "", (licence or "").strip().lower()))
        if terms == "free" or allowed_because:
            continue
        if terms == "bound":
            found.append(finding("licence-bound", f"the model's licence is {licence}"))
        else:
            told = f"the model's licence is {licence[:100]!r}" if licence else "no licence of the model is named"
            found.append(finding("licence-unknown", told))
    runtime = [each.name for each in files if _RUNTIME.fullmatch(each.name)]
    if runtime and not any(_NOTICE.fullmatch(each.name) for each in files):
        found.append(finding("licence-qairt", f"{runtime[0]} is among the files"))
    return found
