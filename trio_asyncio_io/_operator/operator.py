"""The operator: one nursery owns the feeder, the workers, the emitter and the timer. Read it first.

    feeder:     for element in source:                      # or: the caller puts elements
                    while the buffer is full: wait          # backpressure: nothing is read meanwhile
                    entry = order.append(element)           # the order decides what may be emitted
                    if it is a record: wake or start a worker
                    else: emit                              # a watermark has no invocation
                input_ended = True

    worker:     loop:                                       # at most `capacity` of them
                    wait for scheduler.take()               # due retries first, then records in arrival order; gates
                    set the deadline
                    result = await function(value)          # one attempt
                    if that raised, and another attempt begins before the deadline:
                        scheduler.retry()                   # frees the slot; the record waits without a task
                        continue
                    if that raised or the deadline expired:
                        result = rescue()                   # on_timeout, then on_error; may stop the operator
                    entry.complete(result)                  # frees the slot, not the place in the buffer
                    emit

    timer:      loop:
                    sleep until the first instant           # a deadline, the end of a backoff, a gate that opens
                    cancel the scopes of workers whose deadlines have expired; let workers call scheduler.assign()

    emit:       if the emitter waits and little is leaving: emit a chunk here; if there is more, wake the emitter

    emitter:    until input_ended and the order is empty:
                    while the order has a completed entry that may be emitted:
                        wait while 4 * capacity entries are leaving     # the consumer does not receive
                        move all such entries to `leaving`              # a chunk
                        wake the consumers that wait in the channel
                    wait
                close the channel                           # the consumer's loop ends
                let the workers return

    consumer:   for output in output:                       # the next of `leaving`, or wait in the channel
                    wake the feeder                         # when a part of the buffer is free, or no job waits
                    wake the emitter                        # if it waits for this

    failure:    remember the first exception, stop the feeder, start no more attempts, cancel the nursery
    end:        cancel the nursery, wait until every task has unwound, close the function, raise the failure

`Parts` connects these tasks, and `lifetime` decides which exception leaves the block. `_core.scheduler` decides what
starts. The state of all this is in `_core.ledger`, which has a method for each step.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from inspect import isasyncgenfunction, isfunction, isgeneratorfunction
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, overload

import trio

from .._account.statistics import Statistics
from .._account.verdict import Totals, Verdict
from .._core.groups import Grouping
from .._core.observation import ledger_for
from .._core.options import AllArguments, Mode, Options
from .._core.queue import Entry
from .._core.scheduler import Scheduler
from .._core.snapshot import Snapshot
from .._values.describe import describe
from .._values.public import check_keywords, list_keywords
from .attempts import Invoker
from .calls import register_operator, remove_operator
from .errors import reraise
from .feeder import Feeder
from .function import Function, KnowsOutputs, as_function, name_of
from .gates import Gates
from .lifetime import Lifetime
from .results import Consumers, Emitter, Results
from .signatures import (
    FlatFunction,
    FlatGroupFunction,
    GroupFunction,
    Key,
    Marked,
    MarkedSource,
    PutFlat,
    PutFlatGroups,
    PutGroups,
    PutSingle,
    Source,
)
from .tasks import Wakeup, interruptible, read_clocks, uninterruptible
from .worker import WorkerPool

T = TypeVar("T")
R = TypeVar("R")
V = TypeVar("V")
S = TypeVar("S")


@uninterruptible
@list_keywords(AllArguments, Options)
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
        source: An iterable or an async iterable. The operator reads it and ends the input at its end; `put` raises a
            `RuntimeError`. None (the default): the caller puts.
        And the other arguments, as for `Options`.

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

    @overload
    def __init__(self, function: Function[T, R], **options: Unpack[PutSingle[T, R, T, Source[T]]]) -> None: ...
    @overload
    def __init__(
        self: AsyncWaitOperator[Marked[V], Marked[S]],
        function: Function[V, S],
        **options: Unpack[PutSingle[Marked[V], Marked[S], V, MarkedSource[V]]],
    ) -> None: ...
    @overload
    def __init__(self, function: FlatFunction[T, R], **options: Unpack[PutFlat[T, R, T, Source[T]]]) -> None: ...
    @overload
    def __init__(
        self: AsyncWaitOperator[Marked[V], Marked[S]],
        function: FlatFunction[V, S],
        **options: Unpack[PutFlat[Marked[V], Marked[S], V, MarkedSource[V]]],
    ) -> None: ...
    @overload
    def __init__(self, function: GroupFunction[T, R], **options: Unpack[PutGroups[T, R, T, Source[T]]]) -> None: ...
    @overload
    def __init__(
        self: AsyncWaitOperator[Marked[V], Marked[S]],
        function: GroupFunction[V, S],
        **options: Unpack[PutGroups[Marked[V], Marked[S], V, MarkedSource[V]]],
    ) -> None: ...
    @overload
    def __init__(
        self, function: FlatGroupFunction[T, R], **options: Unpack[PutFlatGroups[T, R, T, Source[T]]]
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncWaitOperator[Marked[V], Marked[S]],
        function: FlatGroupFunction[V, S],
        **options: Unpack[PutFlatGroups[Marked[V], Marked[S], V, MarkedSource[V]]],
    ) -> None: ...
    def __init__(
        self,
        function: Function[Any, Any],
        *,
        mode: Mode = "ordered",
        timeout: float,
        key: Key[Any] | None = None,
        source: Source[Any] | None = None,
        **options: Unpack[AllArguments],
    ) -> None:
        if source is not None and not isinstance(source, AsyncIterable | Iterable):
            raise TypeError(
                f"the source must be an iterable or an async iterable, got {describe(source)}{_source_hint(source)}"
            )
        check_keywords(AsyncWaitOperator, options)
        callee = as_function(function)
        checked = Options.of(timeout, options, mode=mode, key=key)
        self._source = source
        self._parts: Parts[T, R] = Parts(callee, checked, self._fail)
        self.output: Results[R, T] = self._parts.output
        self._ledger = self._parts.ledger
        self._feeder = self._parts.feeder
        self._lifetime = Lifetime(callee)
        self._is_entered = False

    async def __aenter__(self) -> Self:
        nursery = await self._lifetime.begin()
        self._ledger.begin_run(read_clocks())
        try:
            await self._parts.start(nursery)
            if self._source is not None:
                nursery.start_soon(self._feed, self._source, name="trio_asyncio_io feeder")
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        self._is_entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        # Not a generator with `@asynccontextmanager`, which would replace a StopAsyncIteration
        self._ledger.stop_starting()
        self._feeder.stop(trio.ClosedResourceError, "the operator's block has been left")
        outcome = await self._lifetime.end(error, self._parts.close)
        if outcome is None or outcome is error:
            return outcome is None
        try:
            reraise(outcome)
        finally:
            del outcome, error, traceback  # no cycle of the exception and this frame

    async def put(self, element: T) -> None:
        """Accept a bare value, a `StreamRecord` or a `Watermark`. Waits while the buffer is full.

        Raises:
            RuntimeError: You have not entered the operator, or it has a `source`.
            trio.ClosedResourceError: You ended the input, or left the block.
            trio.BrokenResourceError: The operator has failed, or `output` was closed: nobody would receive the result.

        Cancellation: the element was not accepted.
        """
        self._check_can_put()
        await self._feeder.put(element)

    def put_nowait(self, element: T) -> None:
        """Accept an element without waiting.

        Raises:
            trio.WouldBlock: The buffer is full, or another task is waiting to put. The element was not accepted.
            RuntimeError, trio.ClosedResourceError, trio.BrokenResourceError: As in `put`.
        """
        self._check_can_put()
        self._feeder.put_nowait(element)

    def end_input(self) -> None:
        """End the input. Accepted elements still run and are emitted; then `output` ends."""
        self._feeder.stop(trio.ClosedResourceError, "the input has ended")
        self._parts.end_input()

    def snapshot(self) -> Snapshot[T, R]:
        """Every element accepted and not yet received; see `Snapshot`. Works at any moment, also after the block."""
        return self._ledger.snapshot()

    def statistics(self) -> Statistics:
        """The operator's current numbers. Works at any moment, also after the block."""
        return self._ledger.statistics()

    def explain(self) -> Verdict:
        """What limits the operator, and what to change; see `Results.explain`."""
        return self._ledger.verdict(read_clocks)

    def totals(self) -> Totals:
        """The numbers behind `explain()` as sums, to add to those of others. Invocations that run do not count.

        Works while the operator runs, in the same thread, and after the block. It takes a short time that does not
        depend on the number of records.

        Example:
            sum((operator.totals() for operator in operators), Totals()).explain()
        """
        return self._ledger.totals(read_clocks)

    async def _feed(self, source: Source[Any]) -> None:
        try:
            await self._feeder.feed(source)
        except Exception as error:  # noqa: BLE001 - the source may raise anything
            self._fail(error)
        else:
            self.end_input()

    def _fail(self, error: Exception) -> None:
        self._ledger.stop_starting()
        self._feeder.stop(trio.BrokenResourceError, f"the operator has failed: {describe(error, 200)}", error)
        self._lifetime.fail(error)

    def _check_can_put(self) -> None:
        if not self._is_entered:
            raise RuntimeError("enter the operator first: `async with AsyncWaitOperator(...) as operator:`")
        if self._source is not None:
            raise RuntimeError(
                "nothing can be put beside source=, which the operator reads by itself: let the source yield this "
                "element, too, or leave source= out and put all elements"
            )


