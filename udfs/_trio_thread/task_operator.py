"""Task operator: the operator of one Spark task, in the loop of the worker.

The other end of `_spark_thread.bridge`. Rows arrive one batch at a time and leave in chunks, because a thread switch
per row would cost more than the row itself.
"""

from __future__ import annotations

import select
import socket
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import replace
from math import inf
from queue import SimpleQueue
from typing import Any, Final

import trio

from trio_asyncio_io import (
    AsyncWaitOperator,
    Results,
    Snapshot,
    Statistics,
    StreamRecord,
    assign_watermarks,
    lingering,
)
from trio_asyncio_io.embedding import TaskTimes

from .._pyspark_worker import HangUpError
from .._sent.row import Row
from .._sent.settings import Settings
from .budget_gates import return_lease
from .calls import GroupCalls, RowCalls
from .runtime import IDLE_SECONDS, Runtime
from .task_clock import TaskClock

__all__ = ["Record", "TaskOperator"]

Record = Callable[[list[Row]], None]

_END: Final = object()

# A chunk is sent when it has this many rows or its first row is this old. The first chunks are smaller: a chunk does
# not wait for more rows than all chunks before it had together.
CHUNK_ROWS = 512
LINGER_SECONDS = 0.01

# With metrics, between two reports of the totals while rows come in
REPORT_SECONDS = 0.1

# Between two looks at a connection, where the kernel has no epoll
POLL_SECONDS = 0.1


