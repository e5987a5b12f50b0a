"""The operator: one nursery owns the feeder, the workers, the emitter and the deadlines.

    feeder:     for element in source:                      # or: the caller puts elements
                    while the buffer is full: wait          # backpressure: nothing is read meanwhile
                    entry = queue.put(element)              # the queue decides the output order
                    if it is a record: wake or start a worker
                    else: emit                              # a watermark has no invocation
                input_ended = True

    worker:     loop:                                       # at most `capacity` of them
                    wait for a job                          # jobs start in arrival order
                    set the deadline
                    result = await function(value)          # with all attempts and backoffs
                    if that raised or the deadline expired:
                        result = rescue()                   # on_timeout, then on_error; may stop the operator
                    entry.complete(result)                  # frees the slot, not the place in the buffer
                    emit

    deadlines:  loop:
                    sleep until the first deadline          # all timeouts are equal, so the oldest
                    cancel its worker's scope

    emit:       if the emitter waits: send the entry that may be emitted; wake the emitter if there are more

    emitter:    until input_ended and the queue is empty:
                    while the queue has a completed entry that may be emitted:
                        await channel.send(entry)           # waits while the consumer does not receive
                    wait
                close the channel                           # the consumer's loop ends

    consumer:   for output in channel:
                    wake the feeder                         # when a part of the buffer is free, or no job waits

    failure:    remember the first exception, stop the feeder, start no more jobs, cancel the nursery
    end:        cancel the nursery, wait until every task has unwound, close the function, raise the failure

The state of all this is in `_core.ledger`, which has a method for each step.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Hashable, Iterable
from types import TracebackType
from typing import Generic, Self, TypeAlias, TypeVar, Unpack

import trio
from trio.lowlevel import enable_ki_protection

from ._boundary import interruptible
from ._clocks import read_clocks
from ._core.describe import describe
from ._core.elements import Element, StreamRecord, Watermark
from ._core.observed_ledger import ledger_for
from ._core.options import Mode, Options, OptionsArguments
from ._core.queue import Entry
from ._core.snapshot import Snapshot
from ._core.statistics import Statistics
from ._core.totals import Totals
from ._core.verdict import Verdict
from ._dead_letters import DeadLetters
from ._deadlines import Deadlines
from ._emitter import Emitter
from ._exception_groups import reraise
from ._feeder import ELEMENTS_PER_PASS, Feeder
from ._function import Function, as_function, known_of
from ._gatekeeper import Gatekeeper
from ._invoker import Invoker
from ._lifetime import Lifetime
from ._results import Results
from ._slots import Slots
from ._wakeup import Wakeup
from ._worker_pool import WorkerPool
from .gates import AdaptiveCapacity
from .keywords import list_keywords

__all__ = ["AsyncWaitOperator", "Source"]

T = TypeVar("T")
R = TypeVar("R")

# mypy joins a list of records and watermarks to `list[Element[T]]`, pyright needs the members of the union
Item: TypeAlias = T | StreamRecord[T] | Watermark | Element[T]
Source: TypeAlias = AsyncIterable[Item[T]] | Iterable[Item[T]]


@list_keywords(OptionsArguments, Options)
class AsyncWaitOperator(Generic[T, R]):
    """The asynchronous wait operator, for a caller that puts elements (Flink's `AsyncWaitOperator`).

    `ordered_wait`, `unordered_wait` and `keyed_wait` are this operator with a source. Use it once, as an async context
    manager. After the block, nothing that it started is alive, however the block ended.

    Semantics:
        * **Emits** when an element has its results and may be emitted: in input order ("ordered"), in completion order
          between two watermarks ("unordered"), or in input order per key ("keyed").
        * **Backpressures** when `buffer` records are accepted and not yet received from `output`: `put` waits.
        * **Completes** when the input has ended and everything accepted has been emitted: `output` ends.
        * **Fails** when an element fails and `on_error` is "raise", or the source raises. All running invocations and
          the body of the block are cancelled. When they have unwound, the exception comes out of the block as itself,
          with a note that names the element and the attempt.
        * **Cancels** every invocation when it is cancelled. After the block, `snapshot()` holds every element that was
          not received.

    Args:
        function: An async callable, value -> result, or an `AsyncFunction`.
        mode: The output order: "ordered" (the default), "unordered" or "keyed".
        timeout: Seconds from the start of an invocation to its result, at least 0; see `Options`. Required.
        key: value -> hashable. Required for mode "keyed", refused for the others.
        per_key: Upper limit of invocations of one key that run at once, at least 1 (the default). Only for mode
            "keyed".
        source: An iterable or an async iterable. The operator reads it and ends the input at its end; nobody else
            may put. None (the default): the caller puts.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.
        SnapshotError: `restore` is not a snapshot that this release can read.

    Example:
        async with AsyncWaitOperator(fetch, mode="unordered", timeout=5.0) as operator:
            await operator.put("a")
            operator.end_input()
            async for result in operator.output:
                ...
    """

    def __init__(
        self,
        function: Function[T, R],
        *,
        mode: Mode = "ordered",
        timeout: float,
        key: Callable[[T], Hashable] | None = None,
        per_key: int = 1,
        source: Source[T] | None = None,
        **options: Unpack[OptionsArguments],
    ) -> None:
        if source is not None and not isinstance(source, AsyncIterable | Iterable):
            raise TypeError(f"the source must be an iterable or an async iterable, got {describe(source)}")
        self._function = as_function(function)
        self._options = Options(timeout, mode=mode, key=key, per_key=per_key, **options)
        self._source = source
        self._ledger = ledger_for(self._options, None if key is None else interruptible(key))
        # Entries in this channel still count towards `buffer`. It holds a few rounds of results, so the emitter rarely
        # waits for the consumer
        self._send, receive = trio.open_memory_channel[Entry](4 * self._options.slots)
        has_room = Wakeup()
        dead_letters = DeadLetters(self._ledger, has_room)
        self.output: Results[R] = Results(receive, dead_letters, self._ledger, has_room, self._on_output_closed)
        self._emitter = Emitter(self._ledger, self._send, dead_letters, has_room)
        self._deadlines = Deadlines(self._options.timeout)
        gates = self._options.gates
        if isinstance(self._options.capacity, tuple):
            gates = (*gates, AdaptiveCapacity(*self._options.capacity))
        has_retries = self._options.retry is not None
        self._gates = (
            Gatekeeper(gates, self._ledger, self._deadlines, self._fail, has_retries=has_retries) if gates else None
        )
        after = self._options.yield_slot_after
        slots = None if after is None else Slots(self._ledger, self._deadlines, after)
        self._invoker = Invoker(self._function, self._options, self._ledger, self._gates, slots)
        self._workers = WorkerPool(
            self._ledger,
            self._invoker,
            capacity=self._options.slots,
            deadlines=self._deadlines,
            emitter=self._emitter,
            has_room=has_room,
            on_failure=self._fail,
            gates=self._gates,
            slots=slots,
        )
        known = known_of(self._function)
        self._feeder = Feeder(
            self._ledger,
            self._workers.dispatch,
            self._emitter.emit,
            has_room,
            elements_per_pass=max(ELEMENTS_PER_PASS, 2 * self._options.slots),
            known=None if known is None else interruptible(known),
        )
        self._lifetime = Lifetime(self._function, self._invoker.notes)
        self._is_entered = False

    @enable_ki_protection
    async def __aenter__(self) -> Self:
        nursery = await self._lifetime.begin()
        self._ledger.begin(read_clocks())
        try:
            await self._start(nursery)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        self._is_entered = True
        return self

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # Not a generator with `@asynccontextmanager`, which would replace a StopAsyncIteration
        self._ledger.stop_starting()
        self._feeder.stop(trio.ClosedResourceError, "the operator's block has been left")
        outcome = await self._lifetime.end(error, self._close_channels)
        if outcome is not None and outcome is not error:
            reraise(outcome)
        return outcome is None

    @enable_ki_protection
    async def put(self, element: Item[T]) -> None:
        """Accept a bare value, a `StreamRecord` or a `Watermark`. Waits while the buffer is full.

        Raises:
            trio.ClosedResourceError: You ended the input, or left the block.
            trio.BrokenResourceError: The operator has failed, or `output` was closed: nobody would receive the result.

        Cancellation: the element was not accepted.
        """
        self._check_entered()
        await self._feeder.put(element)

    @enable_ki_protection
    def put_nowait(self, element: Item[T]) -> None:
        """Accept an element without waiting.

        Raises:
            trio.WouldBlock: The buffer is full, or another task is waiting to put. The element was not accepted.
            trio.ClosedResourceError, trio.BrokenResourceError: As in `put`.
        """
        self._check_entered()
        self._feeder.put_nowait(element)

    @enable_ki_protection
    def end_input(self) -> None:
        """End the input. Accepted elements still run and are emitted; then `output` ends."""
        self._feeder.stop(trio.ClosedResourceError, "the input has ended")
        self._ledger.end_input(trio.current_time())
        self._emitter.emit()
        self._invoker.flush()

    @enable_ki_protection
    def snapshot(self) -> Snapshot:
        """Every element accepted and not yet received; see `Snapshot`. Works at any moment, also after the block."""
        return self._ledger.snapshot()

    @enable_ki_protection
    def statistics(self) -> Statistics:
        """The operator's current numbers. Works at any moment, also after the block."""
        return self._ledger.statistics()

    @enable_ki_protection
    def explain(self) -> Verdict:
        """What limits the operator, and what to change; see `Results.explain`."""
        return self._ledger.verdict(read_clocks)

    @enable_ki_protection
    def totals(self) -> Totals:
        """The numbers behind `explain` as sums, to add to those of other operators. Invocations that run do not count.

        Works while the operator runs, in the same thread, and after the block. It takes a short time that does not
        depend on the number of records.

        Example:
            sum((operator.totals() for operator in operators), Totals()).explain()
        """
        return self._ledger.totals(read_clocks)

    async def _start(self, nursery: trio.Nursery) -> None:
        self._workers.open(nursery)
        nursery.start_soon(self._emitter.run, name="trio_asyncio_io emitter")
        nursery.start_soon(self._deadlines.run, name="trio_asyncio_io deadlines")
        if self._ledger.backlog:
            await nursery.start(self._feeder.restore, name="trio_asyncio_io restore")
        if self._source is not None:
            nursery.start_soon(self._feed, self._source, name="trio_asyncio_io feeder")

    @enable_ki_protection
    async def _feed(self, source: Source[T]) -> None:
        try:
            await self._feeder.feed(source)
        except Exception as error:  # noqa: BLE001 - the source may raise anything
            self._fail(error)
        else:
            self.end_input()

    def _on_output_closed(self) -> None:
        self._feeder.stop(trio.BrokenResourceError, "the operator's output was closed: nobody would receive the result")
        self._ledger.stop_starting()

    def _fail(self, error: Exception) -> None:
        self._ledger.stop_starting()
        self._feeder.stop(trio.BrokenResourceError, f"the operator has failed: {describe(error, 200)}", error)
        self._lifetime.fail(error)

    def _close_channels(self) -> None:
        self._ledger.end(read_clocks())
        if self._gates is not None:
            self._gates.close()
        self.output.dead_letters.abandon()
        self.output.close()  # before the sending end: a task that still receives must not see the end of the stream
        self._send.close()

    def _check_entered(self) -> None:
        if not self._is_entered:
            raise RuntimeError("enter the operator first: `async with AsyncWaitOperator(...) as operator:`")
