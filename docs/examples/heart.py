"""The heart: an asynchronous wait operator with nothing that is optional.

    source -> feed -> order -> emit -> leaving -> the block's loop
                        |  ^
                        v  |
                      process: one task for each record, with a slot while it calls

Three modes, two limits, walls, timeouts, retries, handlers, flatten, snapshot and
restore. The tests hold the real operator to this file: the same calls, the same
outputs, at the same instants.
"""

from collections import Counter, deque
from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import KW_ONLY, dataclass
from heapq import heappop, heappush
from math import inf
from random import random

import trio
from trio.testing import MockClock

from trio_asyncio_io import (
    ElementTimeoutError,
    RetryStrategy,
    Snapshot,
    SnapshotElement,
    StreamRecord,
    Watermark,
)
from trio_asyncio_io._core.queue import CompletionOrder, InputOrder, KeyOrder

ORDERS = {"ordered": InputOrder, "unordered": CompletionOrder, "keyed": KeyOrder}


class Slots:
    """At most `capacity` calls run: this limit protects the service.

    A free slot goes to the first in line: retries before new records, few attempts
    before many, old records before young ones. While `capacity` records have failed and
    wait for their retry, no new record starts: a service in trouble gets no more work.
    """

    def __init__(self, capacity):
        self._capacity = capacity
        self._running = 0
        self._failed = set()  # records whose attempt has raised, until their next one
        self._line = []  # a heap

    def line_up(self, entry):
        """Stand in line. The event is set when the record has a slot."""
        is_new, has_slot = entry.attempts == 0, trio.Event()
        heappush(self._line, (is_new, entry.attempts, entry.sequence, has_slot))
        self._fill()
        return has_slot

    def free(self):
        """Return a slot."""
        self._running -= 1
        self._fill()

    def count_failed(self, entry):
        """The record has failed and will be retried."""
        self._failed.add(entry.sequence)

    def _fill(self):
        while self._line and self._running < self._capacity:
            is_new = self._line[0][0]
            if is_new and len(self._failed) >= self._capacity:
                return
            *_, sequence, has_slot = heappop(self._line)
            self._failed.discard(sequence)
            self._running += 1
            has_slot.set()


class TimedOutError(Exception):
    """A record has no result at its deadline. The handlers see what follows from it."""


