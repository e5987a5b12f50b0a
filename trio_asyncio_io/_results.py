"""The results: the consumer's end of the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar

import trio
from trio.lowlevel import checkpoint_if_cancelled, enable_ki_protection

from ._core.ledger import Ledger
from ._core.queue import Entry
from ._core.snapshot import Snapshot
from ._core.statistics import Statistics
from ._dead_letters import DeadLetters

__all__ = ["Results"]

R = TypeVar("R")


class Results(trio.abc.ReceiveChannel[R], Generic[R]):
    """A receive channel of what comes out of the operator.

    Iterate over it, or `await receive()`. It ends (`trio.EndOfChannel`) once the input has ended and all
    of it is out. Several tasks may receive from it; each output goes to one of them.

    `receive` checks for cancellation on every call, and lets other tasks run when it has to wait, which is
    after at most four times `capacity` outputs: a turn of the scheduler for each would cost as much as all the rest of
    an element's way together.

    Attributes:
        dead_letters: The channel of the elements that failed, with `on_error="dead_letter"`.
    """

    def __init__(
        self,
        channel: trio.MemoryReceiveChannel[Entry],
        dead_letters: DeadLetters,
        ledger: Ledger,
        on_room: Callable[[], None],
        on_close: Callable[[], None],
    ) -> None:
        self._channel = channel
        self.dead_letters = dead_letters
        self._ledger = ledger
        self._on_room = on_room
        self._on_close = on_close

    def __aiter__(self) -> Self:
        return self

    @enable_ki_protection
    async def __anext__(self) -> R:
        # What the base class does, without a second coroutine for each output.
        await checkpoint_if_cancelled()
        try:
            entry = self._channel.receive_nowait()
        except trio.WouldBlock:
            pass
        except trio.EndOfChannel:
            raise StopAsyncIteration from None
        else:
            output = entry.next_output()  # `_take`, less the call
            if self._ledger.received(entry):
                self._on_room()
            return output  # type: ignore[no-any-return]
        try:
            return await self._wait()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    @enable_ki_protection
    async def receive(self) -> R:
        """The next output.

        Raises:
            trio.EndOfChannel: Everything is out.
            trio.ClosedResourceError: You closed the channel, or left the operator's block.

        Cancellation: nothing was received.
        """
        await checkpoint_if_cancelled()
        try:
            return self.receive_nowait()
        except trio.WouldBlock:
            pass
        return await self._wait()  # not above: an error of this wait would seem to come of that one

    @enable_ki_protection
    def receive_nowait(self) -> R:
        """The next output if there is one already.

        Raises:
            trio.WouldBlock: There is none yet.
            trio.EndOfChannel, trio.ClosedResourceError: As in `receive`.
        """
        return self._take(self._channel.receive_nowait())

    async def _wait(self) -> R:
        return self._take(await self._channel.receive())

    def _take(self, entry: Entry) -> R:
        output = entry.next_output()
        if self._ledger.received(entry):
            self._on_room()
        return output  # type: ignore[no-any-return]

    @enable_ki_protection
    def close(self) -> None:
        """Say that no more outputs are wanted.

        The source is not read any more, and whoever puts gets `trio.BrokenResourceError`. No invocation is
        started any more; those that run are cancelled when the operator's block is left.
        """
        self._channel.close()
        self._on_close()

    @enable_ki_protection
    async def aclose(self) -> None:
        """The same as `close`, as an asynchronous resource has it."""
        self.close()
        await trio.lowlevel.checkpoint()

    @enable_ki_protection
    def snapshot(self) -> Snapshot:
        """Every element accepted and not received yet; see `Snapshot`. Takes effect at once, at any moment."""
        return self._ledger.snapshot()

    @enable_ki_protection
    def statistics(self) -> Statistics:
        """The operator's numbers as they stand now."""
        return self._ledger.statistics()