class TaskOperator:
    """The operator of one Spark task.

    Spark's thread creates it, calls `send`, `end` and `cancel`, and reads `outbox`. Coroutines, `_deliver` and
    `_on_death` run in the loop.

    Args:
        settings: The settings of the UDF.
        connection: The socket between Spark and this worker, or None. When Spark closes it, the calls are cancelled.
        record: Called in another thread with finished rows, before they are in `outbox`; or None.
        written: Returns the seconds that Spark's thread has spent on writing the chunks so far.
        clock: That of the task.

    Attributes:
        outbox: Chunks of finished rows; then an exception, if there was one; then an object that is neither.
        has_ended: Set when the loop no longer uses this object.
        statistics: The statistics of the operator, once it has ended.
        calls: The number of calls of the function, once it has ended.
        times: The times of the task, once it has ended.
    """

    def __init__(
        self,
        settings: Settings,
        connection: socket.socket | None,
        record: Record | None,
        written: Callable[[], float],
        clock: TaskClock,
    ) -> None:
        self.outbox: SimpleQueue[list[Row] | BaseException | object] = SimpleQueue()
        self.has_ended = threading.Event()
        self.statistics = Statistics()
        self.calls = 0
        self.times = TaskTimes()
        self._clock = clock
        self._left: Callable[[], int] = int  # the rows without a result
        self._accepted = 0
        self._input_ended = False
        self._settings = settings
        self._connection = connection
        self._record = record
        self._written = written
        self._inbox, self._source = trio.open_memory_channel[list[Row]](float("inf"))
        self._scope = trio.CancelScope()
        self._runtime = Runtime.current()
        self._runtime.start(self._run, self._on_death)

    def send(self, rows: list[Row]) -> None:
        """Add the rows of a batch to the operator's input."""
        self._runtime.soon(lambda: self._deliver(rows))

    def end(self) -> None:
        """End the input."""
        self._runtime.soon(self._inbox.close)

    def cancel(self) -> None:
        """Cancel the calls. Rows that are finished by then are still in `outbox`."""
        self._runtime.soon(self._scope.cancel)

    def _deliver(self, rows: list[Row]) -> None:
        try:
            self._inbox.send_nowait(rows)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the operator has ended, and its exception is in the outbox

    def _on_death(self, error: BaseException) -> None:
        self.outbox.put(error)
        self.has_ended.set()

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
                    self.outbox.put(error)
                nursery.cancel_scope.cancel()
        self._source.close()
        self.outbox.put(_END)
        self.has_ended.set()

    async def _watch(self, connection: socket.socket) -> None:
        await until_hangup(connection)
        self.outbox.put(HangUpError("Spark has closed the connection to this worker"))
        self._scope.cancel()

    async def _operate(self) -> None:
        settings = self._settings
        async with AsyncExitStack() as stack:
            if settings.budget is not None:
                stack.push_async_callback(return_lease, settings.budget)
            function = await stack.enter_async_context(self._runtime.opened(settings.function, settings.open_timeout))
            on_timeout = None
            if settings.on_timeout is not None:
                opened = self._runtime.opened(settings.on_timeout, settings.open_timeout)
                on_timeout = await stack.enter_async_context(opened)
            kind = RowCalls if settings.options.group is None else GroupCalls
            calls = kind(function, on_timeout, settings)
            source = await stack.enter_async_context(self._elements())
            operator: AsyncWaitOperator[Row, Row] = AsyncWaitOperator(calls, source=source, **calls.options())
            try:
                async with operator:
                    self._clock.accept_rows()
                    self._left = lambda: self._accepted - operator.totals().done
                    # Not before: a context variable of the operator's block would cost each row time
                    stack.enter_context(lingering(IDLE_SECONDS))
                    await self._send_chunks(operator.output, self._sender(operator))
            except trio.Cancelled:
                if rows := await self._recorded(_done_rows(operator.snapshot())):
                    self.outbox.put(rows)
                raise
            except Exception:
                await self._recorded(_done_rows(operator.snapshot()))
                raise
            finally:
                self.statistics = operator.statistics()
                self.calls = calls.made
                self.times = self._clock.times()
                self._clock.stop()

    async def _send_chunks(self, results: Results[Any], send: Callable[[list[Row]], None]) -> None:
        """Receive all results and send their rows in chunks. When cancelled, send the rows received so far."""
        received = 0
        with suppress(trio.EndOfChannel):
            while True:
                chunk = await self._receive(results, CHUNK_ROWS)
                try:
                    with trio.move_on_after(LINGER_SECONDS):
                        while len(chunk) < min(received, CHUNK_ROWS):
                            chunk += await self._receive(results, CHUNK_ROWS - len(chunk))
                finally:
                    if rows := _rows_in(chunk):
                        send(rows)
                received += len(chunk)

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
                await trio.to_thread.run_sync(self._record, rows)
        return rows

    def _sender(self, operator: AsyncWaitOperator[Row, Row]) -> Callable[[list[Row]], None]:
        """The function that sends a chunk to Spark's thread. With metrics, it regularly adds the totals."""
        if not self._settings.has_metrics:
            return self.outbox.put
        due = -inf

        def send(rows: list[Row]) -> None:
            nonlocal due
            now = trio.current_time()
            if self._input_ended or now >= due:
                due = now + REPORT_SECONDS
                totals, written = operator.totals(), self._written()
                totals = replace(totals, consumer=written, withheld=min(written, totals.source))
                rows[0].totals = totals, self._clock.times()
            self.outbox.put(rows)

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
            self._accepted += len(rows)
            for row in rows:
                yield row
        self._input_ended = True
        self._clock.drain(self._left, self._settings.options.capacity)


def _done_rows(snapshot: Snapshot) -> list[Row]:
    """The rows with a result that were not received, so that their calls are not repeated."""
    return [row for element in snapshot.elements for row in element.results or ()]


def _rows_in(chunk: list[Any]) -> list[Row]:
    """The rows without watermarks and timestamps."""
    if all(isinstance(item, Row) for item in chunk):
        return chunk
    return [item.value for item in chunk if isinstance(item, StreamRecord)]


async def until_hangup(connection: socket.socket) -> None:
    """Return when the peer has closed the connection: immediately on Linux, within 0.1 s elsewhere.

    Spark closes the connection when a task is cancelled or a `limit` has enough rows. The worker's next write would be
    the first to fail, and calls would continue until then. Unread data make the socket readable, too, so this waits for
    the kernel's event for a hang-up.
    """
    if sys.platform == "linux":
        with select.epoll() as hangups:
            hangups.register(connection, select.EPOLLRDHUP)
            await trio.lowlevel.wait_readable(hangups.fileno())
    else:
        await _poll(connection)


async def _poll(connection: socket.socket) -> None:
    hangup = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR
    poll = select.poll()
    poll.register(connection.fileno(), hangup)
    while not poll.poll(0):  # noqa: ASYNC110 - there is no event to wait for
        await trio.sleep(POLL_SECONDS)
