"""Task clock: where the time of one Spark task goes, beside its calls, and how long its place was free before it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from typing import Self

import trio

from trio_asyncio_io.integration import TaskTimes, cpu_wait

from .._spark_task import SparkTask

MOST_JOBS = 16  # whose places are kept, those with the highest numbers


class TaskClock:
    """The times of one task. Spark's thread creates it when the task begins; the loop's thread calls most methods.

    Durations come from a monotonic clock. The wall clock only places the task among tasks of other machines.

    Args:
        job: A number that the tasks of one job in this executor have, and that grows from job to job: their stage's.

    Attributes:
        waited: The seconds for which the task has waited for its first rows.
    """

    def __init__(self, job: int) -> None:
        self._job = job
        self._began = time.time()
        self._since = time.monotonic()
        self._places = TaskPlaces.of_executor()
        self._gap: float | None = None  # None: no earlier task had its place
        self._start: float | None = None
        self._drain: Drain | None = None
        self._spark_thread = _Thread()
        self._loop_thread: _Thread | None = None
        self.waited = 0.0

    @classmethod
    def of_task(cls) -> Self:
        """The clock of the task that runs in this thread, and begins now."""
        task = SparkTask.current()
        return cls(0 if task is None else task.stage)

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


class TaskPlaces:
    """The free places of each job, as empty files in a folder that the processes of an executor share.

    An executor has as many places as tasks that run at once. It has more Python processes as soon as one of its stages
    had two Python operators, and gives them tasks in turn, so the time between two tasks of one process says nothing.
    A file has the job, and the instant since when a place is free, in its name. The task that removes it has the place,
    so no process waits for another one. Instants are those of a monotonic clock that all processes of the machine have.

    Args:
        folder: The folder. If it cannot be used, each task has a new place. None, as outside an executor: the same.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @classmethod
    def of_executor(cls) -> TaskPlaces:
        """The places of this executor. Spark deletes the folder around theirs when the executor ends."""
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        return cls(Path(folder) / "udfs-task-places" if folder else None)

    def take(self, job: int, began: float) -> float | None:
        """A task has begun. Returns for how long its place was free; None: there was none, so this one is new."""
        since_when = [since for each, since in self._free() if each == job and since <= began]
        for since in sorted(since_when, reverse=True):
            with suppress(OSError):  # another task has taken it
                self._file(job, since).unlink()
                return began - since
        return None

    def leave(self, job: int, ended: float) -> None:
        """A task has ended."""
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            self._file(job, ended).touch()
            free = self._free()
            latest = sorted({each for each, _ in free})[-MOST_JOBS:]
            for each, since in free:
                if each not in latest:
                    self._file(each, since).unlink(missing_ok=True)

    def _free(self) -> list[tuple[int, float]]:
        """The job of each free place, and since when it is free."""
        if self._folder is None:
            return []
        try:
            names = [file.name.split() for file in self._folder.iterdir()]
            return [(int(job), float(since)) for job, since in names]
        except (OSError, ValueError):  # ValueError: a file that is not ours
            return []

    def _file(self, job: int, since: float) -> Path:
        assert self._folder is not None
        return self._folder / f"{job} {since}"
