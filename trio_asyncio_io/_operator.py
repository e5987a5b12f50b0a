"""The operator: one nursery that owns the feeder, the workers and the emitter."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Hashable, Iterable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack

import trio
from trio.lowlevel import enable_ki_protection

from ._boundary import awaited, interruptible
from ._core.describe import describe
from ._core.observed_ledger import ledger_for
from ._core.options import Mode, Options, OptionsArguments
from ._core.queue import Entry
from ._core.snapshot import Snapshot
from ._core.statistics import Statistics
from ._dead_letters import DeadLetters
from ._deadlines import Deadlines
from ._emitter import Emitter
from ._errors import is_cancelled, is_echo_of, members_of, parted, raise_as_it_is
from ._feeder import Feeder
from ._function import Function, as_function
from ._invocation import Invocation
from ._results import Results
from ._worker import WorkerPool

__all__ = ["AsyncWaitOperator"]

# What a function may take to close, whatever its invocations may: a pool with short calls can be slow to say goodbye.
CLOSE_SECONDS = 30.0

T = TypeVar("T")
R = TypeVar("R")

Source = AsyncIterable[Any] | Iterable[Any]


class AsyncWaitOperator(Generic[T, R]):
    """The asynchronous wait operator, into which a caller puts elements (Flink's `AsyncWaitOperator`).

    `ordered_wait`, `unordered_wait` and `keyed_wait` are this operator with a source to read. Use it as an
    async context manager, once. Nothing that it started is alive after the block, however it ended.

    **Emits when** an element's results are there and its turn has come: in input order ("ordered"), in
    completion order between two watermarks ("unordered"), in input order per key ("keyed").
    **Backpressures when** `buffer` records are accepted and not yet received from `output`: `put` waits.
    **Completes when** the input has ended and all that was accepted has come out: `output` ends.
    **Fails when** an element fails and `on_error` is "raise", or the source raises: all running invocations
    and the body of the block are cancelled, and once they have unwound, the exception comes out of the block
    as itself, with a note that names the element and the attempt.
    **Cancellation** reaches every invocation; after the block, `snapshot()` holds what had no chance.

    Args:
        function: An async callable, value -> result, or an `AsyncFunction`.
        mode: "ordered", "unordered" or "keyed".
        timeout: Seconds from the start of an invocation to its result; see `Options`.
        key: value -> hashable, for mode "keyed".
        source: Read by the operator's own feeder, which ends the input at the source's end; then nobody
            else may put. None: the caller puts.
        options: `capacity`, `buffer`, `retry`, `on_timeout`, `on_error`, `flatten`, `restore` and `observer`; see
            `Options`.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.
        SnapshotError: `restore` is no snapshot that this release can read.

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
        source: Source | None = None,
        **options: Unpack[OptionsArguments],
    ) -> None:
        if source is not None and not isinstance(source, AsyncIterable | Iterable):
            raise TypeError(f"the source must be an iterable or an async iterable, got {describe(source)}")
        self._function = as_function(function)
        self._options = Options(timeout, mode=mode, key=key, **options)
        self._source = source
        self._ledger = ledger_for(self._options, None if key is None else interruptible(key))
        self._ledger.holds_letters = self._options.on_error == "dead_letter"
        # What lies ready still counts in the buffer. Emitter and consumer take turns, so the room for a few
        # rounds of the workers keeps these from waiting for those.
        self._send, receive = trio.open_memory_channel[Entry](4 * self._options.capacity)
        self._feeder = Feeder(self._ledger, self._on_accepted)
        made_room = self._feeder.made_room
        letters = DeadLetters(self._ledger, made_room)
        self._emitter = Emitter(self._ledger, self._send, letters, made_room)
        self.output: Results[R] = Results(receive, letters, self._ledger, made_room, self._on_output_closed)
        self._invocation = Invocation(self._function, self._options, self._ledger)
        self._failure: Exception | None = None
        self._lifetime: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._is_entered = False

    @enable_ki_protection
    async def __aenter__(self) -> Self:
        if self._lifetime is not None:
            raise RuntimeError("an operator runs once: make another one for another run")
        if not trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "the operator needs Trio, and this code does not run in a Trio task: start your program with "
                "`trio.run(main)`"
            )
        self._lifetime = trio.open_nursery()
        await _call_if_there(self._function, "open")
        nursery = await self._lifetime.__aenter__()
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
        # No generator stands around the block: that would make something else of a StopAsyncIteration.
        self._ledger.close()
        self._feeder.stop(trio.ClosedResourceError, "the operator's block has been left")
        self._nursery.cancel_scope.cancel()
        outcome = await self._close_after(await self._unwind(error))
        if outcome is not None and outcome is not error:
            raise_as_it_is(outcome)
        return outcome is None

    @enable_ki_protection
    async def put(self, element: Any) -> None:
        """Accept a bare value, a `StreamRecord` or a `Watermark`; waits while the buffer is full.

        Raises:
            trio.ClosedResourceError: You ended the input, or left the block.
            trio.BrokenResourceError: The operator has failed, or `output` was closed: nobody would receive it.

        Cancellation: the element was not accepted.
        """
        self._check_entered()
        await self._feeder.put(element)

    @enable_ki_protection
    def put_nowait(self, element: Any) -> None:
        """Accept an element at once.

        Raises:
            trio.WouldBlock: The buffer is full, or others are waiting to put; the element was not accepted.
            trio.ClosedResourceError, trio.BrokenResourceError: As in `put`.
        """
        self._check_entered()
        self._feeder.put_nowait(element)

    @enable_ki_protection
    def end_input(self) -> None:
        """Say that nothing more will be put. What was accepted still runs and comes out; then `output` ends."""
        self._feeder.stop(trio.ClosedResourceError, "the input has ended")
        self._emitter.end_input()
        self._invocation.flush()

    @enable_ki_protection
    def snapshot(self) -> Snapshot:
        """Every element accepted and not received yet; see `Snapshot`. Works at any moment, after the block too."""
        return self._ledger.snapshot()

    @enable_ki_protection
    def statistics(self) -> Statistics:
        """The operator's numbers as they stand now. Works at any moment, after the block too."""
        return self._ledger.statistics()

    async def _start(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        deadlines = Deadlines(self._options.timeout)
        self._workers = WorkerPool(
            self._ledger,
            self._invocation,
            capacity=self._options.capacity,
            deadlines=deadlines,
            nursery=nursery,
            on_done=self._emitter.wake,
            on_failure=self._fail,
        )
        nursery.start_soon(self._emitter.run, name="trio_asyncio_io emitter")
        nursery.start_soon(deadlines.run, name="trio_asyncio_io deadlines")
        if self._ledger.backlog:
            await nursery.start(self._feeder.restore, name="trio_asyncio_io restore")
        if self._source is not None:
            nursery.start_soon(self._feed, self._source, name="trio_asyncio_io feeder")

    @enable_ki_protection
    async def _feed(self, source: Source) -> None:
        try:
            await self._feeder.feed(source)
        except Exception as error:  # noqa: BLE001 - the source's, whatever it is
            self._fail(error)
        else:
            self.end_input()

    def _on_accepted(self, entry: Entry) -> None:
        if entry.results is None:
            self._workers.dispatch()
        else:
            self._emitter.wake()

    def _on_output_closed(self) -> None:
        self._feeder.stop(trio.BrokenResourceError, "the operator's output was closed: nobody would receive this")
        self._ledger.close()

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            self._ledger.close()
            self._feeder.stop(trio.BrokenResourceError, f"the operator has failed: {describe(error, 200)}", error)
            self._nursery.cancel_scope.cancel()
        elif error is not self._failure:
            text = f"while the operator stopped, this was raised too: {describe(error, 200)}"
            self._invocation.notes.add(self._failure, text)

    async def _unwind(self, error: BaseException | None) -> BaseException | None:
        """Wait until all have unwound; what came of it, where `error` came out of the body."""
        assert self._lifetime is not None
        cancelled, of_body = parted(error, is_cancelled)
        of_nursery = None
        try:
            await self._lifetime.__aexit__(type(cancelled) if cancelled else None, cancelled, None)
        except BaseException as group:  # noqa: BLE001 - what is left of it is returned
            still_cancelled, of_nursery = parted(group, is_cancelled)
            cancelled = still_cancelled and (cancelled or still_cancelled)
        else:
            cancelled = None
        _, of_body = parted(of_body, is_echo_of(self._failure))
        raised = (self._failure, of_body, *members_of(of_nursery))
        errors = _without_repeated_exits([each for each in raised if each is not None])
        if len(errors) > 1:
            return BaseExceptionGroup("the operator and its block both failed", errors)
        return errors[0] if errors else cancelled

    async def _close_after(self, outcome: BaseException | None) -> BaseException | None:
        """Close the channels and the function; what has come of it all."""
        self.output.dead_letters.abandon()
        self.output.close()  # before the other end: whoever still receives must not take this for the end
        self._send.close()
        try:
            with trio.move_on_after(CLOSE_SECONDS, shield=True) as scope:
                await _call_if_there(self._function, "close")
            if scope.cancelled_caught:
                raise trio.TooSlowError(f"close() of the function did not end within {CLOSE_SECONDS:g} s")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 - the function's, whatever it is
            _, told = parted(outcome, is_cancelled)
            if told is None:
                return error
            self._invocation.notes.add(told, f"the function's close() raised too: {describe(error, 200)}")
        return outcome

    def _check_entered(self) -> None:
        if not self._is_entered:
            raise RuntimeError("enter the operator first: `async with AsyncWaitOperator(...) as operator:`")


def _without_repeated_exits(errors: list[BaseException]) -> list[BaseException]:
    """The errors, of which a `SystemExit` or `KeyboardInterrupt` that several tasks raised alike stays once."""
    kept: dict[Any, BaseException] = {}
    for error in errors:
        is_exit = isinstance(error, SystemExit | KeyboardInterrupt)
        kept.setdefault((type(error), repr(error.args)) if is_exit else id(error), error)
    return list(kept.values())


async def _call_if_there(function: object, name: str) -> None:
    method = getattr(function, name, None)
    if method is not None:
        await awaited(method)
