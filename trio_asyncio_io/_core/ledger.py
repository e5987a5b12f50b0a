"""The ledger: owns each element from its arrival until its last output has been received, and the account of its time.

    backlog ──accept──▶ order ──start──▶ running ──complete──▶ completed ──poll──▶ leaving ──receive──▶ gone
    (held)              (jobs)            │    ▲                              └──▶ unread ──receive_dead_letter──▶ gone
                                  back_off▼    │begin
                                    waits for its retry

The ledger is the synchronous core of the operator. It never awaits and has no clock. The tasks and the scheduler call
one method per step, and nothing else writes to the ledger, so both limits, the snapshot and the statistics are always
consistent.

An element is in the backlog, in the order, leaving, or an unread dead letter: `snapshot` reads these four. Jobs and
running records are in the order, which decides when they leave it.

A record's time is divided once, here: waiting for its key, for a slot, for gates, in a backoff, running, in a handler,
waiting for its place in the output order, and for the consumer. Statistics, verdict and observers have it from here.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from .._account.flow import Flow
from .._account.statistics import Counters, Statistics
from .._account.verdict import Totals, Verdict
from .._values.exceptions import text_of
from .dead_letter import DeadLetter
from .elements import Element, Watermark, is_inserted, value_of, with_value
from .queue import Entry, Order
from .snapshot import Contents, Snapshot, contents_of, stored_element

by_sequence = attrgetter("sequence")


class Ledger:
    """The state of one operator: the elements that it holds, and its numbers.

    Args:
        order: Decides the output order.
        bound: The buffer: upper limit of records accepted and not yet received. The same number of watermarks may be
            held besides.
        restored: The snapshot to start with, or None.
        capacity: Upper limit of invocations running at once; None: the buffer. Only the verdict depends on it.
        group: The largest number of records in a call; 0: calls are made for single records. With groups, the slot is
            that of the call, and the end of a record frees none: `end_call` does.
        counts_dead_letters: Whether a dead letter counts towards the buffer until it is received. False if nobody is
            expected to receive dead letters, which are then those of a restored snapshot. Snapshots hold them anyway.

    Attributes:
        backlog: (element, what it has, or None) of elements that were taken from the source but are not accepted yet:
            restored elements, or the element that the feeder holds.
        order: The accepted elements that have not been polled.
        jobs: Those whose first attempt may start, in starting order.
        leaving: The polled elements with outputs, in output order. Of the first one, some may have been received.
        arrived: The number of elements accepted, and so the sequence of the next one.
        next_peak: The sequence number of the record that would set a new peak. It rises by one with each record that
            leaves and each watermark, so one comparison detects a full buffer, too.
        peak_buffered: The highest number of records in the buffer so far.
        bound, counts_dead_letters: As given.
        may_start: Whether attempts may still start.
        input_ended: Whether no more elements will be accepted. `flow.input_end` says when, but the emitter reads this
            for each element.
        counters: The numbers behind `Statistics`.
        flow: Where the time goes.

    The attributes are read-only outside this class.
    """

    def __init__(
        self,
        order: Order,
        bound: int,
        restored: Snapshot | None = None,
        *,
        capacity: int | None = None,
        group: int = 0,
        counts_dead_letters: bool = True,
    ) -> None:
        restored = Snapshot() if restored is None else restored
        # At most 29 attributes: CPython 3.11 reads those of an object that has more of them more slowly, and an element
        # costs about 3 % more
        self.backlog: deque[tuple[Any, Contents]] = deque(
            (element.element, contents_of(element)) for element in restored.elements
        )
        self.order = order
        self.jobs: deque[Entry] = deque()
        self.leaving: deque[Entry] = deque()
        self.arrived = self.next_peak = self.peak_buffered = 0
        self.bound = bound
        self.counts_dead_letters = counts_dead_letters
        self.may_start = True
        self.input_ended = False
        self.counters = Counters()
        self.flow = Flow(capacity or bound, bound, order.entries, self.jobs, self.counters, group=group)
        self._slots_of_record = 0 if group else 1
        self._watermarks = 0  # accepted and not received
        self._inserted = 0  # watermarks accepted that are not elements of the source
        self._taken_before = restored.taken - self._sources_in_backlog()
        self._received = 0  # outputs of the first element that leaves
        self._unread: dict[int, Entry] = {}  # sequence -> the element of a dead letter that has been polled
        self._dead_letters: dict[int, DeadLetter] = {}  # of elements in the order, or unread
        self._ready_since = 0.0  # since then, outputs have waited for the consumer, if there are any
        self._low_water = bound - 1  # a feeder that waits for room continues at this number of records
        self._refill_at = 0  # `next_peak` when it is reached
        self._entry_type, self._has_keys = order.entry_type, order.has_keys
        self._sampling = self.flow.sampling
        self._spent = self.flow.spent

    def begin_run(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self.flow.begin(clocks)
        self.flow.note_free_slots(clocks[0])

    def end_run(self, clocks: tuple[float, float]) -> None:
        """The operator has ended."""
        self.flow.end(clocks)

    # Input

    def accept(self, element: Any, now: float, results: Contents = None) -> Entry | None:
        """Accept an element, perhaps with its results or its dead letter. Returns None if the buffer is full."""
        value = element
        if isinstance(element, Element):  # one test for a bare value: each that fails is expensive
            if isinstance(element, Watermark):
                return self._accept_watermark(element, now)
            value = value_of(element)
        sequence = self.arrived
        is_peak = sequence >= self.next_peak
        if is_peak and self.peak_buffered == self.bound:
            return None
        new_entry = self._entry_type  # a local name: Python takes longer to call what is not a method of the class
        entry = new_entry(element, value, sequence, now)
        self.order.append(entry)
        self.arrived = sequence + 1
        if is_peak:
            self.peak_buffered += 1
            self.next_peak += 1
        if results is not None:
            self.counters.known += 1
            if isinstance(results, DeadLetter):
                self._dead_letters[sequence], results = results, ()
            entry.complete(tuple(results))
        elif self._has_keys and not self.order.may_start(entry):
            self.flow.behind += 1
            if self.flow.source.is_on:
                self.flow.note_free_slots(now)
        elif self.may_start:
            self.jobs.append(entry)
        return entry

    def _accept_watermark(self, watermark: Watermark, now: float) -> Entry | None:
        if self._watermarks >= self.bound:
            return None
        entry = self.order.append_watermark(watermark, self.arrived, now)
        self._watermarks += 1
        self._inserted += is_inserted(watermark)
        self.arrived += 1
        self.next_peak += 1
        return entry

    def put_back(self, element: Any) -> None:
        """Keep an element that was taken from the source but not accepted."""
        self.backlog.append((element, None))

    def accept_held(self, now: float, accept: Callable[..., Entry | None] | None = None) -> Entry | None:
        """Accept the oldest element of the backlog, with a function like `accept`. None if the buffer is full."""
        element, results = self.backlog[0]
        entry = (accept or self.accept)(element, now, results)
        if entry is not None:
            self.backlog.popleft()
        return entry

    @property
    def buffered(self) -> int:
        """The number of records accepted and not yet received."""
        return self.arrived - self.next_peak + self.peak_buffered

    def has_room(self) -> bool:
        """Whether another record would be accepted."""
        return self.buffered < self.bound

    def refill_in_bursts(self) -> None:
        """Let a feeder that waits for room continue when a sixteenth of the buffer is free, not at the first place."""
        self._low_water = self.bound - max(1, self.bound // 16)

    def wait_for_room(self, now: float) -> None:
        """Record that the feeder waits for room. It continues when `may_refill` is true."""
        self._refill_at = self.next_peak + self.buffered - self._low_water
        self.flow.room.turn(is_on=True, now=now)
        self.flow.note_free_slots(now)

    def have_room(self, now: float) -> None:
        """Record that the feeder no longer waits for room."""
        self.flow.room.turn(is_on=False, now=now)
        self.flow.note_free_slots(now)

    def may_refill(self) -> bool:
        """Whether a feeder that waits for room may continue. Room for any element suffices if no job waits."""
        return self.next_peak >= self._refill_at or not self.jobs

    def end_input(self, now: float) -> None:
        """Record that no more elements will be accepted."""
        if not self.input_ended:
            self.input_ended = True
            self.flow.input_end = now
            self.flow.note_free_slots(now, idles=not self.backlog and not self.counters.running)

    # Waits for the start of an attempt

    def stop_starting(self) -> None:
        """Start no more attempts. Records without results stay in the snapshot, unfinished."""
        self.may_start = False
        self.jobs.clear()

    def may_grow(self) -> bool:
        """Whether more records may come before a call ends or the consumer receives."""
        if self.input_ended and not self.backlog:
            return False
        is_full = self.flow.room.is_on or not self.has_room()
        return not is_full or self.counters.running > 0 or len(self.leaving) > 0 or self.order.has_completed()

    def take_job(self, *, for_group: bool = False) -> Entry:
        """Remove the first of the jobs, in order to start, or to wait for gates or for its group."""
        self.flow.ungrouped += for_group
        return self.jobs.popleft()

    def end_group_wait(self, group: Entry, waits: Iterable[tuple[float, float]], now: float) -> None:
        """Record that records have waited for their group to be complete, and then for a slot.

        Args:
            group: The group.
            waits: For each record, since when it has waited, and the seconds until the group was complete.
            now: The time.
        """
        for entry, (since, seconds) in zip(group.records, waits, strict=True):
            slot_wait = now - since - seconds
            self.counters.group_wait_seconds += seconds
            self.counters.slot_wait_seconds += slot_wait
            if not entry.attempts:
                self.flow.ungrouped -= 1
                entry.since = now - slot_wait

    def wait_for_slot(self, entry: Entry) -> None:
        """Record that a record waits for a slot from now on: after its backoff, the gates of its key, or its key.

        Only an observer needs this.
        """

    def end_slot_wait(self, call: Entry, since: float, now: float) -> None:
        """Record that a call has waited for a slot."""
        self.counters.slot_wait_seconds += call.size * (now - since)

    def wait_for_gate(self, call: Entry, of_key: bool) -> None:  # noqa: FBT001 - `WaitingCall.run` has no keywords
        """Record that a gate holds back a call. A slot is free for it, unless the gate is one of its key."""
        if of_key:
            self.flow.at_keys += call.size
        else:
            self.counters.at_gate += call.size

    def end_gate_wait(
        self, call: Entry, since: float, now: float, by_gate: Mapping[str, float], *, of_key: bool
    ) -> None:
        """Record for how long each of these gates has held back a call. See `wait_for_gate`."""
        if of_key:
            self.flow.at_keys -= call.size
        else:
            self.counters.at_gate -= call.size
        totals: Any = self.counters.seconds_by_gate
        for entry in call.records:
            if not entry.attempts:
                entry.since = now - (since - entry.since)  # so the wait since then is for a slot alone
            self.counters.gate_wait_seconds += now - since
            for gate, seconds in by_gate.items():
                totals[gate] = totals.get(gate, 0.0) + seconds
            self.flow.end_gate_wait(now - since)

    # Attempts

    def start(self, now: float) -> Entry:
        """Take the next job, reserve its slot, and start its call: three steps in one, so that a record costs less."""
        entry = self.jobs.popleft()
        counters = self.counters
        counters.running = running = counters.running + 1
        if running >= counters.peak_running:  # such as a call that takes the last slot
            counters.peak_running = running
            if self.flow.lacks_records:
                self.flow.note_free_slots(now)
        slot_wait = now - entry.since
        counters.slot_wait_seconds += slot_wait
        sampling = self._sampling
        sampling.countdown = countdown = sampling.countdown - 1
        if not countdown:
            self._sample(entry, slot_wait)
            entry.load = running
        entry.since = self.flow.started_at = now
        return entry

    def reserve(self, slot_wait: float) -> None:
        """A call has its slot, for which its records have waited so long. Its worker starts it: see `start_call`."""
        counters = self.counters
        counters.slot_wait_seconds += slot_wait
        counters.running = running = counters.running + 1
        if running > counters.peak_running:
            counters.peak_running = running

    def release(self) -> None:
        """Nobody starts the call that has a slot. Its records stay in the snapshot, unfinished."""
        self.counters.running -= 1

    def start_first(self, entry: Entry, now: float) -> None:
        """`start_call` of a single record that has waited for nothing but its slot. It costs less."""
        sampling = self._sampling
        sampling.countdown = countdown = sampling.countdown - 1
        if not countdown:
            self._sample(entry, now - entry.since)
            entry.load = self.counters.running
        entry.since = self.flow.started_at = now

    def start_call(self, call: Entry, now: float) -> None:
        """Start an attempt of records whose call has its slot. Their waits do not count towards its timeout."""
        running = self.counters.running
        for entry in call.records:
            if entry.attempts:
                entry.since += now - self.flow.backoffs.pop(entry.sequence)
                continue
            self._sampling.countdown -= 1
            if not self._sampling.countdown:
                self._sample(entry, now - entry.since)
            entry.since = self.flow.started_at = now
            entry.load = running
        if self.flow.group:
            call.since = min(entry.since for entry in call.records)
            self.flow.calls.change(1, now)

    def retry(self, call: Entry) -> None:
        """Count the retries of records, whose call follows."""
        self.counters.retried += call.size

    def count_group(self, group: Entry) -> None:
        """Count a call that is made for a group."""
        self.counters.groups += 1
        self.counters.grouped += group.size

    def fail_attempt(self, entry: Entry, error: Exception) -> None:
        """Record that a call raised. Only an observer needs this."""

    def back_off(self, entry: Entry, seconds: float, now: float) -> None:
        """Record that another attempt follows after these seconds. The record frees its slot."""
        self.counters.running -= self._slots_of_record
        self.flow.back_off(entry, seconds, now)

    def waits_for_retry(self, entry: Entry) -> bool:
        """Whether another attempt of this record follows, and has not started."""
        return entry.sequence in self.flow.backoffs

    def deny_retry(self) -> None:
        """Count a retry that the retry budget did not allow."""
        self.counters.retries_denied += 1

    def throttle(self) -> None:
        """Count a call after which the service requested fewer calls."""
        self.counters.throttled += 1

    def hedge(self) -> None:
        """Count an extra call of a running attempt."""
        self.counters.hedged += 1

    def win_hedge(self) -> None:
        """Count an extra call that has given the result."""
        self.counters.hedges_won += 1

    def answer_from_cache(self, entry: Entry) -> None:
        """Record that a cache answers a running record: its duration says nothing about calls at this load."""
        if entry.samples is not None:
            entry.samples = entry.samples.without_load

    # Ends of invocations

    def count_late(self, call: Entry) -> None:
        """Count the results of a call that caught the cancellation at its deadline."""
        self.counters.late += call.size

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
        counters.running = load - self._slots_of_record
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

    def refuse(self, refusal: Exception) -> None:
        """Keep why a gate refuses a call."""
        self.counters.refusal = text_of(refusal)

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
        self.counters.running -= self._slots_of_record
        self.flow.end_handler(entry, now)
        entry.since = now
        entry.complete(results)
        if self._has_keys:
            self._start_successor(entry, now)

    def cancel(self, entry: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs them
        """Record that the call of a running record was cancelled. The record stays in the snapshot, unfinished."""
        self.counters.cancelled += 1
        self.counters.running -= self._slots_of_record

    def cancel_retry(self, call: Entry, now: float) -> None:  # noqa: ARG002 - an observer needs the time
        """Record that what waits for its retry will have none. Its records stay in the snapshot, unfinished."""
        self.counters.cancelled += call.size

    def abandon(self, entry: Entry) -> None:  # noqa: ARG002 - an observer needs it
        """Free the slot of a record that has ended without results. It stays in the snapshot, unfinished."""
        self.counters.running -= self._slots_of_record

    def end_call(self, now: float) -> None:
        """Free the slot of a call for a group, whose records have ended or wait for their retry."""
        if not self._slots_of_record:
            self.counters.running -= 1
            self.flow.calls.change(-1, now)

    # Output

    def poll(self, now: float, limit: int) -> list[Entry]:
        """Remove the next entries that may be emitted from the order, at most `limit`, and return them.

        Those with outputs leave from now on. Those without are gone, apart from their dead letters.
        """
        leaving, polled, waited = self.leaving, self.order.take(limit), 0.0
        if not leaving:
            self._ready_since = now
        for entry in polled:
            if not entry.is_watermark:
                head_wait = now - entry.since
                waited += head_wait
                if entry.samples is not None:
                    entry.samples.leave(head_wait)
            if entry.results:
                leaving.append(entry)
            else:
                self._leave_without_outputs(entry)
        self.counters.head_wait_seconds += waited
        return polled

    def _leave_without_outputs(self, entry: Entry) -> None:
        is_dead_letter = entry.sequence in self._dead_letters
        if is_dead_letter:
            self._unread[entry.sequence] = entry
        if not (is_dead_letter and self.counts_dead_letters):
            self.next_peak += 1

    def receive(self) -> Any:
        """Record that the consumer receives the next output, and return it: a result, with the element's timestamp.

        Raises:
            IndexError: No element is leaving.
        """
        entry = self.leaving.popleft()
        if entry.is_watermark:
            self._watermarks -= 1
            self._refill_at = self.next_peak  # the feeder may wait for the place of a watermark
            return entry.element
        results: Any = entry.results
        if len(results) == 1:
            output = results[0]
            self.next_peak += 1
        else:
            output = self._receive_one_of(entry, results)
        self.counters.emitted += 1
        return output if entry.value is entry.element else with_value(entry.element, output)

    def _receive_one_of(self, entry: Entry, results: Sequence[Any]) -> Any:
        output = results[self._received]
        self._received += 1
        if self._received < len(results):
            self.leaving.appendleft(entry)
        else:
            self._received = 0
            self.next_peak += 1
        return output

    def consumer_has_caught_up(self, now: float) -> None:
        """Record that the consumer has received all outputs, without waiting for them."""
        self.flow.consumer_seconds += now - self._ready_since

    def consumer_has_waited(self, now: float) -> None:
        """Record that the consumer has waited, so that the outputs which are left wait for it only from now on."""
        self._ready_since = now

    def dead_letter_of(self, entry: Entry) -> DeadLetter | None:
        """The entry's dead letter, or None."""
        return self._dead_letters.get(entry.sequence)

    def receive_dead_letter(self, entry: Entry) -> DeadLetter:
        """Record that the entry's dead letter has been received or dropped, and return it."""
        del self._unread[entry.sequence]
        if self.counts_dead_letters:
            self.next_peak += 1
        return self._dead_letters.pop(entry.sequence)

    def is_drained(self) -> bool:
        """Whether every element taken from the source has been polled."""
        return not self.backlog and self.order.is_empty()

    # State

    def snapshot(self) -> Snapshot:
        """Every element accepted and not yet received, in arrival order."""
        entries = sorted([*self.leaving, *self._unread.values(), *self.order.entries()], key=by_sequence)
        accepted = [stored_element(entry.sequence, entry.element, self._unreceived(entry)) for entry in entries]
        held = [stored_element(sequence, *each) for sequence, each in enumerate(self.backlog, start=self.arrived)]
        taken = self._taken_before + self.arrived - self._inserted + self._sources_in_backlog()
        return Snapshot((*accepted, *held), taken=taken)

    def _unreceived(self, entry: Entry) -> Contents:
        if entry.is_watermark or entry.results is None:
            return None
        if entry.sequence in self._dead_letters:
            return self._dead_letters[entry.sequence]
        is_first = bool(self.leaving) and entry is self.leaving[0]
        return entry.results[self._received if is_first else 0 :]

    def _sources_in_backlog(self) -> int:
        """The number of elements in the backlog that are elements of the source."""
        return sum(not is_inserted(element) for element, _ in self.backlog)

    def verdict(self, read_clocks: Callable[[], tuple[float, float]]) -> Verdict:
        """What limits the operator. `read_clocks` returns the time and the CPU time of its thread."""
        self._count_buffered()
        return self.flow.verdict(read_clocks, ready_since=self._ready_since if self.leaving else None)

    def totals(self, read_clocks: Callable[[], tuple[float, float]]) -> Totals:
        """Where the time went, as sums. `read_clocks` is as in `verdict`."""
        self._count_buffered()
        return self.flow.totals(read_clocks)

    def statistics(self) -> Statistics:
        """The current numbers."""
        self._count_buffered()
        return self.flow.statistics()

    def _count_buffered(self) -> None:
        self.counters.buffered, self.counters.peak_buffered = self.buffered, self.peak_buffered

    def _sample(self, entry: Entry, slot_wait: float) -> None:
        """Count the durations of a record that starts."""
        entry.samples = self._sampling.choose()
        entry.samples.slot_wait.add(slot_wait)

    def _end_last_call(self, entry: Entry, now: float) -> float:
        """Record the latency of a record without a result. Returns its backoffs, in seconds."""
        counters, latency = self.counters, now - entry.since
        counters.latency_seconds += latency
        counters.longest_seconds = max(counters.longest_seconds, latency)
        self.flow.handlers[entry.sequence] = now
        if entry.samples is not None:
            entry.samples.latency[0].add(latency)
        return self.flow.end_retries(entry)

    def _start_successor(self, entry: Entry, now: float) -> None:
        """Make a job of the record that waited for this one, before the jobs that arrived after it."""
        successor = self.order.successor(entry)
        if successor is None or not self.may_start:
            return
        successor.since = now  # so the wait since then is for a slot alone
        self.flow.behind -= 1
        self.flow.note_free_slots(now, starting=self._slots_of_record)
        if not self.jobs or self.jobs[-1].sequence < successor.sequence:
            self.jobs.append(successor)
        else:
            insort(self.jobs, successor, key=by_sequence)
        self.wait_for_slot(successor)
