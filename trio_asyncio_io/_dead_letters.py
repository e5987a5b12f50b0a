"""The letters: the channel on which failed elements leave the operator."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import trio
from trio.lowlevel import enable_ki_protection

from ._core.dead_letter import DeadLetter
from ._core.ledger import Ledger
from ._core.queue import Entry

__all__ = ["DeadLetters"]

_log = logging.getLogger("trio_asyncio_io")


class DeadLetters(trio.abc.ReceiveChannel[DeadLetter]):
    """A receive channel of the elements that failed, with `on_error="dead_letter"`; otherwise it ends with the results.

    Iterate over it in a task beside the one that receives the results, or after that one has come to the end, inside
    the operator's block. It ends (`trio.EndOfChannel`) when the results do. A letter comes in the turn that its
    element's results would have had, and holds a place in the buffer until it is received, so a snapshot has those
    that were not.

    Close it to say that you want none: they are counted and dropped.

    With another `on_error` it has the letters of a restored snapshot. They do not count in the buffer then, so nobody
    has to receive them; the next snapshot has those that were not received.
    """

    def __init__(self, ledger: Ledger, on_room: Callable[[], None]) -> None:
        self._ledger = ledger
        self._on_room = on_room
        self._send, self._receive = trio.open_memory_channel[tuple[Entry, DeadLetter]](math.inf)
        self._was_read = False

    @enable_ki_protection
    async def receive(self) -> DeadLetter:
        """The next dead letter.

        Raises:
            trio.EndOfChannel: There will be no more.
            trio.ClosedResourceError: You closed the channel, or left the operator's block.

        Cancellation: nothing was received.
        """
        self._was_read = True
        return self._take(await self._receive.receive())

    @enable_ki_protection
    def receive_nowait(self) -> DeadLetter:
        """The next dead letter if there is one already.

        Raises:
            trio.WouldBlock: There is none yet.
            trio.EndOfChannel, trio.ClosedResourceError: As in `receive`.
        """
        self._was_read = True
        return self._take(self._receive.receive_nowait())

    @enable_ki_protection
    def close(self) -> None:
        """Say that no letters are wanted; those that are there are dropped."""
        try:
            while True:
                self.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            self._receive.close()

    @enable_ki_protection
    async def aclose(self) -> None:
        """The same as `close`, as an asynchronous resource has it."""
        self.close()
        await trio.lowlevel.checkpoint()

    def post(self, entry: Entry, letter: DeadLetter) -> None:
        """For the emitter: put a letter in; warn when they fill the buffer and nobody seems to read them."""
        try:
            self._send.send_nowait((entry, letter))
        except trio.BrokenResourceError:
            self._gone(entry)
            return
        is_holding = self._ledger.holds_letters and not self._was_read
        if is_holding and self._send.statistics().current_buffer_used == self._ledger.queue.bound:
            _log.warning(
                "%d dead letters fill the buffer, and nobody has received one yet: iterate over `dead_letters` in a "
                "task beside the results, or close it if you do not want them",
                self._ledger.queue.bound,
            )

    def end(self) -> None:
        """For the emitter: there will be no more."""
        self._send.close()

    def abandon(self) -> None:
        """For the operator: the block has been left; what was not received stays in the snapshot."""
        self._receive.close()

    def _take(self, parcel: tuple[Entry, DeadLetter]) -> DeadLetter:
        entry, letter = parcel
        self._gone(entry)
        return letter

    def _gone(self, entry: Entry) -> None:
        self._ledger.received_letter(entry)
        self._on_room()