@dataclass(eq=False)
class Heart:
    """Calls `function` for each record of `source`; iterate over it for the outputs.

    Args:
        source: An iterable or async iterable of values, `StreamRecord`s and watermarks.
        function: An async function of one value.
        mode: "ordered", "unordered" or "keyed".
        timeout: Seconds for all attempts and backoffs of a record.
        capacity: The most calls that run at once. It protects the service.
        buffer: The most records accepted and not yet received, and the most watermarks.
            It protects memory.
        key: For "keyed": records with equal keys keep their order.
        retry: A `RetryStrategy`, or None.
        on_timeout: An async function of the value, in place of a result that is late.
        on_error: "raise", "skip", or an async function of the value and the error.
        flatten: Whether a result is an iterable of outputs.
        restore: The snapshot of a run that this one continues.
    """

    source: Iterable | AsyncIterable
    function: Callable
    _: KW_ONLY
    mode: str = "ordered"
    timeout: float
    capacity: int
    buffer: int
    key: Callable | None = None
    retry: RetryStrategy | None = None
    on_timeout: Callable | None = None
    on_error: str | Callable = "raise"
    flatten: bool = False
    restore: Snapshot | None = None

    def __post_init__(self):
        # The snapshot: each element is in the backlog, in the order or in `_leaving`
        restored = self.restore or Snapshot()
        self._backlog = deque(
            (each.element, each.results) for each in restored.elements
        )
        make_order = ORDERS[self.mode]
        self._order = make_order(self.key) if self.key else make_order()
        self._leaving = deque()
        self._slots = Slots(self.capacity)
        self._taken = restored.taken  # elements that the source has given
        self._accepted = 0  # the sequence number of the next element
        self._received = 0  # outputs of the first in `_leaving` that have been received
        self._held = Counter()  # in the buffer: records (False) and watermarks (True)
        self._has_ended = False
        self._failure = None
        self._has_room = trio.lowlevel.ParkingLot()
        self._has_output = trio.lowlevel.ParkingLot()

    @asynccontextmanager
    async def running(self):
        """The block in which it runs. After it, no task and no call is left."""
        async with trio.open_nursery() as self._nursery:
            with self._stopping_on_failure():
                self._nursery.start_soon(self._feed)
                yield self
            self._nursery.cancel_scope.cancel()  # nobody receives any more
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _stopping_on_failure(self):
        """Keep the first failure, and cancel everything else because of it.

        A task that raised into the nursery would do the same, but in a group with the
        others. A consumer can handle one error that is the cause.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - `running` raises it
            if self._failure is None:
                self._failure = error
            self._nursery.cancel_scope.cancel()

    # Input

    async def _feed(self):
        with self._stopping_on_failure():
            await trio.lowlevel.checkpoint()  # cancelled: nothing is read
            while self._backlog:
                await self._accept_next()
            if hasattr(self.source, "__aiter__"):
                async for element in self.source:
                    await self._take(element)
            else:
                for element in self.source:
                    await self._take(element)
            self._has_ended = True
            self._emit()

    async def _take(self, element):
        self._taken += 1
        self._backlog.append((element, None))
        await self._accept_next()

    async def _accept_next(self):
        """Move an element from the backlog to the order. Wait while there is no room.

        The source is not read meanwhile. This is the whole of backpressure.
        """
        element, results = self._backlog[0]
        is_wall = isinstance(element, Watermark)
        while self._held[is_wall] >= self.buffer:
            await self._has_room.park()
        if is_wall:
            self._order.append_watermark(element, self._accepted, trio.current_time())
        else:
            self._append_record(element, results)
        self._held[is_wall] += 1
        self._backlog.popleft()
        self._accepted += 1
        self._emit()
        await trio.lowlevel.checkpoint()  # cancelled: no more is read

    def _append_record(self, element, results):
        value = element.value if isinstance(element, StreamRecord) else element
        new_entry = self._order.entry_type
        entry = new_entry(element, value, self._accepted, trio.current_time())
        self._order.append(entry)
        if results is not None:  # restored: it has been called in an earlier run
            entry.complete(results)
        elif self._order.may_start(entry):
            self._start(entry)

    # One record

    def _start(self, entry):
        # It stands in line now: tasks of one instant run in any order
        has_slot = self._slots.line_up(entry)
        self._nursery.start_soon(self._process, entry, has_slot)

    async def _process(self, entry, has_slot):
        """From the line to the results. They free the slot, but not the place."""
        with self._stopping_on_failure():
            await has_slot.wait()
            await trio.lowlevel.checkpoint_if_cancelled()  # cancelled: no call
            entry.complete(await self._results_of(entry))
            successor = self._order.successor(entry)
            if successor is not None:
                self._start(successor)  # it may be older than the others in the line
            self._slots.free()
            self._emit()

    async def _results_of(self, entry):
        """The outputs of the function, or of a handler. An error stops the operator."""
        try:
            try:
                return await self._make_attempts(entry)
            except TimedOutError as late:
                if self.on_timeout is not None:
                    return await self._handle(self.on_timeout, entry.value)
                text = f"no result for {entry.value!r} within {self.timeout} s"
                raise ElementTimeoutError(text, self.timeout) from late.__cause__
        except Exception as error:
            if self.on_error == "raise":
                raise
            if self.on_error == "skip":
                return ()
            return await self._handle(self.on_error, entry.value, error)

    async def _make_attempts(self, entry):
        """Call the function until a result or an error is final.

        A deadline is a cancel scope. A retry is another pass of a loop.
        """
        deadline = trio.current_time() + self.timeout
        while True:
            result = error = None
            entry.attempts += 1
            with trio.CancelScope(deadline=deadline) as scope:
                try:
                    result = await self.function(entry.value)
                except Exception as raised:  # noqa: BLE001 - a retry may follow
                    error = raised
            if scope.cancelled_caught:
                raise TimedOutError
            backoff = self._backoff_after(entry.attempts, result, error)
            if backoff == inf and error is not None:
                raise error
            if backoff == inf:
                return self._outputs_of(result)
            if trio.current_time() + backoff >= deadline:
                raise TimedOutError from error
            deadline += await self._wait_for_retry(entry, backoff, error)

    def _backoff_after(self, attempt, result, error):
        """Seconds until the next attempt. Infinity: this one is final."""
        retry = self.retry
        if retry is None or attempt > retry.max_retries:
            return inf
        if error is None:
            is_retried = retry.retries_result(result)
        else:
            is_retried = retry.retries_exception(error)
        return retry.wait(attempt, random(), error) if is_retried else inf

    async def _wait_for_retry(self, entry, backoff, error):
        """Wait without a slot, then for one. Returns the seconds of this second wait.

        The deadline moves by them: they say nothing about the service.
        """
        if error is not None:
            self._slots.count_failed(entry)
        if backoff > 0:
            self._slots.free()
            await trio.sleep(backoff)
            has_slot = self._slots.line_up(entry)
        else:  # it stands in line before the slot is free
            has_slot = self._slots.line_up(entry)
            self._slots.free()
        start = trio.current_time()
        await has_slot.wait()
        await trio.lowlevel.checkpoint_if_cancelled()  # cancelled: no call
        return trio.current_time() - start

    async def _handle(self, handler, *arguments):
        """The outputs of a handler, which runs in the record's slot."""
        with trio.fail_after(self.timeout):
            return self._outputs_of(await handler(*arguments))

    def _outputs_of(self, result):
        return tuple(result) if self.flatten else (result,)

    # Output

    def _emit(self):
        """Move what may leave from the order to `_leaving`. The order decides what.

        Whoever has changed the order calls this: there is no task that waits for it.
        """
        while self._order.has_completed():
            for entry in self._order.take(self.buffer):
                if entry.results:
                    self._leaving.append(entry)
                else:
                    self._free_place(entry)
        self._has_output.unpark_all()

    def _free_place(self, entry):
        self._held[entry.is_watermark] -= 1
        self._has_room.unpark()

    def __aiter__(self):
        return self

    async def __anext__(self):
        """The next output. Cancelled: none was received."""
        await trio.lowlevel.checkpoint()
        while not self._leaving:
            if self._has_ended and self._order.is_empty():
                raise StopAsyncIteration
            await self._has_output.park()
        entry = self._leaving[0]
        output = entry.results[self._received]
        self._received += 1
        if self._received == len(entry.results):
            self._leaving.popleft()
            self._received = 0
            self._free_place(entry)
        if isinstance(entry.element, StreamRecord):
            return StreamRecord(output, entry.element.timestamp)
        return output

    # Snapshot

    def snapshot(self):
        """Every element taken and not yet received, with its results if it has any.

        No step above awaits between two changes of these collections, so a snapshot is
        consistent at every moment.
        """
        entries = [*self._leaving, *self._order.entries()]
        entries.sort(key=lambda entry: entry.sequence)
        elements = [
            SnapshotElement(entry.sequence, entry.element, self._left_of(entry))
            for entry in entries
        ]
        for sequence, taken in enumerate(self._backlog, self._accepted):
            elements.append(SnapshotElement(sequence, *taken))
        return Snapshot(tuple(elements), taken=self._taken)

    def _left_of(self, entry):
        if entry.is_watermark or entry.results is None:
            return None
        is_first = bool(self._leaving) and entry is self._leaving[0]
        return list(entry.results[self._received if is_first else 0 :])


SECONDS = {"a": 0.5, "b": 0.1, "c": 0.2, "d": 0.5}


async def call(name):
    await trio.sleep(SECONDS[name])
    return name.upper()


async def show(source, mode, receive=None, **options):
    """Print outputs and their instants. Leave the block after `receive` of them."""
    start, shown = trio.current_time(), []
    heart = Heart(source, call, mode=mode, timeout=1.0, capacity=2, buffer=4, **options)
    async with heart.running():
        async for output in heart:
            name = "wall" if isinstance(output, Watermark) else output
            shown.append(f"{name} at {trio.current_time() - start:.1f}")
            if len(shown) == receive:
                break
    print(f"{mode:<9}", ", ".join(shown))
    return heart.snapshot()


async def main():
    elements = ["a", "b", Watermark(1), "c", "d"]
    await show(elements, "ordered")
    snapshot = await show(elements, "unordered", receive=2)
    print("snapshot ", [(each.element, each.results) for each in snapshot.elements])
    await show([], "unordered", restore=snapshot)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
