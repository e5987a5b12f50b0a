"""The emitter: the only object that sends outputs to the consumer."""

from __future__ import annotations

import trio
from trio.lowlevel import enable_ki_protection

from ._core.ledger import Ledger
from ._core.queue import Entry
from ._results import DeadLetters
from ._tasks import Pace, Wakeup

__all__ = ["Emitter"]

# Entries without outputs between two checkpoints. For outputs, the channel suspends the emitter
ENTRIES_PER_PASS = 1_000
# With more entries that the consumer has not received, a burst of the task costs less than single outputs
LEAVING_AT_ONCE = 2


class Emitter:
    """Sends entries in the order in which the queue returns them. It decides nothing itself.

    `emit` sends a single output in the task that completed it, which saves a scheduler pass. A task of its own sends
    everything that takes longer: many entries, several outputs of one entry, or outputs for a full channel.

    **Emits when** the queue has an entry that may be emitted. **Backpressures when** the channel is full.
    **Completes when** the input has ended and every accepted element has been sent.

    Args:
        ledger: Holds the queue.
        channel: Receives each entry once per output.
        dead_letters: Receives the dead letters.
        has_room: Woken when an entry without outputs has made room in the buffer.

    Attributes:
        has_work: Awaited by the emitter's task while there is nothing to emit. Meanwhile, call `emit` for an entry.
    """

    def __init__(
        self,
        ledger: Ledger,
        channel: trio.MemorySendChannel[Entry],
        dead_letters: DeadLetters,
        has_room: Wakeup,
    ) -> None:
        self._ledger = ledger
        self._channel = channel
        self._dead_letters = dead_letters
        self._has_room = has_room
        self._unsent: Entry | None = None  # polled by `emit`, left to the task
        self.has_work = Wakeup()

    def emit(self, now: float | None = None) -> None:
        """Emit the next entry, if there is one and the consumer keeps up. Wakes the task for the rest, and at the end.

        While the task itself emits, this has no effect, so the order remains. None: read the clock, if necessary.
        """
        if self.has_work.is_awaited:
            queue = self._ledger.queue
            has_more = queue.has_completed()
            if has_more and len(self._ledger.leaving) < LEAVING_AT_ONCE:
                self._emit_at_once(self._ledger.poll(trio.current_time() if now is None else now))
                has_more = self._unsent is not None or queue.has_completed()
            if has_more or self._is_finished():
                self.has_work.wake()

    @enable_ki_protection
    async def run(self) -> None:
        """Emit until the input has ended and everything has been sent, and then close the channel.

        Cancellation: entries that were not sent stay in the ledger. The channel stays open, because a consumer would
        take its end for the end of the stream.
        """
        try:
            await self._emit_all()
        except trio.BrokenResourceError:
            pass  # the consumer closed its end, which has also stopped the feeder
        finally:
            # A function may ignore its cancellation. Its worker must not start another call afterwards
            self._ledger.stop_starting()
        self._channel.close()
        self._dead_letters.end()

    async def _emit_all(self) -> None:
        queue, poll, send_nowait = self._ledger.queue, self._ledger.poll, self._channel.send_nowait
        pace = Pace(ENTRIES_PER_PASS)
        while not self._is_finished():
            now = trio.current_time()
            while self._unsent is not None or queue.has_completed():
                entry, self._unsent = self._unsent or poll(now), None
                if not entry.results:
                    self._emit_nothing(entry)
                    await pace.step()
                    now = trio.current_time()
                for _ in entry.results or ():
                    try:
                        send_nowait(entry)
                    except trio.WouldBlock:
                        await self._channel.send(entry)
                        now = trio.current_time()
            if not self._is_finished():
                await self.has_work.wait()

    def _emit_at_once(self, entry: Entry) -> None:
        if entry.results is None or len(entry.results) != 1:
            self._unsent = entry
            return
        try:
            self._channel.send_nowait(entry)
        except (trio.WouldBlock, trio.BrokenResourceError):
            self._unsent = entry

    def _emit_nothing(self, entry: Entry) -> None:
        dead_letter = self._ledger.dead_letter_of(entry)
        if dead_letter is not None:
            self._dead_letters.send(entry, dead_letter)
        if dead_letter is None or not self._ledger.counts_dead_letters:
            self._has_room.wake()

    def _is_finished(self) -> bool:
        return self._ledger.input_ended and self._unsent is None and self._ledger.is_drained()
