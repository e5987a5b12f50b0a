"""Task clock: where the time of one Spark task goes, beside its calls, and how long its place was free before it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_native_id
from typing import TextIO

import trio

from trio_asyncio_io.integration import TaskTimes, cpu_wait

MOST_JOBS = 16  # whose places are kept

Places = dict[str, list[float]]  # by job: since when each free place is free


class TaskClock:
    """The times of one task. Spark's thread creates it when the task begins; the loop's thread calls most methods.

    Durations come from a monotonic clock. The wall clock only places the task among tasks of other machines.

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


class TaskPlaces:
    """The free places of each job, in a file that the processes of an executor share.

    An executor has as many places as tasks that run at once. It has more Python processes as soon as one of its stages
    had two Python operators, and gives them tasks in turn, so the time between two tasks of one process says nothing.
    Instants are those of a monotonic clock that all processes of the machine have.

    Args:
        path: The file. If it cannot be used, each task has a new place. None, as outside an executor: the same.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def of_executor(cls) -> TaskPlaces:
        """The places of this executor. Spark deletes the folder of their file when the executor ends."""
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        return cls(Path(folder) / "udfs-task-places.json" if folder else None)

    def take(self, job: str, began: float) -> float | None:
        """A task has begun. Returns for how long its place was free; None: there was none, so this one is new."""
        with self._opened() as places:
            free = places.setdefault(job, [])
            latest = max((since for since in free if since <= began), default=None)
            if latest is None:
                return None
            free.remove(latest)
            return began - latest

    def leave(self, job: str, ended: float) -> None:
        """A task has ended."""
        with self._opened() as places:
            places.setdefault(job, []).append(ended)

    @contextmanager
    def _opened(self) -> Iterator[Places]:
        """The places, which may be changed."""
        try:
            file = None if self._path is None else self._path.open("a+")
        except OSError:
            file = None
        if file is None:
            yield {}
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed; another thread of this process waits, too
            places = _read_places(file)
            yield places
            for job in list(places)[:-MOST_JOBS]:
                del places[job]
            file.seek(0)
            file.truncate()
            json.dump(places, file)


def _read_places(file: TextIO) -> Places:
    """The places in the file. None if a process was killed while it wrote them."""
    file.seek(0)
    try:
        places: Places = json.load(file)
    except ValueError:
        return {}
    return places
