"""The ledger: the state of every accepted element, and the operator's counters.

    backlog ──accept──▶ queue ──start──▶ running ──finish──▶ completed ──poll──▶ leaving ──receive──▶ gone
    (held)              (jobs)

The ledger is the synchronous core of the operator. It never awaits and has no clock. The tasks call one method per
step, and nothing else writes to the ledger, so both limits, the snapshot and the statistics are always consistent.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .dead_letter import DeadLetter
from .elements import Watermark, is_inserted
from .flow import Flow
from .inventory import Inventory, by_sequence
from .queue import Entry, StreamElementQueue
from .snapshot import Snapshot
from .statistics import Counters, Statistics
from .totals import Totals
from .verdict import Verdict, judge

__all__ = ["Ledger"]


class Ledger:
    """The state of one operator.

    Args:
        queue: Decides the output order. Its bound is the buffer.
        restored: The snapshot to start with, or None.
        capacity: Upper limit of invocations running at once; None: the buffer. Only the verdict depends on it.
        counts_dead_letters: Whether a dead letter counts towards the buffer until it is received. False if nobody is
            expected to receive dead letters, which are then those of a restored snapshot. Snapshots hold them anyway.

    Attributes:
        queue: As given.
        jobs: Records whose invocation may start, in starting order.
        backlog: (element, results or None) of elements that were taken from the source but are not in the queue yet:
            restored elements, or the element that the feeder holds.
        counters: The numbers behind `Statistics`.
        flow: Where the time goes.
        input_ended: Whether no more elements will be accepted.
        leaving: By sequence, the entries that have left the queue and are not received yet.
        counts_dead_letters: As given.

    The attributes are read-only outside this class.
    """

    def __init__(
        self,
        queue: StreamElementQueue,
        restored: Snapshot | None = None,
        *,
        capacity: int | None = None,
        counts_dead_letters: bool = True,
    ) -> None:
        self.queue = queue
        self.jobs: deque[Entry] = deque()
        self.counters = Counters()
        self.flow = Flow(capacity or queue.bound, queue, self.counters)
        self.input_ended = False
        self.counts_dead_letters = counts_dead_letters
        self._inventory = Inventory(queue, Snapshot() if restored is None else restored)
        self.backlog = self._inventory.backlog
        self.leaving = self._inventory.leaving
        self._dead_letters = self._inventory.dead_letters
        self._sampling = self.flow.sampling
        self._ready_since = 0.0  # since then, outputs have waited for the consumer, if there are any
        self._watermarks = 0
        self._may_start = True
        self._has_keys = queue.has_keys
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

    # Invocations

    def stop_starting(self) -> None:
        """Start no more invocations. Records without results stay in the snapshot, unfinished."""
        self._may_start = False
        self.jobs.clear()

    def has_nothing_to_start(self) -> bool:
        """Whether no invocation can start before another one has ended."""
        return self.input_ended and not self.jobs and not self.backlog

    def start(self, now: float) -> Entry:
        """Start the invocation of the next job."""
        entry = self.jobs.popleft()
        counters = self.counters
        counters.running = running = counters.running + 1
        if running > counters.peak_running:
            counters.peak_running = running
        slot_wait = now - entry.since
        counters.slot_wait_seconds += slot_wait
        sampling = self._sampling
        sampling.countdown = countdown = sampling.countdown - 1
        if not countdown:
            self._sample(entry, slot_wait)
            entry.load = running
        entry.since = now
        return entry

    def take(self, now: float) -> Entry:
        """Take the next job to the gates. Its invocation has not started."""
        entry = self.jobs.popleft()
        slot_wait = now - entry.since
        self.counters.slot_wait_seconds += slot_wait
        self._sampling.countdown -= 1
        if not self._sampling.countdown:
            self._sample(entry, slot_wait)
        entry.since = now
        self.counters.at_gate += 1
        return entry

    def hold_back(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs the entry
        """Record that a call starts to wait for a gate."""
        self.flow.gate.begin(now)

    def let_go(self, seconds: float, now: float, gate: str) -> None:
        """Record that a call has waited for this gate, and does no longer."""
        self.counters.gate_wait_seconds += seconds
        self.flow.let_go(seconds, now, gate)

    def start_taken(self, entry: Entry, now: float) -> bool:
        """Start the invocation of a job that was taken. False if none may start any more: it stays unfinished."""
        counters = self.counters
        counters.at_gate -= 1
        if not self._may_start:
            return False
        entry.since = now
        entry.load = counters.running = counters.running + 1
        counters.peak_running = max(counters.peak_running, counters.running)
        return True

    def give_back(self) -> None:
        """Record that a job that was taken does not start. It stays in the snapshot, unfinished."""
        self.counters.at_gate -= 1

    def throttle(self) -> None:
        """Count a call after which the service asked for fewer calls."""
        self.counters.throttled += 1

    def yield_slot(self, entry: Entry, now: float) -> None:
        """Record that a running record gives its slot back."""
        self.counters.running -= 1
        self.flow.yields.begin(entry.sequence, now)

    def request_slot(self, entry: Entry) -> None:
        """Make a job of a record that needs a slot again, before the jobs that arrived after it."""
        if self._may_start:
            self._insert_job(entry)

    def take_request_for_slot(self) -> Entry | None:
        """Take the next job if it is a record that needs a slot again."""
        return self.jobs.popleft() if self.jobs[0].attempts else None

    def regain_slot(self, entry: Entry, waited: float, since: float) -> None:
        """Record that a record has a slot again, for which it has waited from `since` on."""
        counters = self.counters
        counters.running += 1
        counters.peak_running = max(counters.peak_running, counters.running)
        counters.slot_wait_seconds += waited
        if entry.samples is not None:
            entry.samples.slot_wait.add(waited)
        entry.since += waited
        self.flow.yields.end(entry.sequence, since + waited)

    def cancel_without_slot(self, entry: Entry, now: float) -> None:
        """Record that a record without a slot is about to be cancelled, which frees one."""
        self.counters.running += 1
        self.flow.yields.end(entry.sequence, now)

    def attempt_failed(self, entry: Entry, error: Exception) -> None:
        """Record that a call raised. Only an observer needs this."""

    def back_off(self, entry: Entry, seconds: float) -> None:  # noqa: ARG002 - an observer needs the entry
        """Record that a retry follows after these seconds."""
        self.flow.backoff_seconds += seconds

    def retry(self, entry: Entry) -> None:  # noqa: ARG002 - an observer needs it
        """Count a retry."""
        self.counters.retried += 1

    def deny_retry(self) -> None:
        """Count a retry that the retry budget did not allow."""
        self.counters.retries_denied += 1

    def complete(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        """Finish a running record with the results of its function."""
        counters = self.counters
        counters.completed += 1
        latency = now - entry.since
        counters.latency_seconds += latency
        load = counters.running
        if entry.samples is not None:
            entry.samples.latency[max(entry.load, load).bit_length()].add(latency)
        counters.running = load - 1  # `finish` without its call
        entry.since = now
        entry.complete(results)
        if self._has_keys:
            self._start_successor(entry, now)

    def time_out(self, entry: Entry, now: float) -> None:
        """Record that the deadline of a running record has expired."""
        self.counters.timed_out += 1
        self.flow.timed_out_seconds += now - entry.since
        self._end_last_call(entry, now)

    def fail(self, entry: Entry, error: Exception, now: float) -> None:  # noqa: ARG002 - an observer needs the error
        """Record that the last call of a running record raised."""
        self.counters.failed += 1
        self._end_last_call(entry, now)

    def fail_after_timeout(self, entry: Entry, error: Exception, now: float) -> None:
        """Record that a record that has timed out has no result. Only an observer needs this."""

    def skip(self) -> None:
        """Count an element that `on_error` leaves out."""
        self.counters.skipped += 1

    def dead_letter(self, entry: Entry, error: Exception, now: float) -> None:
        """Turn a running record into a dead letter. It will have no outputs."""
        self.counters.dead_lettered += 1
        self._dead_letters[entry.sequence] = DeadLetter(entry.element, error, entry.attempts, now - entry.since)

    def finish(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        """Complete a running record and free its slot."""
        self.counters.running -= 1
        self.flow.handlers_seconds += now - entry.since
        entry.since = now
        entry.complete(results)
        if self._has_keys:
            self._start_successor(entry, now)

    def cancel(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs them
        """Record that the call of a running record was cancelled, and abandon the record."""
        self.counters.cancelled += 1
        self.counters.running -= 1

    def abandon(self, entry: Entry) -> None:  # noqa: ARG002 - an observer needs it
        """Free the slot of a running record without results. The record stays in the snapshot, unfinished."""
        self.counters.running -= 1

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

    def _sample(self, entry: Entry, slot_wait: float) -> None:
        """Count the durations of a record that starts."""
        entry.samples = self._sampling.choose()
        entry.samples.slot_wait.add(slot_wait)

    def _end_last_call(self, entry: Entry, now: float) -> None:
        """Record the latency of a record without a result. It still holds its slot, until `finish`."""
        latency = now - entry.since
        self.counters.latency_seconds += latency
        self.flow.handlers_seconds -= latency
        if entry.samples is not None:
            entry.samples.latency[0].add(latency)

    def _start_successor(self, entry: Entry, now: float) -> None:
        """Make a job of the record that waited for this one, before the jobs that arrived after it."""
        successor = self.queue.successor(entry)
        if successor is None or not self._may_start:
            return
        self.flow.lanes.end(now)
        self._insert_job(successor)

    def _insert_job(self, entry: Entry) -> None:
        if not self.jobs or self.jobs[-1].sequence < entry.sequence:
            self.jobs.append(entry)
        else:
            insort(self.jobs, entry, key=by_sequence)
