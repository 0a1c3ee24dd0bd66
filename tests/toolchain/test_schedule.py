from __future__ import annotations

import threading

import pytest

from qnnci.toolchain.schedule import Job, Schedule


def run(jobs, places=1):
    order = []
    schedule = Schedule(list(range(places)), lambda _: None)
    schedule.add(
        *(
            Job(name, lambda _, name=name: order.append(name), after, lambda cost=cost: cost)
            for name, after, cost in jobs
        )
    )
    schedule.run()
    return order


def test_the_longest_goes_first():
    assert run([("a", (), 1), ("b", (), 3), ("c", (), 2)]) == ["b", "c", "a"]


def test_a_job_waits_for_those_before_it():
    assert run([("late", ("early",), 9), ("early", (), 1)], places=3) == ["early", "late"]


def test_jobs_run_side_by_side():
    meeting = threading.Barrier(2, timeout=20)  # passes only when both are there at once
    schedule = Schedule([0, 1], lambda _: None)
    schedule.add(*(Job(name, lambda _: meeting.wait() and None) for name in "ab"))
    schedule.run()
    assert not meeting.broken


def test_a_job_may_add_jobs():
    done = []
    schedule = Schedule([0], lambda _: None)
    schedule.add(Job("first", lambda _: (done.append(1), schedule.add(Job("second", lambda _: done.append(2))))))
    schedule.run()
    assert done == [1, 2]


def test_an_error_stops_the_rest_and_interrupts_what_runs():
    interrupted, started = [], threading.Event()
    released = threading.Event()

    def long(_):
        started.set()
        assert released.wait(20)

    def bad(_):
        assert started.wait(20)
        raise ValueError("boom")

    def interrupt(resource):
        interrupted.append(resource)
        released.set()

    schedule = Schedule([0, 1], interrupt)
    schedule.add(Job("long", long), Job("bad", bad), Job("never", lambda _: interrupted.append("never"), ("long",)))
    with pytest.raises(ValueError, match="boom"):
        schedule.run()
    assert sorted(interrupted) == [0, 1]


def test_jobs_that_wait_for_nothing_that_comes_are_a_mistake_not_a_hang():
    with pytest.raises(RuntimeError, match="orphan"):
        run([("orphan", ("nobody",), 1)])
