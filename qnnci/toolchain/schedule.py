"""Run jobs with dependencies on a few threads: the longest known first, so that no core idles at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Resource = TypeVar("Resource")


@dataclass(slots=True)
class Job(Generic[Resource]):
    """`run` gets one thread's resource. `cost` is asked when a place is free: the highest goes first."""

    id: str
    run: Callable[[Resource], None]
    after: tuple[str, ...] = ()
    cost: Callable[[], float] = field(default=lambda: 0.0)


class Schedule(Generic[Resource]):
    """All jobs of one run. A job whose run raises stops the schedule; that error is raised to the caller."""

    def __init__(self, resources: list[Resource], interrupt: Callable[[Resource], None]) -> None:
        self._resources = resources
        self._interrupt = interrupt
        self._waiting: dict[str, Job[Resource]] = {}
        self._running = 0
        self._done: set[str] = set()
        self._error: BaseException | None = None
        self._change = threading.Condition()

    def add(self, *jobs: Job[Resource]) -> None:
        """Add jobs, also while running (a job may add those that follow from it)."""
        with self._change:
            self._waiting.update({job.id: job for job in jobs})
            self._change.notify_all()

    def run(self) -> None:
        """Run everything; returns when all jobs are done, or raises the first error after all threads ended."""
        threads = [threading.Thread(target=self._work, args=(resource,), daemon=True) for resource in self._resources]
        for thread in threads:
            thread.start()
        try:
            with self._change:
                while self._error is None and (self._running or self._ready()):
                    self._change.wait()
        except KeyboardInterrupt as error:  # it arrives here, in the main thread
            self._fail(error)
        if self._error is not None:
            for resource in self._resources:
                self._interrupt(resource)
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        if self._waiting:
            raise RuntimeError(f"these jobs wait for jobs that nobody added: {', '.join(self._waiting)}")

    def _ready(self) -> list[Job[Resource]]:
        return [job for job in self._waiting.values() if self._done.issuperset(job.after)]

    def _work(self, resource: Resource) -> None:
        while job := self._next():
            try:
                job.run(resource)
            except BaseException as error:  # noqa: BLE001 - carried to the caller's thread, which raises it
                self._fail(error)
            with self._change:
                self._running -= 1
                self._done.add(job.id)
                self._change.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._change:
            self._error = self._error or error
            self._change.notify_all()

    def _next(self) -> Job[Resource] | None:
        with self._change:
            while self._error is None:
                if ready := self._ready():
                    job = max(ready, key=lambda each: each.cost())
                    del self._waiting[job.id]
                    self._running += 1
                    return job
                if not self._running:  # nothing runs that could make a waiting job ready
                    self._change.notify_all()
                    return None
                self._change.wait()
            return None
