"""The ledger: where each accepted element stands, and how many of each there are.

    backlog ──accept──▶ queue ──start──▶ running ──finish──▶ done ──poll──▶ leaving ──received──▶ gone
    (in hand)           (jobs)

It is the synchronous core of the operator: no await, no Trio, no clock of its own. The tasks around it call
one method per step, so both limits, the snapshot and the statistics are kept in this one place.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from .dead_letter import DeadLetter
from .elements import Watermark, is_inserted
from .queue import Entry, StreamElementQueue
from .snapshot import Snapshot, SnapshotElement
from .statistics import Counters, Statistics

__all__ = ["Ledger"]

_by_sequence = attrgetter("sequence")


class Ledger:
    """The state of one operator.

    Args:
        queue: Decides the order. Its bound is the buffer.
        restored: What to begin with, or None.

    Attributes:
        jobs: Records whose invocation may start, in the order in which they will.
        backlog: (element, results or None) taken from upstream and not in the queue yet: what is being
            restored, or the one element in the feeder's hand.
        counters: The numbers behind `Statistics`.
        input_ended: Whether nothing more will be accepted.
        holds_letters: Whether a dead letter counts in the buffer until it is received. False where nobody is expected
            to receive those of a restored snapshot. The next snapshot has them in either case.
    """

    def __init__(self, queue: StreamElementQueue, restored: Snapshot | None = None) -> None:
        restored = Snapshot() if restored is None else restored
        self.queue = queue
        self.jobs: deque[Entry] = deque()
        self.backlog: deque[tuple[Any, Sequence[Any] | None]] = deque(
            (element.element, element.results) for element in restored.elements
        )
        self._taken_before = restored.taken - len(self.backlog)
        self._inserted = -self._inserted_in_backlog()  # those were not counted when they were taken
        self.counters = Counters()
        self.input_ended = False
        self.holds_letters = True
        self._leaving: dict[int, Entry] = {}
        self._letters: dict[int, DeadLetter] = {}
        self._watermarks = 0
        self._is_closed = False

    def accept(self, element: Any, now: float, results: Sequence[Any] | None = None) -> Entry | None:
        """Take the element in, or return None when the buffer has no room for it."""
        counters = self.counters
        if isinstance(element, Watermark):
            if self._watermarks >= self.queue.bound:
                return None
        elif counters.buffered >= self.queue.bound:
            return None
        entry = self.queue.try_put(element)
        if entry is None:
            raise AssertionError("the queue held more than the ledger knew")
        if entry.results is not None:
            self._watermarks += 1
            self._inserted += is_inserted(element)
            return entry
        entry.since = now
        counters.buffered += 1
        if counters.buffered > counters.peak_buffered:
            counters.peak_buffered = counters.buffered
        if results is not None:
            entry.complete(self._without_letter(entry, results))
        elif self.queue.may_start(entry) and not self._is_closed:
            self.jobs.append(entry)
        return entry

    def close(self) -> None:
        """No invocation starts any more; what has no results yet stays in the snapshot, unfinished."""
        self._is_closed = True
        self.jobs.clear()

    def starts_no_more(self) -> bool:
        """Whether no invocation starts any more before another one has ended."""
        return self.input_ended and not self.jobs and not self.backlog

    def start(self, now: float) -> Entry:
        """The next record to invoke, which runs from now on."""
        entry = self.jobs.popleft()
        counters = self.counters
        counters.slot_wait_seconds += now - entry.since
        entry.since = now
        counters.running += 1
        if counters.running > counters.peak_running:
            counters.peak_running = counters.running
        return entry

    def attempt_failed(self, entry: Entry, error: Exception) -> None:
        """A call has raised; that is of interest to an observer only."""

    def complete(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        """The function gave these results, and the record's slot is free."""
        self.counters.completed += 1
        self.finish(entry, results, now)

    def time_out(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer wants them
        """A running record's deadline has struck."""
        self.counters.timed_out += 1

    def fail(self, entry: Entry, error: Exception, now: float) -> None:
        """A running record has no result of its own; that is of interest to an observer only."""

    def bury(self, entry: Entry, error: Exception, now: float) -> None:
        """A running record is to leave as a dead letter, with no outputs."""
        self.counters.dead_lettered += 1
        self._letters[entry.sequence] = DeadLetter(entry.element, error, entry.attempts, now - entry.since)

    def cancel(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer wants them
        """A running record's call was cancelled; it stays in the snapshot, unfinished."""
        self.counters.cancelled += 1
        self.abandon()

    def finish(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        """The record has its results, and its slot is free."""
        self.counters.running -= 1
        entry.since = now
        entry.complete(results)
        successor = self.queue.successor(entry)
        if successor is not None and not self._is_closed:
            self._line_up(successor)

    def abandon(self) -> None:
        """A running record will have no results in this run; it stays in the snapshot, unfinished."""
        self.counters.running -= 1

    def poll(self, now: float) -> Entry:
        """The entry whose turn it is to go out. With no outputs it is gone at once."""
        entry = self.queue.poll()
        if not entry.is_watermark:
            self.counters.head_wait_seconds += now - entry.since
        if entry.results:
            self._leaving[entry.sequence] = entry
            return entry
        is_held = entry.sequence in self._letters
        if is_held:
            self._leaving[entry.sequence] = entry
        if not (is_held and self.holds_letters):
            self._release(entry)
        return entry

    def letter_of(self, entry: Entry) -> DeadLetter | None:
        """The dead letter that a record without outputs leaves as, if it does."""
        return self._letters.get(entry.sequence)

    def received_letter(self, entry: Entry) -> None:
        """Somebody has this record's dead letter, or nobody wants it."""
        del self._letters[entry.sequence]
        del self._leaving[entry.sequence]
        if self.holds_letters:
            self._release(entry)

    def received(self, entry: Entry) -> bool:
        """The consumer has the entry's next output; says whether that made room."""
        entry.received += 1
        counters = self.counters
        if not entry.is_watermark:
            counters.emitted += 1
        if entry.received < len(entry.results or ()):
            return False
        del self._leaving[entry.sequence]
        if entry.is_watermark:  # `_release`, less the call
            self._watermarks -= 1
        else:
            counters.buffered -= 1
        return True

    def is_drained(self) -> bool:
        """Whether nothing is left that could still go out."""
        return not self.backlog and self.queue.is_empty()

    def snapshot(self) -> Snapshot:
        """Every element accepted and not received yet, in the order of arrival."""
        entries = sorted([*self._leaving.values(), *self.queue.entries()], key=_by_sequence)
        held = [SnapshotElement(entry.sequence, entry.element, self._unreceived(entry)) for entry in entries]
        ahead = [
            SnapshotElement(sequence, element, None if results is None else list(results))
            for sequence, (element, results) in enumerate(self.backlog, start=self.queue.arrived)
        ]
        return Snapshot((*held, *ahead), taken=self._taken())

    def statistics(self) -> Statistics:
        """The numbers as they stand now."""
        return self.counters.freeze()

    def _taken(self) -> int:
        """How many elements of the source were taken, in this run and in those that it was restored from."""
        arrived = self._taken_before + self.queue.arrived + len(self.backlog)
        return arrived - self._inserted - self._inserted_in_backlog()

    def _inserted_in_backlog(self) -> int:
        return sum(is_inserted(element) for element, _ in self.backlog)

    def _line_up(self, entry: Entry) -> None:
        """Make a job of a record that waited for its key: those that arrived after it start after it."""
        if not self.jobs or self.jobs[-1].sequence < entry.sequence:
            self.jobs.append(entry)
        else:
            insort(self.jobs, entry, key=_by_sequence)

    def _without_letter(self, entry: Entry, results: Sequence[Any]) -> Sequence[Any]:
        """A restored record's outputs; its dead letter is kept aside."""
        if len(results) == 1 and isinstance(results[0], DeadLetter):
            self._letters[entry.sequence] = results[0]
            return ()
        return tuple(results)

    def _unreceived(self, entry: Entry) -> list[Any] | None:
        if entry.is_watermark or entry.results is None:
            return None
        if entry.sequence in self._letters:
            return [self._letters[entry.sequence]]
        return list(entry.results[entry.received :])

    def _release(self, entry: Entry) -> None:
        if entry.is_watermark:
            self._watermarks -= 1
        else:
            self.counters.buffered -= 1
