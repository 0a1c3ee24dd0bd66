"""What a log tells in passing: encodings, float ops, traffic to DDR, times of stages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_NAMES = 1000  # of tensors, ops or stages; beyond that only the count matters
_NAME = re.compile(r"[\w./:-]+")
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])?\s*['\"]?([\w./:-]+)['\"]?(?:\s*[(:,].*|\s+[\w.]+)?,?\s*")


@dataclass
class Facts:
    """Sums over the whole log, so over all graphs that it is about; bytes and microseconds."""

    encodings: int | None = None  # overrides and encodings that were read; None where the log does not say
    unmatched: list[str] = field(default_factory=list)  # tensors with an override that the graph has not
    float_ops: list[str] = field(default_factory=list)  # that stay in float
    quantization_skipped: bool = False
    vendor_skel: str = ""  # a skel that came from the phone's own folders, where no folder of the app was looked in
    ddr: dict[str, int] = field(default_factory=dict)  # spill_bytes, fill_bytes, write_total_bytes, read_total_bytes
    stages_us: dict[str, int] = field(default_factory=dict)

    _probed: set[bool] = field(default_factory=set)  # whether the folders that were looked in are the phone's own

    def learn(self, fact: str, groups: dict[str, str | None]) -> bool:
        """Take what a pattern found; returns whether a list of names goes on in the next lines."""
        match fact:
            case "encodings":
                self.encodings = (self.encodings or 0) + int(groups.get("count") or 0)
            case "skipped":
                self.quantization_skipped = True
            case "ddr" if groups.get("key"):
                key = str(groups["key"])
                self.ddr[key] = self.ddr.get(key, 0) + int(groups["value_bytes"] or 0)
            case "stage":
                self._add_stage(str(groups["stage"]), int(groups["us"] or 0))
            case "probe":
                self._probed.add(_is_vendors(str(groups["path"])))
            case "skel" if self._probed == {True} and _is_vendors(str(groups["path"])):
                self.vendor_skel = str(groups["path"])
            case "unmatched":
                return self._list(self.unmatched, groups)
            case "fallback" if "list" in groups:
                return self._list(self.float_ops, groups)
        return False

    def item(self, fact: str, line: str) -> bool:
        """Take the next line of a list of names; false where it is none."""
        found = _ITEM.fullmatch(line)
        names = [found[1]] if found else _names(line) if "," in line else []
        _extend(self.float_ops if fact == "fallback" else self.unmatched, names)
        return bool(names)

    def _list(self, into: list[str], groups: dict[str, str | None]) -> bool:
        names = [str(groups["node"])] if groups.get("node") else _names(groups.get("list") or "")
        _extend(into, names)
        return not names

    def _add_stage(self, stage: str, microseconds: int) -> None:
        if stage in self.stages_us or len(self.stages_us) < _NAMES:
            self.stages_us[stage] = self.stages_us.get(stage, 0) + microseconds

    def to_json(self) -> dict[str, Any]:
        told = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        return {key: value for key, value in told.items() if value not in (None, [], {}, False, "")}


def _is_vendors(path: str) -> bool:
    return path.startswith(("/vendor/", "/odm/", "/system", "/product/", "/dsp/", "/usr/"))


def _names(text: str) -> list[str]:
    return _NAME.findall(text.strip(" []{}().:"))


def _extend(into: list[str], names: list[str]) -> None:
    into.extend(name for name in dict.fromkeys(names[:_NAMES]) if len(into) < _NAMES and name not in into)
