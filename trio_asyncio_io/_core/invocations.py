"""The invocations: the jobs, the slots, and the operator's counters.

job ──take──▶ at a gate ──start_taken──▶ running ──complete──▶ completed
    ─────────────── start ─────────────▶         ──finish────▶
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping, Sequence
from operator import add
from typing import Any

from .flow import Flow
from .inventory import by_sequence
from .queue import Entry, StreamElementQueue
from .statistics import Counters
from .sums import combined

__all__ = ["Invocations"]


class Invocations:
    """The state of one operator's invocations, from the job to its results: what `capacity` limits.

    Args:
        queue: Holds the records.
        capacity: Upper limit of invocations running at once. Only the verdict depends on it.

    Attributes:
        queue: As given.
        jobs: Records whose invocation may start, in starting order.
        counters: The numbers behind `Statistics`.
        flow: Where the time goes.

    The attributes are read-only outside this class and its subclasses.
    """

    def __init__(self, queue: StreamElementQueue, capacity: int) -> None:
        self.queue = queue
        self.jobs: deque[Entry] = deque()
        self.counters = Counters()
        self.flow = Flow(capacity, queue, self.counters)
        self._sampling = self.flow.sampling
        self._may_start = True
        self._has_keys = queue.has_keys

    def stop_starting(self) -> None:
        """Start no more invocations. Records without results stay in the snapshot, unfinished."""
        self._may_start = False
        self.jobs.clear()

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

    def let_go(self, seconds: float, now: float, by_gate: Mapping[str, float]) -> None:
        """Record that a call has waited for these gates, and does no longer."""
        self._add_gate_wait(seconds, by_gate)
        self.flow.let_go(seconds, now)

    def _add_gate_wait(self, seconds: float, by_gate: Mapping[str, float]) -> None:
        self.counters.gate_wait_seconds += seconds
        self.counters.seconds_by_gate = combined(add, self.counters.seconds_by_gate, by_gate)

    def start_taken(self, entry: Entry, now: float) -> bool:
        """Start the invocation of a job that was taken. False if none may start any more: it stays unfinished."""
        counters = self.counters
        counters.at_gate -= 1
        if not self._may_start:
            return False
        entry.since = now
        entry.load = counters.running = counters.running + 1
        counters.peak_running = max(counters.peak_running, counters.running)
        self.flow.start_at_gate(now)
        return True

    def give_back(self) -> None:
        """Record that a job that was taken does not start. It stays in the snapshot, unfinished."""
        self.counters.at_gate -= 1

    def set_aside(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs the entry
        """Record that a call starts to wait for a gate without a slot."""
        self.flow.set_aside()

    def call_back(self, seconds: float, now: float, by_gate: Mapping[str, float]) -> None:
        """Record that a call has waited for these gates without a slot, and does no longer."""
        self._add_gate_wait(seconds, by_gate)
        self.flow.call_back(seconds, now)

    def return_job(self, entry: Entry, now: float) -> None:
        """Make a job of a record again that was taken and did not start."""
        if self._may_start:
            entry.since = now
            self._insert_job(entry)

    def throttle(self) -> None:
        """Count a call after which the service asked for fewer calls."""
        self.counters.throttled += 1

    def hedge(self) -> None:
        """Count a further call of a running attempt."""
        self.counters.hedged += 1

    def win_hedge(self) -> None:
        """Count a further call that has given the result."""
        self.counters.hedges_won += 1

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
        """Record that a record has a slot again. Its latency includes the time without one up to `since`."""
        counters = self.counters
        counters.running += 1
        counters.peak_running = max(counters.peak_running, counters.running)
        counters.slot_wait_seconds += waited
        if entry.samples is not None:
            entry.samples.slot_wait.add(waited)
        entry.since += waited
        self.flow.yields.end(entry.sequence, since)

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
