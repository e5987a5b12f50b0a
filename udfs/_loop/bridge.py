"""The bridge from Spark's synchronous thread into Trio; the only one.

Spark's thread reads and yields Arrow batches, while the operator runs in the loop's thread. Rows enter the loop one
batch at a time and leave it in chunks, because a thread switch per row would cost more than the row itself. Spark's
thread reads the next batch while calls are running, so there is no barrier at the end of a batch.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

import trio

from trio_asyncio_io import AsyncWaitOperator, Snapshot, Statistics, assign_watermarks, lingering

from .._frames import starting_in_user_code
from .._row import Row
from .._settings import Settings
from .budget import Budget
from .calls import RowCalls
from .chunks import send_chunks
from .hangup import HangUpError, until_hangup, worker_socket
from .loads import Loads
from .output_buffer import OutputBuffer
from .recorded import Record, RecordedResults, record_in_thread
from .runtime import IDLE_SECONDS, Runtime
from .stopwatch import Stopwatch
from .task_files import with_observer_of_task, write_file_of_task
from .task_log import TaskLog

__all__ = ["enrich"]

# No further Arrow batch is read while the batches of the unfinished rows have at least this many bytes.
BUFFER_BYTES = 128 * 1024 * 1024

# Time for cancelled calls to unwind. Spark kills the process after two seconds anyway.
STOP_SECONDS = 2.0

_END = object()


def enrich(
    batches: Iterator[list[Row]],
    settings: Settings,
    budget: Budget | None = None,
    *,
    held: Callable[[], int] | None = None,
    record: Record | None = None,
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
        held: The number of rows that the caller holds until rows of this generator are finished. They count towards the
            buffer. With it, an empty chunk follows each batch, so that the caller can emit rows of its own.
        record: Called with finished rows, in another thread, soon after their calls have ended, and before they come
            out. It also gets those that do not come out, because this generator was closed or another row failed.

    Raises:
        Exception: The function's exception, with `on_error="raise"`, or that of `record`.
        HangUpError: Spark has closed the connection.
    """
    task: _Task | None = None
    try:
        for rows in batches:
            if rows:
                task = task or _Task(settings, budget or Budget(), record)
                task.send(rows)
            if task is not None:
                yield from task.chunks_until(max(1, settings.options.bound - (held() if held else 0)))
            if held:
                yield []
        if task is not None:
            task.end()
            yield from task.chunks_until(1)
            yield from task.last_chunks()
    finally:
        if task is not None:
            task.stop()


