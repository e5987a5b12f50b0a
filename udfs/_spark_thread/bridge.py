"""The bridge from Spark's synchronous thread into Trio; the only one.

Spark's thread reads and yields Arrow batches, while the operator runs in the loop's thread (`_trio_thread`). Rows enter
the loop one batch at a time and leave it in chunks, because a thread switch per row would cost more than the row
itself. Spark's thread reads the next batch while calls are running, so there is no barrier at the end of a batch.

    Spark's thread                                       the loop's thread

    send ---------------------- _inbox ----------------> _rows, which waits in `Room.wait`
                          batches of rows                  |
                                                         AsyncWaitOperator: the calls
                                                           |
    chunks_until <------------ _outbox ----------------- _send_chunk, after _recorded (with a memo, in a third thread)
      |             chunks of rows, an exception, or HangUpError
      | yield, flush
    written ---------------- Room.leave ---------------> _rows goes on
    close ------------- cancels _scope ----------------> all calls unwind
    _has_ended.wait <-- set after everything else ------ _run

| attributes of `TaskOperator` | who may touch them |
|---|---|
| `_inbox`, `_scope`, `_room.leave` | the loop; Spark's thread by `Runtime.soon` |
| `_outbox`, `_has_ended`, `_clock`, `_writing`, `_room.size` | both threads |
| `_log`, `_unfinished`, `_nbytes`, `_wait_limit` | Spark's thread |
| `_batches`, `_operator`, `_calls`, `_accepted`, `_sent`, `_input_ended`, `_report_due` | the loop |
| `_statistics`, `_made`, `_times` | the loop, and Spark's thread after `_has_ended` |
"""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, closing, suppress
from dataclasses import replace
from functools import partial
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from typing import Any

import trio

from trio_asyncio_io import (
    AsyncWaitOperator,
    Results,
    Snapshot,
    Statistics,
    StreamRecord,
    Totals,
    assign_watermarks,
    lingering,
)
from trio_asyncio_io.integration import TaskTimes

from .._pyspark_worker import HangUpError, WorkerConnection
from .._sent.row import Row
from .._sent.settings import Settings
from .._tracebacks import starting_in_user_code
from .._trio_thread.calls import GroupCalls, RowCalls
from .._trio_thread.gates import gate_of
from .._trio_thread.hang_up import until_hangup
from .._trio_thread.room import CHUNK_ROWS, Room
from .._trio_thread.runtime import IDLE_SECONDS, Runtime
from .._trio_thread.task_clock import TaskClock
from .task_log import TaskLog, with_observer_of_task, write_file_of_task

Record = Callable[[list[Row]], None]

# No other Arrow batch is read while the batches of the unfinished rows have at least this many bytes.
BUFFER_BYTES = 128 * 1024 * 1024

# Time for cancelled calls to unwind. Spark kills the process after two seconds anyway.
STOP_SECONDS = 2.0

# A chunk is sent when it has `Room.chunk` rows or its first row is this old. A chunk waits for at most as many rows as
# have left already, so the first ones leave at once.
LINGER_SECONDS = 0.01

# With metrics, between two reports of the totals while rows come in
REPORT_SECONDS = 0.1


class WaitLimit:
    """How long a task waits for its results, starting now.

    Args:
        seconds: At least 0. `math.inf`, the default, means until all rows are finished.
        max_unfinished: The upper limit of rows that may remain unfinished after that time. While more are unfinished,
            the task continues to wait.
    """

    def __init__(self, seconds: float = inf, max_unfinished: int = 0) -> None:
        self._end = monotonic() + seconds
        self.max_unfinished = max_unfinished

    def remaining(self) -> float | None:
        """The remaining seconds, at least 0.0, or None if there is no limit."""
        return None if self._end == inf else max(0.0, self._end - monotonic())


