"""The emitter: the only task that sends downstream."""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.lowlevel import enable_ki_protection

from ._core.ledger import Ledger
from ._core.queue import Entry
from ._dead_letters import DeadLetters
from ._pace import Pace

__all__ = ["Emitter"]

# For records without outputs; the channel stops the emitter otherwise
ENTRIES_PER_PASS = 1_000


class Emitter:
    """Sends what the queue gives, in the order in which it gives it; it decides nothing itself.

    **Emits when** the queue has an entry whose turn it is. **Backpressures when** the channel is full.
    **Completes when** the input has ended and everything that was accepted has been sent.

    Args:
        ledger: Where the entries stand.
        channel: Takes the entry, once for each of its outputs.
        letters: Takes the dead letters.
        on_room: Called when an entry is gone that had no outputs, so that nobody will receive any.
    """

    def __init__(
        self,
        ledger: Ledger,
        channel: trio.MemorySendChannel[Entry],
        letters: DeadLetters,
        on_room: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._channel = channel
        self._letters = letters
        self._on_room = on_room
        self._bed = trio.lowlevel.ParkingLot()
        self._is_asleep = False

    def wake(self) -> None:
        """Something may have become ready to go out."""
        if self._is_asleep and (self._ledger.queue.has_completed() or self._is_finished()):
            self._is_asleep = False
            self._bed.unpark()

    def end_input(self) -> None:
        """Nothing more will be accepted: end once everything is out."""
        self._ledger.input_ended = True
        self.wake()

    @enable_ki_protection
    async def run(self) -> None:
        """Emit until the input has ended and everything is out; then close the channel.

        Cancellation: what was not sent stays in the ledger, and the channel stays open, so that no reader
        takes the end of a cancelled run for the end of the stream.
        """
        try:
            await self._emit_all()
        except trio.BrokenResourceError:
            pass  # the consumer closed its end, and has told the feeder itself
        finally:
            self._ledger.close()  # what cannot go out any more need not start: a worker may not notice that it stops
        self._channel.close()
        self._letters.end()

    async def _emit_all(self) -> None:
        queue, send_nowait = self._ledger.queue, self._channel.send_nowait
        pace = Pace(ENTRIES_PER_PASS)
        while not self._is_finished():
            now = trio.current_time()
            while queue.has_completed():
                entry = self._ledger.poll(now)
                if not entry.results:
                    self._emit_nothing(entry)
                    await pace.step()
                for _ in entry.results or ():
                    try:
                        send_nowait(entry)
                    except trio.WouldBlock:
                        await self._channel.send(entry)
                        now = trio.current_time()
            if not self._is_finished():
                self._is_asleep = True
                await self._bed.park()

    def _emit_nothing(self, entry: Entry) -> None:
        letter = self._ledger.letter_of(entry)
        if letter is not None:
            self._letters.post(entry, letter)
        if letter is None or not self._ledger.holds_letters:
            self._on_room()

    def _is_finished(self) -> bool:
        return self._ledger.input_ended and self._ledger.is_drained()
