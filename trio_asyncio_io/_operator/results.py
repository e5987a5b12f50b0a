"""The output: the emitter, which sends it, and what the consumer reads, the results and the dead letters."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NoReturn, Self, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, enable_ki_protection

from .._account.statistics import Statistics
from .._account.verdict import Verdict
from .._core.dead_letter import DeadLetter
from .._core.ledger import Ledger
from .._core.parameters import AnyByDefault, E
from .._core.queue import Entry
from .._core.snapshot import Snapshot
from .tasks import Pace, Wakeup, read_clocks, uninterruptible

R = TypeVar("R")

_log = logging.getLogger("trio_asyncio_io")

# Run a checkpoint after this number of chunks without outputs. One with outputs makes the emitter wait anyway
CHUNKS_PER_PASS = 100
# From this number of entries on, leave emitting to the task: a chunk costs less than single outputs
LEAVING_AT_ONCE = 2

# A full buffer of dead letters stops the operator. If none has been received then for this time, none will be
SECONDS_UNREAD = 5.0

CLOSED = "the operator's block has been left, or the channel was closed: receive before that"


class Consumers:
    """The tasks that are waiting for an output in a memory channel.

    The channel carries no data: a send wakes a task, and closing it ends the output.

    Attributes:
        channel: The receiving end, where they wait.
        waiting: How many are waiting; a cancelled task may still be counted. Asking the channel takes longer.
        has_received: Woken when one of them has received an output.
        current_time: Reads Trio's clock.
    """

    def __init__(self) -> None:
        self._send, self.channel = trio.open_memory_channel[None](0)
        self.waiting = 0
        self.has_received = Wakeup()

    def open(self) -> None:
        """Look up Trio's clock when the operator starts."""
        self.current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks it up each time

    def wake(self, outputs: int) -> None:
        """Wake a waiting task for each of these outputs. A task that comes later takes one without waiting."""
        try:
            while outputs and self.waiting:
                self._send.send_nowait(None)
                self.waiting -= 1
                outputs -= 1
        except (trio.WouldBlock, trio.BrokenResourceError):
            self.waiting = 0  # the other tasks were cancelled, or the channel is closed

    def end(self) -> None:
        """Close the sending end, after the last output."""
        self._send.close()


@dataclass(eq=False)
class Emitter:
    """Lets completed entries leave, in chunks: everything that may be emitted leaves together. It decides nothing.

    The consumer takes its outputs from the entries that leave. So a chunk costs a wake-up, and an output costs little.

    A task emits the chunks. While few entries leave, `emit` does so in the task that completed an entry, which saves a
    scheduler pass.

    **Emits when** the order has an entry that may be emitted. **Backpressures when** a chunk has not been received.
    **Completes when** the input has ended and every accepted element has left.

    Args:
        ledger: Holds the entries.
        consumers: Woken when outputs leave.
        chunk: Upper limit of entries that leave, at least 1.
        dead_letters: Receives the dead letters.
        has_room: Woken when an entry without outputs has made room in the buffer.

    Attributes:
        has_work: The emitter's task waits for it. Meanwhile, `emit` emits.
    """

    ledger: Ledger
    consumers: Consumers
    chunk: int
    dead_letters: DeadLetters
    has_room: Wakeup
    has_work: Wakeup = field(default_factory=Wakeup, init=False)

    def emit(self, now: float | None = None) -> None:
        """Emit what may be emitted if the consumer keeps up. Otherwise, and at the end, wake the task.

        While the task itself emits, this has no effect. None: read the clock, if necessary.
        """
        if self.has_work.is_awaited:
            ledger = self.ledger
            has_more = ledger.order.has_completed()
            if has_more and len(ledger.leaving) < LEAVING_AT_ONCE:
                has_more = self._emit_chunk(trio.current_time() if now is None else now)
            if has_more or (ledger.input_ended and ledger.is_drained()):
                self.has_work.wake()

    @enable_ki_protection
    async def run(self) -> None:
        """Emit until the input has ended and everything has left, and then close the channel.

        Cancellation: entries that have not left stay in the order. The channel stays open, because a consumer would
        take its end for the end of the output.
        """
        try:
            await self._emit_all()
        finally:
            # A function may ignore its cancellation. Its worker must not start another call afterwards
            self.ledger.stop_starting()
        self.consumers.end()
        self.dead_letters.end()

    async def _emit_all(self) -> None:
        ledger, pace = self.ledger, Pace(CHUNKS_PER_PASS)
        while True:
            while ledger.order.has_completed():
                while len(ledger.leaving) >= self.chunk:
                    await self.consumers.has_received.wait()
                self._emit_chunk(trio.current_time())
                await pace.step()
            if ledger.input_ended and ledger.is_drained():
                return
            await self.has_work.wait()

    def _emit_chunk(self, now: float) -> bool:
        """Let entries leave, and wake consumers that wait. Returns whether there may be more entries."""
        limit = self.chunk - len(self.ledger.leaving)
        polled = self.ledger.poll(now, limit)
        for entry in polled:
            if not entry.results:
                self._emit_nothing(entry)
            elif self.consumers.waiting:
                self.consumers.wake(len(entry.results))
        return len(polled) == limit

    def _emit_nothing(self, entry: Entry) -> None:
        is_dead_letter = self.ledger.dead_letter_of(entry) is not None
        if is_dead_letter:
            self.dead_letters.send(entry)
        if not (is_dead_letter and self.ledger.counts_dead_letters):
            self.has_room.wake()


