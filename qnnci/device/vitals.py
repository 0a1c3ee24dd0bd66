"""Battery and heat of a device at one moment. Readers are pure, and None stands for what a device does not say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from qnnci.device.about import sections
from qnnci.device.link import Link
from qnnci.manifest import Vitals

_SCRIPT = """\
echo "== battery"; dumpsys battery 2>/dev/null
echo "== thermal"; dumpsys thermalservice 2>/dev/null
echo "== supply"
for d in /sys/class/power_supply/*; do
  [ "$(cat $d/type 2>/dev/null)" = Battery ] || continue
  for f in capacity charge_counter charge_now voltage_now temp status; do
    [ -r $d/$f ] && echo "$f=$(cat $d/$f)"
  done
done
echo "== zones"
for z in /sys/class/thermal/thermal_zone*; do [ -r $z/temp ] && echo "$(cat $z/type) $(cat $z/temp)"; done
true"""
_NOT_HEAT = {6, 7, 8}  # types of Android's thermal service that are voltage, current and charge of the battery
_COLDEST, _HOTTEST = -40.0, 200.0
# Android's names of its thermal status.
STATUS = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")


def read(link: Link) -> Vitals:
    """Ask a device.

    Raises:
        QnnciError: as `Link.ask`.

    """
    return vitals(sections(link.tell(_SCRIPT)))


def vitals(told: Mapping[str, str]) -> Vitals:
    """Vitals of what a device printed; Android's services count more than files of the kernel."""
    status, hottest = thermal(told.get("thermal", ""))
    hottest = hottest or zones(told.get("zones", ""))
    name, heat = hottest or ("", None)
    said = battery(told.get("battery", "")) or supply(told.get("supply", ""))
    return Vitals.model_validate({**said, "thermal_status": status, "hottest": name, "hottest_c": heat})


def battery(text: str) -> dict[str, object]:
    """What `dumpsys battery` prints; empty where it is something else. Temperature comes in tenths of a degree."""
    if "Current Battery Service state" not in text:
        return {}
    found = {
        name.strip().lower(): value for name, value in re.findall(r"^\s*([A-Za-z ]+): (\S+)\s*$", text, re.MULTILINE)
    }
    level, scale = _number(found.get("level")), _number(found.get("scale")) or 100
    tenths = _number(found.get("temperature"))
    powered = [value for name, value in found.items() if name.endswith(" powered")]
    return {
        "battery_percent": level * 100 / scale if level is not None and scale > 0 else None,
        "battery_uah": _positive(_number(found.get("charge counter"))),
        "battery_mv": _positive(_number(found.get("voltage"))),
        "battery_c": _degrees(tenths / 10) if tenths is not None else None,
        "charging": "true" in powered if powered else None,
    }


def supply(text: str) -> dict[str, object]:
    """What /sys/class/power_supply says of a battery, in µAh, µV and tenths of a degree."""
    found = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    charge = _number(found.get("charge_now")) or _number(found.get("charge_counter"))
    volts, tenths = _number(found.get("voltage_now")), _number(found.get("temp"))
    status = found.get("status", "").strip()
    return {
        "battery_percent": _number(found.get("capacity")),
        "battery_uah": _positive(charge),
        "battery_mv": _positive(volts // 1000) if volts is not None else None,
        "battery_c": _degrees(tenths / 10) if tenths is not None else None,
        "charging": status in {"Charging", "Full"} if status and status != "Unknown" else None,
    }


def thermal(text: str) -> tuple[int | None, tuple[str, float] | None]:
    """Status and hottest sensor of `dumpsys thermalservice`: what the hardware says now, not what was kept of it."""
    match = re.search(r"^\s*Thermal Status: (\d)\s*$", text, re.MULTILINE)
    status = int(match[1]) if match and int(match[1]) < len(STATUS) else None
    now = text.partition("Current temperatures from HAL:")[2] or text
    now = re.split(r"^Current cooling devices|^Temperature static", now, flags=re.MULTILINE)[0]
    rows = re.findall(r"Temperature\{mValue=([-\d.]{1,12}), mType=(-?\d{1,2}), mName=([^,}]{1,60}),", now)
    return status, _hottest([(name, value) for value, kind, name in rows if int(kind) not in _NOT_HEAT])


def zones(text: str) -> tuple[str, float] | None:
    """The hottest of the kernel's thermal zones, which are in thousandths of a degree."""
    rows = re.findall(r"^(\S{1,60}) (-?\d{1,7})$", text, re.MULTILINE | re.ASCII)
    return _hottest([(name, str(int(value) / 1000)) for name, value in rows])


def _hottest(rows: list[tuple[str, str]]) -> tuple[str, float] | None:
    found = []
    for name, text in rows:
        value = _degrees(float(text)) if re.fullmatch(r"-?\d+(?:\.\d+)?", text, re.ASCII) else None
        if value is not None:
            found.append((name, value))
    return max(found, key=lambda each: each[1], default=None)


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\s*-?\d{1,15}\s*", text, re.ASCII) else None


def _positive(value: int | None) -> int | None:
    return value if value and value > 0 else None


def _degrees(value: float) -> float | None:
    return round(value, 1) if _COLDEST < value < _HOTTEST else None
