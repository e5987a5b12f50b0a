"""Task clock: where the time of one Spark task goes, beside its calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import get_native_id

import trio

from trio_asyncio_io.integration import TaskTimes, cpu_wait

from .task_places import TaskPlaces


class TaskClock:
    """The times of one task. Spark's thread creates it when the task begins; the loop's thread calls most methods.

    Durations come from a monotonic clock. The wall clock only places the task among those of other machines.

    Args:
        job: Equal for the tasks of one job in this executor, such as the number of their stage.

    Attributes:
        waited: The seconds for which the task has waited for its first rows.
    """

    def __init__(self, job: int) -> None:
        self._job = str(job)
        self._began = time.time()
        self._since = time.monotonic()
        self._places = TaskPlaces.of_executor()
        self._gap: float | None = None  # None: no earlier task had its place
        self._start: float | None = None
        self._drain: Drain | None = None
        self._spark_thread = _Thread()
        self._loop_thread: _Thread | None = None
        self.waited = 0.0

    def receive_rows(self) -> None:
        """The first rows have come from Spark, for which the task has waited. Spark's thread calls this."""
        self.waited = self._seconds()
        self._gap = self._places.take(self._job, self._since)

    def accept_rows(self) -> None:
        """The operator can accept the first row."""
        self._start = self._seconds() - self.waited
        self._loop_thread = _Thread()

    def _seconds(self) -> float:
        return time.monotonic() - self._since

    def drain(self, is_tail: Callable[[], bool]) -> None:
        """The input has ended.

        Args:
            is_tail: Returns whether fewer rows are left than half of the slots.
        """
        self._drain = Drain(is_tail)

    def stop(self) -> None:
        """The operator has ended."""
        if self._drain is not None:
            self._drain.stop()

    def leave(self) -> None:
        """The task has ended, so another one may have its place. Spark's thread calls this."""
        self._places.leave(self._job, time.monotonic())

    def times(self) -> TaskTimes:
        """The times so far, of a task that ends now."""
        seconds = self._seconds()
        return TaskTimes(
            tasks=1,
            at_once=int(self._gap is None),
            began=self._began,
            ended=self._began + seconds,
            arrived=self._began if self._gap is None else 0.0,
            seconds=seconds,
            start=seconds - self.waited if self._start is None else self._start,
            tail=0.0 if self._drain is None else self._drain.seconds(),
            gap=self._gap or 0.0,
            processor=0.0 if self._loop_thread is None else self._loop_thread.waited(),
            spark_processor=self._spark_thread.waited(),
        )


class Drain(trio.abc.Instrument):
    """Finds the instant from which fewer rows are left than half of the slots. It looks once per pass of the scheduler.

    Args:
        is_tail: As in `TaskClock.drain`.
    """

    def __init__(self, is_tail: Callable[[], bool]) -> None:
        self._is_tail = is_tail
        self._since: float | None = None
        self._is_on = True
        trio.lowlevel.add_instrument(self)

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002 - as Trio calls it
        """A pass has ended."""
        if self._is_tail():
            self._since = trio.current_time()
            self.stop()

    def stop(self) -> None:
        """Stop looking."""
        if self._is_on:
            self._is_on = False
            trio.lowlevel.remove_instrument(self)

    def seconds(self) -> float:
        """The time since that instant."""
        return 0.0 if self._since is None else trio.current_time() - self._since


class _Thread:
    """How long the present thread waits for a processor from now on."""

    def __init__(self) -> None:
        self._id = get_native_id()
        self._before = cpu_wait(self._id)

    def waited(self) -> float:
        """Seconds so far; 0.0 where the system does not count them. Any thread may call this."""
        return max(0.0, cpu_wait(self._id) - self._before)
