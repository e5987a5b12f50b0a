"""The results: the consumer's end of the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NoReturn, Self, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, enable_ki_protection

from ._core.ledger import Ledger
from ._core.queue import Entry
from ._core.snapshot import Snapshot
from ._core.statistics import Statistics
from ._core.verdict import Verdict
from ._dead_letters import DeadLetters
from ._tasks import Wakeup, read_clocks

__all__ = ["Results"]

R = TypeVar("R")


class Results(trio.abc.ReceiveChannel[R], Generic[R]):
    """A receive channel of the operator's outputs.

    Iterate over it, or call `await receive()`. It ends (`trio.EndOfChannel`) when the input has ended and every output
    has been received. Several tasks may receive from it; each output goes to one of them.

    `receive` checks for cancellation in every call, but it lets other tasks run only when it has to wait, at the latest
    after four times `capacity` outputs. A full checkpoint for each output would double the cost of an element.

    Attributes:
        dead_letters: The channel of the elements that failed, with `on_error="dead_letter"`.
    """

    def __init__(
        self,
        channel: trio.MemoryReceiveChannel[Entry],
        dead_letters: DeadLetters,
        ledger: Ledger,
        has_room: Wakeup,
        on_close: Callable[[], None],
    ) -> None:
        self._channel = channel
        self.dead_letters = dead_letters
        self._ledger = ledger
        self._has_room = has_room
        self._on_close = on_close

    def __aiter__(self) -> Self:
        return self

    def __iter__(self) -> NoReturn:
        raise TypeError("receive the results with `async for result in results:`, not with `for` or `list`")

    @enable_ki_protection
    async def __anext__(self) -> R:
        # The base class would call `receive`, and so run a second coroutine for each output
        ledger = self._ledger
        if ledger.leaving:  # otherwise the channel is empty
            await checkpoint_if_cancelled()
            try:
                entry = self._channel.receive_nowait()
            except trio.WouldBlock:
                pass
            except trio.EndOfChannel:
                raise StopAsyncIteration from None
            else:
                output = entry.next_output()  # `_received` without its call
                if ledger.receive(entry) and self._has_room.is_awaited:
                    self._has_room.wake()
                if not ledger.leaving:
                    ledger.catch_up(trio.current_time())
                return output  # type: ignore[no-any-return]
        try:
            entry = await self._channel.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        return self._received_after_wait(entry)

    @enable_ki_protection
    async def receive(self) -> R:
        """Wait for the next output and return it.

        Raises:
            trio.EndOfChannel: All outputs have been received.
            trio.ClosedResourceError: You closed the channel, or left the operator's block.

        Cancellation: nothing was received.
        """
        if self._ledger.leaving:  # otherwise the channel is empty
            await checkpoint_if_cancelled()
            try:
                return self.receive_nowait()
            except trio.WouldBlock:
                pass
        entry = await self._channel.receive()  # outside: no error of it has WouldBlock as its context
        return self._received_after_wait(entry)

    @enable_ki_protection
    def receive_nowait(self) -> R:
        """Return the next output if it is available.

        Raises:
            trio.WouldBlock: It is not available yet.
            trio.EndOfChannel, trio.ClosedResourceError: As in `receive`.
        """
        output = self._received(self._channel.receive_nowait())
        if not self._ledger.leaving:
            self._ledger.catch_up(trio.current_time())
        return output

    @enable_ki_protection
    def close(self) -> None:
        """Receive nothing more.

        The source is not read any further, and `put` raises `trio.BrokenResourceError`. No more invocations start.
        Those that run are cancelled when the operator's block ends.
        """
        self._channel.close()
        self._on_close()

    @enable_ki_protection
    async def aclose(self) -> None:
        """Do the same as `close`, and run a checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()

    @enable_ki_protection
    def snapshot(self) -> Snapshot:
        """Every element accepted and not yet received; see `Snapshot`. Works at any moment, without waiting."""
        return self._ledger.snapshot()

    @enable_ki_protection
    def statistics(self) -> Statistics:
        """The operator's current numbers. Works at any moment, without waiting."""
        return self._ledger.statistics()

    @enable_ki_protection
    def explain(self) -> Verdict:
        """What limits the operator, and what to change. Works while it runs, in the same thread, and after the block.

        Returns:
            A `Verdict`. Print it: its sentences have the numbers on which it rests, by Little's law.

        Example:
            async with ordered_wait(urls, fetch, timeout=5.0) as results:
                async for result in results:
                    ...
            print(results.explain())
        """
        return self._ledger.verdict(read_clocks)

    def _received_after_wait(self, entry: Entry) -> R:
        output = self._received(entry)
        if self._ledger.leaving:  # further outputs came meanwhile
            self._ledger.take_over(trio.current_time())
        return output

    def _received(self, entry: Entry) -> R:
        output = entry.next_output()
        if self._ledger.receive(entry):
            self._has_room.wake()
        return output  # type: ignore[no-any-return]
