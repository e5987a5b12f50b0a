"""The ledger: the state of every accepted element, and the operator's counters.

    backlog ──accept──▶ queue ──start──▶ running ──finish──▶ completed ──poll──▶ leaving ──receive──▶ gone
    (held)              (jobs)

The ledger is the synchronous core of the operator. It never awaits and has no clock. The tasks call one method per
step, and nothing else writes to the ledger, so both limits, the snapshot and the statistics are always consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .dead_letter import DeadLetter
from .elements import Watermark, is_inserted
from .inventory import Inventory
from .invocations import Invocations
from .queue import Entry, StreamElementQueue
from .snapshot import Snapshot
from .statistics import Statistics
from .totals import Totals
from .verdict import Verdict, judge

__all__ = ["Ledger"]


class Ledger(Invocations):
    """The state of one operator: its invocations, and the elements that it holds before and after them.

    Args:
        queue: Decides the output order. Its bound is the buffer.
        restored: The snapshot to start with, or None.
        capacity: Upper limit of invocations running at once; None: the buffer. Only the verdict depends on it.
        counts_dead_letters: Whether a dead letter counts towards the buffer until it is received. False if nobody is
            expected to receive dead letters, which are then those of a restored snapshot. Snapshots hold them anyway.

    Attributes:
        queue: As given.
        backlog: (element, results or None) of elements that were taken from the source but are not in the queue yet:
            restored elements, or the element that the feeder holds.
        input_ended: Whether no more elements will be accepted.
        leaving: By sequence, the entries that have left the queue and are not received yet.
        counts_dead_letters: As given.

    The other attributes are those of `Invocations`. All are read-only outside this class.
    """

    def __init__(
        self,
        queue: StreamElementQueue,
        restored: Snapshot | None = None,
        *,
        capacity: int | None = None,
        counts_dead_letters: bool = True,
    ) -> None:
        super().__init__(queue, capacity or queue.bound)
        self.input_ended = False
        self.counts_dead_letters = counts_dead_letters
        self._inventory = Inventory(queue, Snapshot() if restored is None else restored)
        self.backlog = self._inventory.backlog
        self.leaving = self._inventory.leaving
        self._dead_letters = self._inventory.dead_letters
        self._ready_since = 0.0  # since then, outputs have waited for the consumer, if there are any
        self._watermarks = 0
        self._low_water = queue.bound - 1

    def begin(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self.flow.begin(clocks)

    def end(self, clocks: tuple[float, float]) -> None:
        """The operator has ended."""
        self.flow.end(clocks)

    # Input

    def accept(self, element: Any, now: float, results: Sequence[Any] | None = None) -> Entry | None:
        """Put an element into the queue. Returns None if the buffer is full."""
        counters, bound = self.counters, self.queue.bound
        if counters.buffered >= bound or self._watermarks >= bound:
            held = self._watermarks if isinstance(element, Watermark) else counters.buffered
            if held >= bound:
                return None
        entry = self.queue.try_put(element)
        if entry is None:
            raise AssertionError("the queue holds more elements than the ledger has counted")
        if entry.results is not None:
            self._watermarks += 1
            self._inventory.inserted += is_inserted(element)
            return entry
        entry.since = now
        counters.buffered += 1
        if counters.buffered > counters.peak_buffered:
            counters.peak_buffered = counters.buffered
        if results is not None:
            entry.complete(self._inventory.outputs_of(entry, results))
        elif self._has_keys and not self.queue.may_start(entry):
            self.flow.lanes.begin(now)
        elif self._may_start:
            self.jobs.append(entry)
        return entry

    def hold(self, element: Any) -> None:
        """Keep an element that was taken from the source but not accepted."""
        self.backlog.append((element, None))

    def accept_held(self, now: float, accept: Callable[..., Entry | None]) -> Entry | None:
        """Accept the oldest element of the backlog, with a function like `accept`. None if the buffer is full."""
        element, results = self.backlog[0]
        entry = accept(element, now, results)
        if entry is not None:
            self.backlog.popleft()
        return entry

    def refill_in_bursts(self) -> None:
        """Let `receive` report room for a sixteenth of the buffer instead of room for one record."""
        self._low_water = self.queue.bound - max(1, self.queue.bound // 16)

    def has_room(self) -> bool:
        """Whether another record would be accepted."""
        return self.counters.buffered < self.queue.bound

    def end_input(self, now: float) -> None:
        """Record that no more elements will be accepted."""
        if not self.input_ended:
            self.input_ended = True
            self.flow.end_input(now, has_jobs=bool(self.jobs))

    # Invocations; the other steps are those of the base class

    def has_nothing_to_start(self) -> bool:
        """Whether no invocation can start before another one has ended."""
        return self.input_ended and not self.jobs and not self.backlog

    def dead_letter(self, entry: Entry, error: Exception, now: float) -> None:
        """Turn a running record into a dead letter. It will have no outputs."""
        self.counters.dead_lettered += 1
        self._dead_letters[entry.sequence] = DeadLetter(entry.element, error, entry.attempts, now - entry.since)

    # Output

    def poll(self, now: float) -> Entry:
        """Remove the next entry from the queue. An entry without outputs is gone at once."""
        entry = self.queue.poll()
        if not entry.is_watermark:
            head_wait = now - entry.since
            self.counters.head_wait_seconds += head_wait
            if entry.samples is not None:
                entry.samples.leave(head_wait)
        if entry.results:
            leaving = self.leaving
            if not leaving:
                self._ready_since = now
            leaving[entry.sequence] = entry
            return entry
        is_dead_letter = entry.sequence in self._dead_letters
        if is_dead_letter:
            if not self.leaving:
                self._ready_since = now
            self.leaving[entry.sequence] = entry
        if not (is_dead_letter and self.counts_dead_letters):
            self.counters.buffered -= 1
        return entry

    def receive(self, entry: Entry) -> bool:
        """Record that the consumer has received the entry's next output.

        Returns:
            Whether there is room to refill the buffer. Room for any element suffices if no job waits.
        """
        entry.received += 1
        counters = self.counters
        if not entry.is_watermark:
            counters.emitted += 1
        if entry.received < len(entry.results or ()):
            return False
        del self.leaving[entry.sequence]
        if entry.is_watermark:
            self._watermarks -= 1
            return True
        counters.buffered -= 1
        return counters.buffered <= self._low_water or not self.jobs

    def catch_up(self, now: float) -> None:
        """Record that the consumer has received all outputs, without waiting for them."""
        self.flow.consumer_seconds += now - self._ready_since

    def take_over(self, now: float) -> None:
        """Record that the consumer has waited, so that the outputs which are left wait for it only from now on."""
        self._ready_since = now

    def dead_letter_of(self, entry: Entry) -> DeadLetter | None:
        """The entry's dead letter, or None."""
        return self._dead_letters.get(entry.sequence)

    def receive_dead_letter(self, entry: Entry) -> None:
        """Record that the entry's dead letter has been received or dropped."""
        del self._dead_letters[entry.sequence]
        del self.leaving[entry.sequence]
        if self.counts_dead_letters:
            self.counters.buffered -= 1

    def is_drained(self) -> bool:
        """Whether neither the backlog nor the queue holds an element."""
        return not self.backlog and self.queue.is_empty()

    # State

    def snapshot(self) -> Snapshot:
        """Every element accepted and not yet received, in arrival order."""
        return self._inventory.snapshot()

    def verdict(self, read_clocks: Callable[[], tuple[float, float]]) -> Verdict:
        """What limits the operator. `read_clocks` returns the time and the CPU time of its thread."""
        has_outputs = any(entry.results for entry in self.leaving.values())
        return judge(self.flow.evidence(read_clocks, ready_since=self._ready_since if has_outputs else None))

    def totals(self, read_clocks: Callable[[], tuple[float, float]]) -> Totals:
        """Where the time went, as sums. `read_clocks` is as in `verdict`."""
        return self.flow.totals(read_clocks)

    def statistics(self) -> Statistics:
        """The current numbers."""
        return self.counters.freeze(self.flow.histograms())
