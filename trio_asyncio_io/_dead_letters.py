"""The channel of dead letters."""

from __future__ import annotations

import logging
import math

import trio
from trio.lowlevel import enable_ki_protection

from ._core.dead_letter import DeadLetter
from ._core.ledger import Ledger
from ._core.queue import Entry
from ._tasks import Wakeup

__all__ = ["DeadLetters"]

_log = logging.getLogger("trio_asyncio_io")


class DeadLetters(trio.abc.ReceiveChannel[DeadLetter]):
    """A receive channel of the elements that failed, with `on_error="dead_letter"`.

    Iterate over it inside the operator's block, in a task of its own beside the one that receives the results, or after
    the last result. It ends (`trio.EndOfChannel`) when the results end. A dead letter takes its element's place in the
    output order. It counts towards the buffer until it is received, and snapshots hold it until then.

    Close the channel if you do not want the dead letters: they are counted and dropped.

    With another `on_error`, the channel holds the dead letters of a restored snapshot. They do not count towards the
    buffer, so you need not receive them. The next snapshot holds those that you did not receive.
    """

    def __init__(self, ledger: Ledger, has_room: Wakeup) -> None:
        self._ledger = ledger
        self._has_room = has_room
        self._send, self._receive = trio.open_memory_channel[tuple[Entry, DeadLetter]](math.inf)
        self._was_read = False

    @enable_ki_protection
    async def receive(self) -> DeadLetter:
        """Wait for the next dead letter and return it.

        Raises:
            trio.EndOfChannel: All dead letters have been received.
            trio.ClosedResourceError: You closed the channel, or left the operator's block.

        Cancellation: nothing was received.
        """
        self._was_read = True
        return self._received(*await self._receive.receive())

    @enable_ki_protection
    def receive_nowait(self) -> DeadLetter:
        """Return the next dead letter if it is available.

        Raises:
            trio.WouldBlock: It is not available yet.
            trio.EndOfChannel, trio.ClosedResourceError: As in `receive`.
        """
        self._was_read = True
        return self._received(*self._receive.receive_nowait())

    @enable_ki_protection
    def close(self) -> None:
        """Drop the dead letters that are available, and all later ones."""
        try:
            while True:
                self.receive_nowait()
        except (trio.WouldBlock, trio.EndOfChannel, trio.ClosedResourceError):
            self._receive.close()

    @enable_ki_protection
    async def aclose(self) -> None:
        """Do the same as `close`, and run a checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()

    def send(self, entry: Entry, dead_letter: DeadLetter) -> None:
        """For the emitter: send a dead letter. Warns when unread dead letters fill the buffer."""
        try:
            self._send.send_nowait((entry, dead_letter))
        except trio.BrokenResourceError:
            self._release(entry)
            return
        bound = self._ledger.queue.bound
        is_unread = self._ledger.counts_dead_letters and not self._was_read
        if is_unread and self._send.statistics().current_buffer_used == bound:
            _log.warning(
                "%d dead letters fill the buffer and none has been received: iterate over `dead_letters` in a task "
                "beside the results, or close it if you do not want them",
                bound,
            )

    def end(self) -> None:
        """For the emitter: end the channel."""
        self._send.close()

    def abandon(self) -> None:
        """For the operator: close the channel. Dead letters that were not received stay in the snapshot."""
        self._receive.close()

    def _received(self, entry: Entry, dead_letter: DeadLetter) -> DeadLetter:
        self._release(entry)
        return dead_letter

    def _release(self, entry: Entry) -> None:
        self._ledger.receive_dead_letter(entry)
        self._has_room.wake()