class Parts(Generic[T, R]):
    """The parts of one operator.

    Args:
        function: Its function, as an object with `invoke`.
        options: Its options.
        on_failure: Called with the exception that stops the operator.

    Attributes:
        ledger: The state of all elements.
        output: What the consumer reads.
        emitter: Sends completed entries to the output.
        invoker: Carries out the invocations.
        feeder: Accepts elements.
    """

    def __init__(self, function: Any, options: Options, on_failure: Callable[[Exception], None]) -> None:
        self.ledger = ledger_for(options, None if options.key is None else interruptible(options.key))
        has_room = Wakeup()
        self._consumers = Consumers()
        self.output: Results[R, T] = Results(self._consumers, self.ledger, has_room, self._close_output)
        # A chunk holds a few rounds of results, so the emitter rarely waits for the consumer
        chunk = 4 * options.capacity
        self.emitter = Emitter(self.ledger, self._consumers, chunk, self.output.dead_letters, has_room)
        self._on_failure = on_failure
        self._gates: Gates | None = None
        if options.gates:
            counters = self.ledger.counters
            self._gates = Gates(options.gates, lambda: counters.running, self.ledger.throttle, self._fail_gate)
            self.ledger.flow.finding = self._gates.finding
        self.invoker = Invoker(function, options, self.ledger, self._gates)
        self._scheduler = Scheduler(
            self.ledger,
            options.capacity,
            options.timeout,
            grouping=Grouping(options.group or 0, options.group_wait, splits=options.group_split),
            gates=self._gates,
            on_failure=self._fail_gate,
        )
        self._workers = WorkerPool(
            self.ledger,
            self._scheduler,
            self.invoker,
            capacity=options.capacity,
            emitter=self.emitter,
            has_room=has_room,
            on_failure=on_failure,
            gates=self._gates,
        )
        self.feeder = Feeder(
            self.ledger,
            self._workers.dispatch,
            self.emitter.emit,
            has_room,
            jobs_per_pass=2 * options.capacity,
            known=interruptible(function.known) if isinstance(function, KnowsOutputs) else None,
            on_full=None if options.group is None else self._workers.dispatch,  # groups no longer wait for more records
        )

    async def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks, and accept the elements of a restored snapshot."""
        self._nursery = nursery
        register_operator(nursery, self.ledger, self._on_failure)
        self._consumers.open()
        self.output.dead_letters.open(nursery)
        self._workers.open(nursery)
        nursery.start_soon(self._emit, name="trio_asyncio_io emitter")
        if self.ledger.backlog:
            await nursery.start(self.feeder.restore, name="trio_asyncio_io restore")

    def end_input(self) -> None:
        """Accept no more elements."""
        self.ledger.end_input(trio.current_time())
        self.emitter.emit()
        self._workers.dispatch()  # groups no longer wait for more records

    async def _emit(self) -> None:
        await self.emitter.run()
        self._workers.end()

    def _close_output(self) -> None:
        """The consumer receives nothing more."""
        self.feeder.stop(trio.BrokenResourceError, "the operator's output was closed: nobody would receive the result")
        self.ledger.stop_starting()

    def close(self) -> None:
        """All tasks have unwound."""
        remove_operator(self._nursery)
        self.feeder.close()
        self._scheduler.close(trio.current_time())
        self.ledger.end_run(read_clocks())
        if self._gates is not None:
            self._gates.close()
        self.output.dead_letters.abandon()
        self.output.close()

    def _fail_gate(self, error: Exception, entry: Entry | None) -> None:
        """A gate is broken, or the `weight` of a gate or the `key` of a `PerKey` has raised."""
        self._on_failure(error if entry is None else self.invoker.named(error, entry))


def _source_hint(source: object) -> str:
    """What to do with a function in the place of the source."""
    if isgeneratorfunction(source) or isasyncgenfunction(source):
        return f": call the generator function, as in {name_of(source)}()"
    return ": the source is the first argument, the function the second" if isfunction(source) else ""
