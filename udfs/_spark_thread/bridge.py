"""The bridge from Spark's synchronous thread into Trio; the only one.

Spark's thread reads and yields Arrow batches, while the operator runs in the loop's thread (`_trio_thread`). Rows enter
the loop one batch at a time and leave it in chunks, because a thread switch per row would cost more than the row
itself. Spark's thread reads the next batch while calls are running, so there is no barrier at the end of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from queue import Empty
from time import monotonic, perf_counter

from .._exceptions import starting_in_user_code
from .._pyspark_worker import WorkerConnection
from .._sent.row import Row
from .._sent.settings import Settings
from .._trio_thread.task_clock import TaskClock
from .._trio_thread.task_operator import Record, TaskOperator
from .task_log import TaskLog, stage_of_task, with_observer_of_task, write_file_of_task

__all__ = ["Budget", "TaskCalls", "enrich"]

# No other Arrow batch is read while the batches of the unfinished rows have at least this many bytes.
BUFFER_BYTES = 128 * 1024 * 1024

# Time for cancelled calls to unwind. Spark kills the process after two seconds anyway.
STOP_SECONDS = 2.0


class Budget:
    """How long a task waits for its results, starting now.

    Args:
        seconds: At least 0. `math.inf`, the default, means until all rows are finished.
        max_unfinished: The upper limit of rows that may remain unfinished after that time. While more are unfinished,
            the task continues to wait.
    """

    def __init__(self, seconds: float = math.inf, max_unfinished: int = 0) -> None:
        self._end = monotonic() + seconds
        self.max_unfinished = max_unfinished

    def remaining(self) -> float | None:
        """The remaining seconds, at least 0.0, or None if there is no limit."""
        return None if self._end == math.inf else max(0.0, self._end - monotonic())


def enrich(
    batches: Iterator[list[Row]],
    settings: Settings,
    budget: Budget | None = None,
) -> Generator[list[Row]]:
    """The same rows in chunks, each with its result or its failure.

    Batch: the next batch is read as soon as fewer rows than the buffer are unfinished and their batches have fewer than
    `BUFFER_BYTES`. So at most the buffer and one batch are in memory. Order: that of the settings' mode. Runs where: in
    Spark's thread of a Python worker, with the calls in the worker's loop. Closing this generator cancels the calls and
    waits until they have unwound.

    When a budget is spent and at most `budget.max_unfinished` rows are unfinished, their calls are cancelled. Rows that
    are finished by then come out, the others do not. All batches are read in any case.

    Args:
        batches: The rows of each Arrow batch.
        settings: The settings of the UDF.
        budget: None: wait for all rows.

    Raises:
        Exception: The function's exception, with `on_error="raise"`.
        HangUpError: Spark has closed the connection.
    """
    task: TaskCalls | None = None
    clock = TaskClock(stage_of_task())
    try:
        for rows in batches:
            if rows:
                task = task or TaskCalls(settings, budget, clock=clock)
                task.send(rows)
            if task is not None:
                yield from task.chunks_until(settings.options.bound)
        if task is not None:
            task.end()
            yield from task.chunks_until(1)
            yield from task.last_chunks()
    finally:
        if task is not None:
            task.stop()


class TaskCalls:
    """Spark's end of the operator of one Spark task. `enrich` shows how to use it.

    Args:
        settings: The settings of the UDF.
        budget: When to stop waiting for rows; None: wait for all.
        record: Called with finished rows, in another thread, soon after their calls have ended, and before they come
            out. It also gets those that do not come out, because the calls were stopped or another row failed. What it
            raises fails the task.
        clock: The clock of the task; None: it begins now.
    """

    def __init__(
        self,
        settings: Settings,
        budget: Budget | None = None,
        record: Record | None = None,
        clock: TaskClock | None = None,
    ) -> None:
        self._settings = with_observer_of_task(settings)
        self._budget = budget or Budget()
        self._unfinished = 0  # rows sent to the loop and not yet received from it
        self._nbytes = 0
        self._is_stopped = False
        self._log = TaskLog(settings.function.name)
        self._connection = WorkerConnection.of_task()
        self._writing = Stopwatch()
        self._operator = TaskOperator(
            self._settings,
            self._connection.socket,
            record,
            lambda: self._writing.seconds,
            clock or TaskClock(stage_of_task()),
        )

    def send(self, rows: list[Row]) -> None:
        """Send the rows of a batch to the loop."""
        self._unfinished += len(rows)
        self._nbytes += sum(row.nbytes for row in rows)
        self._operator.send(rows)

    def end(self) -> None:
        """No batch follows."""
        self._operator.end()

    def stop(self) -> None:
        """Cancel all calls, and wait until they have unwound."""
        if not self._is_stopped:
            self._is_stopped = True
            operator = self._operator
            operator.cancel()
            has_ended = operator.has_ended.wait(STOP_SECONDS)
            self._log.write(operator.statistics, operator.calls)
            if has_ended:  # otherwise the recorder may still be in use
                write_file_of_task(self._settings, operator.times)

    def chunks_until(self, bound: int) -> Iterator[list[Row]]:
        """The chunks that are ready, and more until fewer than `bound` rows are unfinished.

        After the budget is spent, `max_unfinished` rows may remain unfinished.
        """
        while True:
            try:
                item = self._next(bound)
            except Empty:
                return
            if isinstance(item, BaseException):
                raise starting_in_user_code(_fatal(item))
            if not isinstance(item, list):
                return
            self._unfinished -= len(item)
            self._nbytes -= sum(row.nbytes for row in item)
            self._writing.start()
            yield item
            self._connection.flush()  # Spark's thread has resumed this generator, so it has written the chunk
            self._writing.stop()

    def last_chunks(self) -> Iterator[list[Row]]:
        """Cancel the unfinished calls; the chunks of rows that were finished before that."""
        if self._unfinished:
            self.stop()
            yield from self.chunks_until(self._unfinished + 1)

    def _next(self, bound: int) -> list[Row] | BaseException | object:
        """The next item from the loop. Raises `Empty` if none is ready and there is no reason to wait."""
        remaining = self._budget.remaining()
        if (self._unfinished >= bound or self._nbytes >= BUFFER_BYTES) and remaining != 0.0:
            try:
                return self._operator.outbox.get(timeout=remaining)
            except Empty:
                pass
        return self._operator.outbox.get(block=self._unfinished >= max(bound, self._budget.max_unfinished + 1))


def _fatal(error: BaseException) -> BaseException:
    """The first exception in a group that must end the process, such as `SystemExit`; else the error itself."""
    while isinstance(error, BaseExceptionGroup) and not isinstance(error, Exception):
        _, fatal = error.split(Exception)
        assert fatal is not None
        error = fatal.exceptions[0]
    return error


class Stopwatch:
    """The sum of the times from `start` to `stop`. One thread may start and stop it, and any may read it."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)  # one attribute, so that a read is consistent

    def start(self) -> None:
        """The thread begins."""
        self._state = (self._state[0], perf_counter())

    def stop(self) -> None:
        """The thread has finished."""
        self._state = (self.seconds, None)

    @property
    def seconds(self) -> float:
        """The time so far, in seconds."""
        total, since = self._state
        return total if since is None else total + perf_counter() - since
