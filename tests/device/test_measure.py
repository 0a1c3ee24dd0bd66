"""Figures out of what devices say of processes, batteries and heat; and a task that goes on without its connection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fake_device, runtime

from qnnci.device import measure, ticks, vitals
from qnnci.device.about import sections
from qnnci.device.link import Link
from qnnci.device.measure import Task
from qnnci.device.room import Room
from qnnci.device.transport import Adb
from qnnci.errors import MachineError, ToolCrashed
from qnnci.manifest import DeviceRun, Vitals, load, save

TMP = "root/data/local/tmp"


def stat(number: int, name: str, user: int, system: int) -> str:
    return f"{number} ({name}) S 1 1 1 0 -1 4194560 9 0 0 0 {user} {system} 0 0 20 0 9 0 100 1000 10"


LOOKS = "\n".join(
    ["@ 100.50", stat(7, "qnn-net-run", 10, 5), "-", stat(7, "qnn-net-run", 8, 2), stat(8, "my) (pool", 2, 3),
     "@ 102.50", stat(7, "qnn-net-run", 60, 25), "-", stat(7, "qnn-net-run", 30, 10), stat(8, "my) (pool", 20, 5),
     stat(9, "my) (pool", 15, 5),
     "@ 104.50", stat(7, "qnn-net-run", 210, 25), stat(17, "child", 20, 0), "-", stat(7, "qnn-net-run", 30, 10),
     stat(9, "my) (pool", 195, 5)],
)  # fmt: skip


def test_shares_of_a_cpu():
    used = ticks.usage(ticks.samples(LOOKS), 100)
    # 220 ticks of the process and 20 of its child, in 4 seconds of 100 ticks each.
    assert used.cpu_percent == 60.0
    assert used.threads == (("my) (pool", 55.0), ("qnn-net-run", 7.5))
    assert (used.looks, used.gap) == (3, 2.0)
    assert ticks.usage(ticks.samples(LOOKS), 1000).cpu_percent == 6.0


def test_one_look_tells_no_share():
    assert ticks.usage(ticks.samples(LOOKS[: LOOKS.index("@ 102.5")])).cpu_percent is None
    assert ticks.usage([]).looks == 0


@settings(max_examples=200)
@given(st.text(alphabet="@ -()S0123456789.\n\0é", max_size=300))
def test_no_text_breaks_the_reader_of_proc(text):
    used = ticks.usage(ticks.samples(f"{LOOKS}\n{text}"), 100)
    assert used.cpu_percent is None or used.cpu_percent >= 0
    ticks.stat(text)


def test_a_phones_battery_and_heat():
    told = vitals.vitals({"battery": fake_device.BATTERY, "thermal": fake_device.THERMAL})
    assert told == Vitals(
        battery_percent=80, battery_uah=3_000_000, battery_mv=4100, battery_c=30.1, charging=False,
        thermal_status=0, hottest="cpu-0-0", hottest_c=41.5,
    )  # fmt: skip
    assert vitals.vitals({"battery": fake_device.BATTERY.replace("USB powered: false", "USB powered: true")}).charging


def test_a_boards_battery_and_heat():
    supply = "capacity=55\ncharge_now=2500000\nvoltage_now=3987000\ntemp=285\nstatus=Discharging\n"
    told = vitals.vitals({"supply": supply, "zones": "cpu0-thermal 48500\ngpu 51250\nbroken -274000\n"})
    assert told == Vitals(
        battery_percent=55, battery_uah=2_500_000, battery_mv=3987, battery_c=28.5, charging=False,
        hottest="gpu", hottest_c=51.2,
    )  # fmt: skip
    assert vitals.vitals({}) == Vitals()


@settings(max_examples=200)
@given(
    st.text(alphabet="Temperature{mValue=-.0123456789, mType=mName=x}\nlevel: scale: 0%", max_size=200),
    st.sampled_from(["battery", "thermal", "supply", "zones"]),
)
def test_no_text_breaks_the_readers_of_vitals(text, section):
    start = {"battery": "Current Battery Service state:\n", "thermal": "Thermal Status: 9\n"}.get(section, "")
    vitals.vitals({section: start + text})
    sections(text)


def run(**more: object) -> DeviceRun:
    fields = {"processor": "npu", "seconds": 1.0, "cpu_percent": 5.0, "threads": {}, "asleep_seconds": 0.0}
    return DeviceRun.model_validate({**fields, "before": Vitals(), "after": Vitals(), **more})


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ({}, []),
        ({"before": Vitals(charging=True)}, ["device-charging"]),
        ({"asleep_seconds": 90.0}, ["device-slept"]),
        ({"after": Vitals(thermal_status=2)}, ["device-hot"]),
        ({"before": Vitals(thermal_status=1), "cpu_percent": None}, ["device-hot", "device-short"]),
    ],
)
def test_what_makes_figures_doubtful(more, rules):
    assert [each.rule for each in measure.doubts([run(), run(**more)])] == rules


def test_the_middle_and_the_ends():
    found = measure.spread([3.0, 1.0, 2.0])
    assert found is not None
    assert (found.median, found.low, found.high) == (2.0, 1.0, 3.0)
    assert measure.spread([1.0, None]) is None
    assert measure.spread([]) is None


# on the fake phone


@pytest.fixture
def place(phone, monkeypatch) -> Room:
    for name, value in fake_device.environment(phone).items():
        monkeypatch.setenv(name, value)
    return Room(Link(Adb()), "/data/local/tmp/qnnci-0")


def test_a_task_that_goes_on_while_nobody_can_reach_the_device(place, phone):
    """The script looks at it on the device; the connection breaks at the third question and at one more."""
    fake_device.setting(phone, break_shell=2)
    took = measure.once(
        place, Task("cpu", "sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; echo all'"), limit=60, every=0.2
    )
    assert (took.code, took.log) == (0, "all\n")
    assert took.run.seconds > 0
    assert took.run.cpu_percent is not None
    assert set(took.run.threads) <= {"sh", "sleep"}
    assert took.run.before.battery_percent == 80


def test_a_task_that_fails_and_one_that_does_not_end(place, phone):
    took = measure.once(place, Task("cpu", "sh -c 'echo why; exit 3'"), limit=60, every=0.2)
    assert (took.code, took.log) == (3, "why\n")
    with pytest.raises(ToolCrashed, match="did not end within 0 s"):
        measure.once(place, Task("cpu", "sleep 1000"), limit=0.2, every=0.2)
    assert fake_device.ended(int((phone / TMP / "qnnci-0/pid").read_text()))


def test_a_device_that_stays_away_is_given_up(place, phone, monkeypatch):
    monkeypatch.setattr(measure, "_LOST", 0.0)
    real = Room.start

    def start(self: Room, command: str, every: float) -> None:
        real(self, command, every)
        fake_device.setting(phone, state="offline")

    monkeypatch.setattr(Room, "start", start)
    with pytest.raises(MachineError, match="is offline"):
        measure.once(place, Task("cpu", "sleep 2"), limit=60, every=0.2)


def test_a_binary_against_its_model_library_on_the_cpu(on, built, phone, qnnci):
    for path in (built / "libcnn.so", built / "qairt/2.51.0.260929/lib/aarch64-android/libQnnCpu.so"):
        path.write_bytes(runtime.host())
    ended = on("measure", "--inferences", 2, "--repeat", 1, "--rest", 0, "--cpu-model-lib", "libcnn.so")
    assert ended.code == 0, ended.said
    assert "2 inferences, loading included, on Maker Phone One, SM8550, Android 14" in ended.said
    assert list((phone / TMP).iterdir()) == []
    (entry, _) = sorted(load(built / "build/manifest.json").entries, key=lambda each: each.soc)
    (made,) = entry.measurements
    assert [each.processor for each in made.runs] == ["npu", "cpu"]
    assert made.npu_seconds is not None
    assert (made.sha256, made.cpu_task, made.inferences) == (entry.sha256, "libcnn.so", 2)
    assert "--num_inferences 2 --keep_num_outputs 1" in (phone / "log").read_text()
    ended = qnnci("build", cwd=built)  # nothing is compiled, and what was measured stays
    assert ended.code == 0, ended.said
    (entry, _) = sorted(load(built / "build/manifest.json").entries, key=lambda each: each.soc)
    assert entry.measurements == (made,)
    (built / "build/cnn/SM8550/measurements.json").write_text("{}")  # the manifest still has it
    assert on("measure", "--minutes", 0.05, "--repeat", 1, "--rest", 0).code == 0
    assert "--duration 3 --keep_num_outputs 1" in (phone / "log").read_text()
    (entry, _) = sorted(load(built / "build/manifest.json").entries, key=lambda each: each.soc)
    assert [(each.inferences, each.minutes) for each in entry.measurements] == [(2, None), (None, 0.05)]
    assert "measurement-stale" not in qnnci("manifest", "check", "build", cwd=built).said
    check_and_diff(built, qnnci)


def check_and_diff(built: Path, qnnci) -> None:
    """A measurement of another binary is told; one more is a record."""
    manifest = load(built / "build/manifest.json")
    entries = [
        each.model_copy(
            update={"measurements": tuple(one.model_copy(update={"sha256": "0" * 64}) for one in each.measurements)}
        )
        for each in manifest.entries
    ]
    save(built / "other/manifest.json", manifest.model_copy(update={"entries": tuple(entries)}))
    (built / "build/manifest.json").rename(built / "build/real.json")
    (built / "other/manifest.json").rename(built / "build/manifest.json")
    assert "measurement-stale" in qnnci("manifest", "check", "build", cwd=built).said
    bare = [each.model_copy(update={"measurements": ()}) for each in manifest.entries]
    save(built / "bare.json", manifest.model_copy(update={"entries": tuple(bare)}))
    ended = qnnci("manifest", "diff", "bare.json", "build/real.json", "--json", "--exit-code", cwd=built)
    assert ended.code == 0
    (change,) = json.loads(ended.said)
    assert (change["field"], change["effect"], change["new"][0]["device"]) == (
        "measurements",
        "record",
        "Maker Phone One",
    )


def test_a_task_that_fails_is_told_and_nothing_is_recorded(on, built):
    (built / "task.txt").write_text("echo no such model\nexit 9\n")
    ended = on("measure", "--repeat", 1, "--rest", 0, "--cpu-command", "sh task.txt", "--push", "task.txt")
    assert ended.code == 4, ended.said
    assert "the task on the CPU failed: " in ended.said
    assert all(each.measurements == () for each in load(built / "build/manifest.json").entries)


@pytest.mark.parametrize(
    "wrong",
    [("--inferences", 1, "--minutes", 1), ("--cpu-command", "x", "--cpu-model-lib", "y"), ("--graph", "other"),
     ("--cpu-command", "x", "--push", "not-there")],
)  # fmt: skip
def test_tasks_that_are_none(on, wrong):
    assert on("measure", *wrong).code == 2