@uninterruptible
class DeadLetters(AnyByDefault, trio.abc.ReceiveChannel[DeadLetter[E]], Generic[E]):
    """A receive channel of the elements that failed, with `on_error="dead_letter"`.

    Iterate over it inside the operator's block, in a task of its own beside the one that receives the results, or after
    the last result. It ends (`trio.EndOfChannel`) when the results end. A dead letter takes its element's place in the
    output order. It counts towards the buffer until it is received, and snapshots hold it until then.

    Close the channel if you do not want the dead letters: they are counted and dropped.

    With another `on_error`, the channel holds the dead letters of a restored snapshot. They do not count towards the
    buffer, so you need not receive them. The next snapshot holds those that you did not receive. If you receive until
    the end and `on_error="skip"` has dropped elements, a warning is logged.
    """

    def __init__(self, ledger: Ledger, has_room: Wakeup) -> None:
        self._ledger = ledger
        self._has_room = has_room
        self._send, self._receive = trio.open_memory_channel[Entry](math.inf)
        self._was_read = False

    async def receive(self) -> DeadLetter[E]:
        """Wait for the next dead letter and return it.

        Raises:
            trio.EndOfChannel: All dead letters have been received.
            trio.ClosedResourceError: You closed the channel, or left the operator's block.

        Cancellation: nothing was received.
        """
        self._was_read = True
        try:
            entry = await self._receive.receive()
        except trio.EndOfChannel:
            if skipped := self._ledger.counters.skipped:
                _log.warning('failed and skipped: %d. To receive them here, give on_error="dead_letter"', skipped)
            raise
        except trio.ClosedResourceError:
            raise trio.ClosedResourceError(CLOSED) from None
        return self._release(entry)

    def receive_nowait(self) -> DeadLetter[E]:
        """Return the next dead letter if it is available.

        Raises:
            trio.WouldBlock: It is not available yet.
            trio.EndOfChannel, trio.ClosedResourceError: As in `receive`.
        """
        self._was_read = True
        try:
            entry = self._receive.receive_nowait()
        except trio.ClosedResourceError:
            raise trio.ClosedResourceError(CLOSED) from None
        return self._release(entry)

    def close(self) -> None:
        """Drop the dead letters that are available, and all later ones."""
        try:
            while True:
                self.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            self._receive.close()

    async def aclose(self) -> None:
        """Do the same as `close`, and run a checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()

    def open(self, nursery: trio.Nursery) -> None:
        """For the operator: let the nursery own the task that warns."""
        self._nursery = nursery

    def send(self, entry: Entry) -> None:
        """For the emitter: send the dead letter of this entry. Warns when unread dead letters fill the buffer."""
        try:
            self._send.send_nowait(entry)
        except trio.BrokenResourceError:
            self._release(entry)
            return
        is_unread = self._ledger.counts_dead_letters and not self._was_read
        if is_unread and self._send.statistics().current_buffer_used == self._ledger.bound:
            self._nursery.start_soon(self._warn_if_unread, name="trio_asyncio_io dead letters")

    async def _warn_if_unread(self) -> None:
        await trio.sleep(SECONDS_UNREAD)  # the task that receives them may not have run yet
        if not (self._was_read or (self._ledger.input_ended and self._ledger.is_drained())):
            _log.warning(
                "%d dead letters fill the buffer and none has been received for %g s: iterate over `dead_letters` in a "
                "task beside the results, or close it if you do not want them",
                self._ledger.bound,
                SECONDS_UNREAD,
            )

    def end(self) -> None:
        """For the emitter: end the channel."""
        self._send.close()

    def abandon(self) -> None:
        """For the operator: close the channel. Dead letters that were not received stay in the snapshot."""
        self._receive.close()

    def _release(self, entry: Entry) -> DeadLetter[E]:
        dead_letter = self._ledger.receive_dead_letter(entry)
        self._has_room.wake()
        return dead_letter


@uninterruptible
class Results(AnyByDefault, trio.abc.ReceiveChannel[R], Generic[R, E]):
    """A receive channel of the operator's outputs. Its type is `Results[output, element]`, or `Results[output]`.

    Iterate over it, or call `await receive()`. It ends (`trio.EndOfChannel`) when the input has ended and every output
    has been received. Several tasks may receive from it; each output goes to one of them.

    `receive` checks for cancellation in every call, but it lets other tasks run only when it has to wait, at the latest
    after the outputs of four times `capacity` elements.

    Attributes:
        dead_letters: The channel of the elements that failed, with `on_error="dead_letter"`.
    """

    def __init__(self, consumers: Consumers, ledger: Ledger, has_room: Wakeup, on_close: Callable[[], None]) -> None:
        self.dead_letters: DeadLetters[E] = DeadLetters(ledger, has_room)
        self._consumers = consumers
        self._ledger = ledger
        self._leaving = ledger.leaving  # what may be received: nothing after `close`
        self._has_room = has_room
        self._has_received = consumers.has_received
        self._on_close = on_close

    def __aiter__(self) -> Self:
        return self

    if not TYPE_CHECKING:  # for a checker, the channel would be an iterable of any type

        def __iter__(self) -> NoReturn:
            raise TypeError("receive the results with `async for result in results:`, not with `for` or `list`")

    async def __anext__(self) -> R:
        has_waited = not self._leaving
        if not has_waited:
            await checkpoint_if_cancelled()
        while not self._leaving:  # another consumer may be faster
            self._consumers.waiting += 1
            try:
                await self._consumers.channel.receive()
            except trio.EndOfChannel:
                raise StopAsyncIteration from None
            except trio.ClosedResourceError:
                raise trio.ClosedResourceError(CLOSED) from None
        return self._receive(has_waited)

    async def receive(self) -> R:
        """Wait for the next output and return it.

        Raises:
            trio.EndOfChannel: All outputs have been received.
            trio.ClosedResourceError: You closed the channel, or left the operator's block.

        Cancellation: nothing was received.
        """
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise trio.EndOfChannel from None

    def receive_nowait(self) -> R:
        """Return the next output if it is available.

        Raises:
            trio.WouldBlock: It is not available yet.
            trio.EndOfChannel, trio.ClosedResourceError: As in `receive`.
        """
        while not self._leaving:
            try:
                self._consumers.channel.receive_nowait()
            except trio.ClosedResourceError:
                raise trio.ClosedResourceError(CLOSED) from None
        return self._receive()

    def close(self) -> None:
        """Receive nothing more.

        The source is not read any further, and `put` raises `trio.BrokenResourceError`. No more invocations start.
        Those that run are cancelled when the operator's block ends.
        """
        self._consumers.channel.close()
        self._leaving = deque()
        self._on_close()

    async def aclose(self) -> None:
        """Do the same as `close`, and run a checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()

    def snapshot(self) -> Snapshot[E, R]:
        """Every element accepted and not yet received; see `Snapshot`. Works at any moment, without waiting."""
        return self._ledger.snapshot()

    def statistics(self) -> Statistics:
        """The operator's current numbers. Works at any moment, without waiting."""
        return self._ledger.statistics()

    def explain(self) -> Verdict:
        """What limits the operator, and what to change. Works while it runs, in the same thread, and after the block.

        Returns:
            A `Verdict` to print. Its sentences have the numbers on which it rests, by Little's law.

        Example:
            async with ordered_wait(urls, fetch, timeout=5.0) as results:
                async for result in results:
                    ...
            print(results.explain())
        """
        return self._ledger.verdict(read_clocks)

    def _receive(self, has_waited: bool = False) -> R:  # noqa: FBT001, FBT002 - a keyword costs time for each output
        ledger = self._ledger
        output = ledger.receive()
        if self._has_received.is_awaited:
            self._has_received.wake()
        if self._has_room.is_awaited and ledger.may_refill():
            self._has_room.wake()
        if has_waited:
            if self._leaving:
                ledger.consumer_has_waited(self._consumers.current_time())
        elif not self._leaving:
            ledger.consumer_has_caught_up(self._consumers.current_time())
        return output  # type: ignore[no-any-return]
