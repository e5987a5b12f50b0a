"""The ledger: the state of every accepted element, and the account of its time.

    backlog ──accept──▶ queue ──start──▶ running ──complete──▶ completed ──poll──▶ leaving ──receive──▶ gone
    (held)              (jobs)            │    ▲
                                  back_off▼    │begin
                                    waits for its retry

The ledger is the synchronous core of the operator. It never awaits and has no clock. The tasks and the scheduler call
one method per step, and nothing else writes to the ledger, so both limits, the snapshot and the statistics are always
consistent.

A record's time is divided once, here: waiting for its key, for a slot, for gates, in a backoff, running, in a handler,
waiting for its place in the output order, and for the consumer. Statistics, verdict and observers have it from here.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import add
from typing import Any

from .dead_letter import DeadLetter
from .elements import Watermark, is_inserted
from .flow import Flow
from .queue import Entry, StreamElementQueue
from .snapshot import Inventory, Snapshot, by_sequence
from .statistics import Counters, Statistics, Totals, combined
from .verdict import Verdict, judge

__all__ = ["Ledger"]


class Ledger:
    """The state of one operator: the elements that it holds, and its numbers.

    Args:
        queue: Decides the output order. Its bound is the buffer.
        restored: The snapshot to start with, or None.
        capacity: Upper limit of invocations running at once; None: the buffer. Only the verdict depends on it.
        counts_dead_letters: Whether a dead letter counts towards the buffer until it is received. False if nobody is
            expected to receive dead letters, which are then those of a restored snapshot. Snapshots hold them anyway.

    Attributes:
        queue: As given.
        jobs: Records whose first attempt may start, in starting order.
        may_start: Whether attempts may still start.
        counters: The numbers behind `Statistics`.
        flow: Where the time goes.
        backlog: (element, results or None) of elements that were taken from the source but are not in the queue yet:
            restored elements, or the element that the feeder holds.
        input_ended: Whether no more elements will be accepted.
        leaving: By sequence, the entries with outputs that have left the queue and are not received yet.
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
        self.may_start = True
        self.counters = Counters()
        self.flow = Flow(capacity or queue.bound, queue, self.counters)
        self.input_ended = False
        self.counts_dead_letters = counts_dead_letters
        self._sampling = self.flow.sampling
        self._spent = self.flow.spent
        self._has_keys = queue.has_keys
        self._inventory = Inventory(queue, Snapshot() if restored is None else restored)
        self.backlog = self._inventory.backlog
        self.leaving = self._inventory.leaving
        self._dead_letters = self._inventory.dead_letters
        self._ready_since = 0.0  # since then, outputs have waited for the consumer, if there are any
        self._watermarks = 0
        self._low_water = queue.bound - 1

    def begin_run(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self.flow.begin(clocks)

    def end_run(self, clocks: tuple[float, float]) -> None:
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
        elif self.may_start:
            self.jobs.append(entry)
        return entry

    def hold(self, element: Any) -> None:
        """Keep an element that was taken from the source but not accepted."""
        self.backlog.append((element, None))

    def accept_held(self, now: float, accept: Callable[..., Entry | None] | None = None) -> Entry | None:
        """Accept the oldest element of the backlog, with a function like `accept`. None if the buffer is full."""
        element, results = self.backlog[0]
        entry = (accept or self.accept)(element, now, results)
        if entry is not None:
            self.backlog.popleft()
        return entry

    def refill_in_bursts(self) -> None:
        """Let `receive` report room for a sixteenth of the buffer instead of room for one record."""
        self._low_water = self.queue.bound - max(1, self.queue.bound // 16)

    def has_room(self) -> bool:
        """Whether another record would be accepted."""
        return self.counters.buffered < self.queue.bound

    def has_unreported_room(self) -> bool:
        """Whether there is room that `receive` has not reported, because the feeder waits for more."""
        return self._low_water < self.counters.buffered < self.queue.bound

    def end_input(self, now: float) -> None:
        """Record that no more elements will be accepted."""
        if not self.input_ended:
            self.input_ended = True
            self.flow.end_input(now, jobs=self.count_jobs())

    # Waits for the start of an attempt

    def stop_starting(self) -> None:
        """Start no more attempts. Records without results stay in the snapshot, unfinished."""
        self.may_start = False
        self.jobs.clear()

    def count_jobs(self) -> int:
        """How many records can start as soon as a slot is free."""
        return len(self.jobs)

    def take(self) -> Entry:
        """Remove the first of the jobs, in order to start or to wait for gates."""
        return self.jobs.popleft()

    def wait_for_slot(self, entry: Entry) -> None:
        """Record that a record starts to wait for a slot, after its backoff or after the gates of its key."""

    def end_slot_wait(self, entry: Entry, since: float, now: float) -> None:  # noqa: ARG002 - a group needs the entry
        """Record that a record has waited for a slot."""
        self.counters.slot_wait_seconds += now - since

    def wait_for_gate(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs the entry
        """Record that a gate holds back a record, for which a slot is free."""
        self.counters.at_gate += 1
        self.flow.gate.begin(now)

    def end_gate_wait(self, entry: Entry, since: float, now: float, by_gate: Mapping[str, float]) -> None:  # noqa: ARG002
        """Record that a record has waited for these gates."""
        self.counters.at_gate -= 1
        self._add_gate_wait(now - since, by_gate)
        self.flow.end_gate_wait(now - since, now)

    def wait_for_gate_of_key(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs the entry
        """Record that a gate of its key holds back a record. Others pass it."""
        self.flow.wait_for_gate_of_key()

    def end_wait_for_gate_of_key(self, entry: Entry, since: float, now: float, by_gate: Mapping[str, float]) -> None:  # noqa: ARG002
        """Record that a record has waited for these gates of its key."""
        self._add_gate_wait(now - since, by_gate)
        self.flow.end_wait_for_gate_of_key(now - since, now)

    def wait_for_retries(self, now: float) -> None:
        """Record that new records start to wait for retries, while a slot is free for them."""
        self.flow.wait_for_retries(now)

    def end_wait_for_retries(self, now: float) -> None:
        """Record that they no longer do."""
        self.flow.end_wait_for_retries(now)

    def _add_gate_wait(self, seconds: float, by_gate: Mapping[str, float]) -> None:
        self.counters.gate_wait_seconds += seconds
        self.counters.seconds_by_gate = combined(add, self.counters.seconds_by_gate, by_gate)

    # Attempts

    def start(self, now: float) -> Entry:
        """Start the first attempt of the next job, which has waited for nothing but a slot."""
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

    def start_after_wait(self, entry: Entry, slot_wait: float, now: float) -> None:
        """Start an attempt of a record whose waits have been recorded. They do not count towards its timeout.

        Args:
            slot_wait: The part of the waits that was for a slot, in seconds.
        """
        counters = self.counters
        counters.running = running = counters.running + 1
        counters.peak_running = max(counters.peak_running, running)
        if entry.attempts:
            entry.since += now - self.flow.backoffs.pop(entry.sequence)
        else:
            entry.since, entry.load = now, running
            self._sampling.countdown -= 1
            if not self._sampling.countdown:
                self._sample(entry, slot_wait)
        self.flow.start_after_wait(now)

    def retry(self, entry: Entry) -> None:  # noqa: ARG002 - an observer needs it
        """Count a retry, whose call follows."""
        self.counters.retried += 1

    def fail_attempt(self, entry: Entry, error: Exception) -> None:
        """Record that a call raised. Only an observer needs this."""

    def back_off(self, entry: Entry, seconds: float, now: float) -> None:
        """Record that another attempt follows after these seconds. The record frees its slot."""
        self.counters.running -= 1
        self.flow.back_off(entry, seconds, now)

    def deny_retry(self) -> None:
        """Count a retry that the retry budget did not allow."""
        self.counters.retries_denied += 1

    def throttle(self) -> None:
        """Count a call after which the service asked for fewer calls."""
        self.counters.throttled += 1

    def hedge(self) -> None:
        """Count a further call of a running attempt."""
        self.counters.hedged += 1

    def win_hedge(self) -> None:
        """Count a further call that has given the result."""
        self.counters.hedges_won += 1

    def answer_from_cache(self, entry: Entry) -> None:
        """Record that a cache answers a running record: its duration is not that of a call at this load."""
        if entry.samples is not None:
            entry.samples = entry.samples.without_load

    # Ends of invocations

    def complete(self, entry: Entry, results: Sequence[Any], now: float) -> None:
        """Finish a running record with the results of its function."""
        counters = self.counters
        counters.completed += 1
        latency = now - entry.since
        counters.latency_seconds += latency
        if latency > counters.longest_seconds:
            counters.longest_seconds = latency
        if self._spent:
            self.flow.end_retries(entry)
        load = counters.running
        if entry.samples is not None:
            entry.samples.latency[max(entry.load, load).bit_length()].add(latency)
        counters.running = load - 1  # `finish` without its call
        entry.since = now
        entry.complete(results)
        if self._has_keys:
            self._start_successor(entry, now)

    def time_out(self, entry: Entry, now: float) -> None:
        """Record that a running record has timed out. It keeps its slot for its handler, until `finish`."""
        self.counters.timed_out += 1
        self.flow.timed_out_seconds += now - entry.since - self._end_last_call(entry, now)

    def fail(self, entry: Entry, error: Exception, now: float) -> None:  # noqa: ARG002 - an observer needs the error
        """Record that the last call of a running record raised. It keeps its slot for its handler, until `finish`."""
        self.counters.failed += 1
        if entry.attempts:
            self._end_last_call(entry, now)
        else:
            self.counters.refused += 1

    def refuse(self, entry: Entry, refusal: Exception) -> None:  # noqa: ARG002 - a group needs it
        """Keep why a gate refuses a call."""
        self.counters.refusal = str(refusal)

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
        """Complete a running record after its handler, and free its slot."""
        self.counters.running -= 1
        self.flow.handlers_seconds += now - entry.since
        entry.since = now
        entry.complete(results)
        if self._has_keys:
            self._start_successor(entry, now)

    def cancel(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs them
        """Record that the call of a running record was cancelled. The record stays in the snapshot, unfinished."""
        self.counters.cancelled += 1
        self.counters.running -= 1

    def cancel_retry(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs them
        """Record that a record that waits for its retry will have none. It stays in the snapshot, unfinished."""
        self.counters.cancelled += 1

    def abandon(self, entry: Entry) -> None:  # noqa: ARG002 - an observer needs it
        """Free the slot of a record that has ended without results. It stays in the snapshot, unfinished."""
        self.counters.running -= 1

    def end_call(self, now: float) -> None:
        """Free the slot of a call for several records, which have ended or wait for their retry."""

    # Output

    def poll(self, now: float) -> Entry | None:
        """Remove the next entry that may be emitted from the queue. An entry without outputs is gone at once."""
        entry = self.queue.next_completed()
        if entry is None:
            return None
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
            self._inventory.unread[entry.sequence] = entry
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
        del self._inventory.unread[entry.sequence]
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
        return judge(self.flow.evidence(read_clocks, ready_since=self._ready_since if self.leaving else None))

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

    def _end_last_call(self, entry: Entry, now: float) -> float:
        """Record the latency of a record without a result. Returns its backoffs, in seconds."""
        counters, latency = self.counters, now - entry.since
        counters.latency_seconds += latency
        counters.longest_seconds = max(counters.longest_seconds, latency)
        self.flow.handlers_seconds -= latency
        if entry.samples is not None:
            entry.samples.latency[0].add(latency)
        return self.flow.end_retries(entry)

    def _start_successor(self, entry: Entry, now: float) -> None:
        """Make a job of the record that waited for this one, before the jobs that arrived after it."""
        successor = self.queue.successor(entry)
        if successor is None or not self.may_start:
            return
        self.flow.lanes.end(now)
        self.flow.check_slots(now, jobs=self.count_jobs() + 1)
        if not self.jobs or self.jobs[-1].sequence < successor.sequence:
            self.jobs.append(successor)
        else:
            insort(self.jobs, successor, key=by_sequence)