class _Task:
    """The operator of one Spark task. Coroutines and `_deliver` run in the loop, other methods in Spark's thread."""

    def __init__(self, settings: Settings, budget: Budget, record: Record | None) -> None:
        self._settings = with_observer_of_task(settings)
        self._budget = budget
        self._record = record
        self._unfinished = 0  # rows sent to the loop and not yet received from it
        self._nbytes = 0
        self._outbox: SimpleQueue[list[Row] | BaseException | object] = SimpleQueue()
        self._inbox, self._source = trio.open_memory_channel[list[Row]](float("inf"))
        self._scope = trio.CancelScope()
        self._done = threading.Event()
        self._is_stopped = False
        self._statistics = Statistics()
        self._calls = 0
        self._log = TaskLog(settings.function.name)
        self._connection = worker_socket()
        self._output_buffer = OutputBuffer()
        self._writing = Stopwatch()
        self._runtime = Runtime.current()
        self._runtime.start(self._run, self._on_death)

    def send(self, rows: list[Row]) -> None:
        self._unfinished += len(rows)
        self._nbytes += sum(row.nbytes for row in rows)
        self._runtime.soon(lambda: self._deliver(rows))

    def end(self) -> None:
        self._runtime.soon(self._inbox.close)

    def stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            self._runtime.soon(self._scope.cancel)
            self._done.wait(STOP_SECONDS)
            self._log.write(self._statistics, self._calls)
            if self._done.is_set():  # otherwise the recorder may still be in use
                write_file_of_task(self._settings)

    def chunks_until(self, bound: int) -> Iterator[list[Row]]:
        """The chunks that are ready, and further ones until fewer than `bound` rows are unfinished.

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
            self._output_buffer.flush()  # Spark's thread has resumed this generator, so it has written the chunk
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
                return self._outbox.get(timeout=remaining)
            except Empty:
                pass
        return self._outbox.get(block=self._unfinished >= max(bound, self._budget.max_unfinished + 1))

    def _deliver(self, rows: list[Row]) -> None:
        try:
            self._inbox.send_nowait(rows)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the operator has ended, and its exception is in the outbox

    def _on_death(self, error: BaseException) -> None:
        self._outbox.put(error)
        self._done.set()

    async def _run(self) -> None:
        """Run the operator from the first row to the last, and watch Spark's connection."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                if self._connection is not None:
                    nursery.start_soon(self._watch, self._connection)
                try:
                    await self._operate()
                except trio.Cancelled:
                    raise
                except BaseException as error:  # noqa: BLE001 - it is raised in Spark's thread
                    self._outbox.put(error)
                nursery.cancel_scope.cancel()
        self._source.close()
        self._outbox.put(_END)
        self._done.set()

    async def _watch(self, connection: Any) -> None:
        await until_hangup(connection)
        self._outbox.put(HangUpError("Spark has closed the connection to this worker"))
        self._scope.cancel()

    async def _operate(self) -> None:
        settings = self._settings
        async with AsyncExitStack() as stack:
            function = await stack.enter_async_context(self._runtime.opened(settings.function, settings.open_timeout))
            on_timeout = None
            if settings.on_timeout is not None:
                opened = self._runtime.opened(settings.on_timeout, settings.open_timeout)
                on_timeout = await stack.enter_async_context(opened)
            calls = RowCalls(function, on_timeout, settings)
            source = await stack.enter_async_context(self._elements())
            operator: AsyncWaitOperator[Row, Row] = AsyncWaitOperator(calls, source=source, **calls.options())
            try:
                async with operator:
                    # Not before: a context variable of the operator's block would cost each row time
                    stack.enter_context(lingering(IDLE_SECONDS))
                    output = operator.output
                    recorded = output if self._record is None else RecordedResults(output, self._record)
                    await send_chunks(recorded, self._sender(operator, calls.loads))
            except trio.Cancelled:
                if rows := await self._recorded(_done_rows(operator.snapshot())):
                    self._outbox.put(rows)
                raise
            except Exception:
                await self._recorded(_done_rows(operator.snapshot()))
                raise
            finally:
                self._statistics = operator.statistics()
                self._calls = calls.made

    async def _recorded(self, rows: list[Row]) -> list[Row]:
        if rows and self._record is not None:
            await record_in_thread(self._record, rows)
        return rows

    def _sender(self, operator: AsyncWaitOperator[Row, Row], loads: Loads | None) -> Callable[[list[Row]], None]:
        """Sends a chunk to Spark's thread; with metrics, together with the totals so far."""
        if loads is None:
            return self._outbox.put

        def send(rows: list[Row]) -> None:
            totals, written = loads.put_into(operator.totals()), self._writing.seconds
            rows[0].totals = replace(totals, consumer=written, withheld=min(written, totals.source))
            self._outbox.put(rows)

        return send

    @asynccontextmanager
    async def _elements(self) -> AsyncIterator[AsyncIterator[Any]]:
        async with aclosing(self._rows()) as rows:
            delay = self._settings.delay
            if delay is None:
                yield rows
                return
            marked: Any = assign_watermarks(rows, timestamp=lambda row: row.event_time, max_out_of_orderness=delay)
            async with aclosing(marked) as elements:
                yield elements

    async def _rows(self) -> AsyncGenerator[Row, None]:
        async for rows in self._source:
            for row in rows:
                yield row


def _fatal(error: BaseException) -> BaseException:
    """The first exception in a group that must end the process, such as `SystemExit`; else the error itself."""
    while isinstance(error, BaseExceptionGroup) and not isinstance(error, Exception):
        _, fatal = error.split(Exception)
        assert fatal is not None
        error = fatal.exceptions[0]
    return error


def _done_rows(snapshot: Snapshot) -> list[Row]:
    """The rows with a result that were not received, so that their calls are not repeated."""
    return [row for element in snapshot.elements for row in element.results or ()]