def enrich(
    batches: Iterator[list[Row]],
    settings: Settings,
    wait_limit: WaitLimit | None = None,
) -> Generator[list[Row]]:
    """The same rows in chunks, each with its result or its failure.

    Batch: the next batch is read as soon as fewer rows than the buffer are unfinished and their batches have fewer than
    `BUFFER_BYTES`. So at most the buffer and one batch are in memory. Order: as the settings' mode says. Runs where: in
    Spark's thread of a Python worker, with the calls in the worker's loop. Closing this generator cancels the calls and
    waits until they have unwound.

    When the time of a limit is over and at most `max_unfinished` rows are unfinished, their calls are cancelled. Rows
    that are finished by then come out, the others do not. All batches are read in any case.

    Args:
        batches: The rows of each Arrow batch.
        settings: The settings of the UDF.
        wait_limit: None: wait for all rows.

    Raises:
        Exception: The function's exception, with `on_error="raise"`.
        HangUpError: Spark has closed the connection.
    """
    with closing(TaskOperator(settings, wait_limit)) as operator:
        for rows in batches:
            operator.send(rows)
            yield from operator.chunks_until(settings.options.bound)
        yield from operator.last_chunks()


class TaskOperator:
    """The operator of one Spark task: the half that Spark's thread uses, and the half that runs in the loop.

    `enrich` shows how to use it. It starts with the first row. From then on, the halves share two queues; see the
    picture in this module.

    Args:
        settings: The settings of the UDF.
        wait_limit: When to stop waiting for rows; None: wait for all.
        record: Called with finished rows, in another thread, soon after their calls have ended, and before they come
            out. It also gets those that do not come out, because the calls were stopped or another row failed. Its
            exceptions fail the task.
        clock: The clock of the task; None: the task begins now.
    """

    def __init__(
        self,
        settings: Settings,
        wait_limit: WaitLimit | None = None,
        record: Record | None = None,
        clock: TaskClock | None = None,
    ) -> None:
        self._settings = settings
        self._wait_limit = wait_limit or WaitLimit()
        self._record = record
        self._clock = clock or TaskClock.of_task()
        self._log: TaskLog | None = None  # from the first row until the operator is closed
        self._unfinished = 0  # rows sent to the loop and not yet received from it
        self._nbytes = 0
        self._writing = Stopwatch()
        self._inbox, self._batches = trio.open_memory_channel[list[Row]](inf)
        self._outbox: SimpleQueue[list[Row] | BaseException] = SimpleQueue()
        self._scope = trio.CancelScope()
        self._recording = trio.CapacityLimiter(1)  # not Trio's threads, which the user's function may fill
        self._has_ended = threading.Event()
        self._room = Room(settings)
        self._accepted = self._sent = 0  # rows that the operator has got, and those that it has returned
        self._input_ended = False
        self._report_due = -inf
        self._statistics = Statistics()
        self._made = 0
        self._times = TaskTimes()

    # Spark's thread

    def send(self, rows: list[Row]) -> None:
        """Send the rows of a batch to the loop."""
        if not rows:
            return
        if self._log is None:
            self._start()
        self._unfinished += len(rows)
        self._nbytes += sum(row.nbytes for row in rows)
        self._runtime.soon(lambda: self._inbox.send_nowait(rows))

    def _start(self) -> None:
        self._clock.receive_rows()
        self._runtime = Runtime.current()  # before anything that `close` ends
        self._log = TaskLog(self._settings.function.name)
        self._settings = with_observer_of_task(self._settings)
        self._connection = WorkerConnection.of_task()
        self._runtime.start(self._run, self._on_death)

    def chunks_until(self, bound: int) -> Iterator[list[Row]]:
        """The chunks that are ready, and more until fewer than `bound` rows are unfinished and all of these have room.

        After the time of the limit, `max_unfinished` rows may remain unfinished.

        Raises:
            Exception: As in `enrich`.
        """
        while True:
            try:
                chunk = self._next(bound)
            except Empty:
                return
            if isinstance(chunk, BaseException):
                raise starting_in_user_code(_fatal(chunk))
            self._unfinished -= len(chunk)
            self._nbytes -= sum(row.nbytes for row in chunk)
            left = partial(self._room.leave, len(chunk))
            self._writing.start()
            yield chunk
            del chunk  # while this thread waits, it holds no results
            self._connection.flush()  # Spark's thread has resumed this generator, so it has written the chunk
            self._writing.stop()
            self._runtime.soon(left)

    def last_chunks(self) -> Iterator[list[Row]]:
        """All other chunks: no batch follows. Cancels the calls that are unfinished when the limit is reached."""
        if self._log is not None:
            self._runtime.soon(self._inbox.close)
        yield from self.chunks_until(1)
        if self._unfinished:
            self.close()
            yield from self.chunks_until(self._unfinished + 1)

    def close(self) -> None:
        """Cancel all calls, and wait until they have unwound."""
        log, self._log = self._log, None
        if log is not None:
            self._runtime.soon(self._scope.cancel)
            has_ended = self._has_ended.wait(STOP_SECONDS)
            self._clock.leave()
            log.write(self._statistics, self._made)
            if has_ended:  # otherwise the recorder may still be in use
                write_file_of_task(self._settings, self._times)

    def _next(self, bound: int) -> list[Row] | BaseException:
        """The next item from the loop. Raises `Empty` if none is ready and there is no reason to wait."""
        remaining = self._wait_limit.remaining()
        unfinished = self._unfinished
        has_enough = unfinished >= bound or self._nbytes >= BUFFER_BYTES or self._room.is_exceeded_by(unfinished)
        if has_enough and remaining != 0.0:
            try:
                return self._outbox.get(timeout=remaining)
            except Empty:
                pass
        return self._outbox.get(block=self._unfinished >= max(bound, self._wait_limit.max_unfinished + 1))

    # The loop

    async def _run(self) -> None:
        """Run the operator from the first row to the last, and watch Spark's connection."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                if self._connection.socket is not None:
                    nursery.start_soon(self._watch, self._connection.socket)
                try:
                    await self._operate()
                    self._check_is_complete()
                except BaseException as error:
                    if _is_cancellation(error):
                        raise
                    self._outbox.put(error)  # it is raised in Spark's thread
                nursery.cancel_scope.cancel()
        self._has_ended.set()

    def _on_death(self, error: BaseException) -> None:
        self._outbox.put(error)
        self._has_ended.set()

    async def _watch(self, connection: socket.socket) -> None:
        await until_hangup(connection)
        self._outbox.put(HangUpError("Spark has closed the connection to this worker"))
        self._scope.cancel()

    async def _operate(self) -> None:
        settings = self._settings
        async with AsyncExitStack() as stack:
            limits = [await stack.enter_async_context(gate_of(limit)) for limit in settings.limits]
            function = await stack.enter_async_context(self._runtime.opened(settings.function, settings.open_timeout))
            on_timeout = None
            if settings.on_timeout is not None:
                opened = self._runtime.opened(settings.on_timeout, settings.open_timeout)
                on_timeout = await stack.enter_async_context(opened)
            make = RowCalls if settings.options.group is None else GroupCalls
            calls = self._calls = make(function, on_timeout, settings, self._room)
            source: Any = await stack.enter_async_context(aclosing(self._rows()))
            if settings.delay is not None:
                marked: Any = assign_watermarks(
                    source, timestamp=lambda row: row.event_time, max_out_of_orderness=settings.delay
                )
                source = await stack.enter_async_context(aclosing(marked))
            operator = self._operator = AsyncWaitOperator[Row, Row](calls, source=source, **calls.options(limits))
            try:
                async with operator:
                    self._clock.accept_rows()
                    # Not before: a context variable of the operator's block would cost each row time
                    stack.enter_context(lingering(IDLE_SECONDS))
                    with suppress(trio.EndOfChannel):
                        while True:
                            await self._send_chunk(operator.output)
            except trio.Cancelled:
                if rows := await self._recorded(_done_rows(operator.snapshot(), settings.options.key)):
                    self._outbox.put(rows)
                raise
            except BaseException:
                await self._recorded(_done_rows(operator.snapshot()))
                raise
            finally:
                self._statistics = operator.statistics()
                self._made = calls.made
                self._times = self._clock.times()
                self._clock.stop()

    def _check_is_complete(self) -> None:
        """Check that the operator has ended because all rows are done. It may be that user code has cancelled it."""
        if not self._input_ended or self._sent < self._accepted:
            raise RuntimeError(
                f"{self._settings.function.name} has cancelled its operator: cancel only scopes that it has opened"
            )

    async def _rows(self) -> AsyncGenerator[Row, None]:
        room = self._room
        async for rows in self._batches:
            self._accepted += len(rows)
            for place, row in enumerate(rows):
                rows[place] = None  # type: ignore[call-overload]  # the operator holds it now, with its result
                if room.taken >= room.granted:
                    await room.wait()
                room.taken += 1
                yield row
                del row
        self._input_ended = True
        self._clock.drain(self._is_tail)

    def _is_tail(self) -> bool:
        """Whether fewer rows are without a result than half of the slots, as far as a gate has let calls use them.

        The operator's totals take longer than a row, and this runs once per pass of the loop. They are not read while
        enough rows are without a call.
        """
        if 2 * (self._accepted - self._calls.begun) >= self._settings.options.capacity:
            return False
        totals = self._operator.totals()
        return 2 * (self._accepted - totals.done) < max(self._room.calls, totals.peak_running)

    async def _send_chunk(self, results: Results[Any]) -> None:
        """Send the rows of the results that are ready, or wait a little for more. When cancelled, send those so far."""
        chunk = await self._receive(results, CHUNK_ROWS)
        try:
            with trio.move_on_after(LINGER_SECONDS):
                while len(chunk) < min(self._sent, self._room.chunk):
                    chunk += await self._receive(results, CHUNK_ROWS - len(chunk))
        finally:
            if rows := _rows_in(chunk):
                self._report_totals(rows)
                self._outbox.put(rows)

    async def _receive(self, results: Results[Any], limit: int) -> list[Any]:
        """Wait for a result, and return it with those that are ready by then, after they have been recorded.

        Group commit: the results that arrive while these are recorded are recorded together by the next call.
        """
        received = [await results.receive()]
        with suppress(trio.WouldBlock, trio.EndOfChannel):
            while len(received) < limit:
                received.append(results.receive_nowait())
        return await self._recorded(received)

    async def _recorded(self, rows: list[Any]) -> list[Any]:
        """The rows, recorded to the end, even in a cancelled scope."""
        if rows and self._record is not None:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._record, rows, limiter=self._recording)
        return rows

    def _report_totals(self, rows: Sequence[Row]) -> None:
        """With metrics, add the totals to the first row of a chunk, if they are due, or if the chunk may be the last.

        It may be that before the end of the input is known, because Spark's thread reads on only after some chunks.
        """
        self._sent += len(rows)
        may_be_last = self._input_ended or self._sent == self._accepted
        if self._settings.has_metrics and (may_be_last or trio.current_time() >= self._report_due):
            self._report_due = trio.current_time() + REPORT_SECONDS
            rows[0].totals = self._totals(), self._clock.times()

    def _totals(self) -> Totals:
        """The operator's totals, with what Spark's thread has waited for: its first rows, and the next operator."""
        totals, waited, written = self._operator.totals(), self._clock.waited, self._writing.seconds
        return replace(
            totals,
            seconds=totals.seconds + waited,
            supply=totals.supply + waited,
            source=totals.source + waited,
            withheld=min(written, totals.source),
            consumer=written,
        )


def _done_rows(snapshot: Snapshot, key: Callable[[Any], Any] | None = None) -> list[Row]:
    """The rows with a result that were not received, so that their calls are not repeated.

    With a key, a row behind an unfinished one of its key is left out. It needs no call, or else it would have waited.
    """
    rows: list[Any] = []
    unfinished: set[Any] = set()
    for element in snapshot.elements:
        if element.results is not None:
            rows += [row for row in element.results if key is None or key(row) not in unfinished]
        elif key is not None:
            unfinished.update(map(key, _rows_in([element.element])))
    return rows


def _rows_in(chunk: list[Any]) -> list[Row]:
    """The bare rows: watermarks dropped, timestamps removed."""
    if all(isinstance(item, Row) for item in chunk):
        return chunk
    return [item.value for item in chunk if isinstance(item, StreamRecord)]


def _is_cancellation(error: BaseException) -> bool:
    """Whether this is Trio's cancellation, which a nursery may have wrapped in groups."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_cancellation, error.exceptions))
    return isinstance(error, trio.Cancelled)


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
