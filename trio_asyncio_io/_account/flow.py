"""The flow: where the time of an operator goes, as totals for a verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Protocol

from .histogram import Durations
from .samples import FOLD, Sampling
from .statistics import Counters, Statistics
from .verdict import Totals, Verdict, judge


@dataclass(eq=False, slots=True)
class Stopwatch:
    """The total time of a state that begins and ends several times.

    Attributes:
        is_on: Whether the state lasts now.
    """

    is_on: bool = False
    _since: float = 0.0
    _seconds: float = 0.0

    def turn(self, is_on: bool, now: float) -> None:  # noqa: FBT001 - it has the state as its argument
        """Begin or end the state. Without a change, this has no effect."""
        if is_on is not self.is_on:
            self._seconds = self.seconds(now)
            self.is_on, self._since = is_on, now

    def exclude(self, seconds: float, now: float) -> None:
        """Do not count the latest seconds."""
        if self.is_on:
            self._since = min(now, self._since + seconds)

    def seconds(self, now: float) -> float:
        """The time so far."""
        return self._seconds + (now - self._since if self.is_on else 0.0)


@dataclass(eq=False, slots=True)
class Calls:
    """The time for which calls have run, summed over all calls."""

    _running: int = 0
    _since: float = 0.0
    _seconds: float = 0.0

    def change(self, number: int, now: float) -> None:
        """Record that `number` more calls run; below 0, fewer."""
        self._seconds, self._since = self.seconds(now), now
        self._running += number

    def seconds(self, now: float) -> float:
        """The sum so far."""
        return self._seconds + self._running * (now - self._since)


class Record(Protocol):
    """The attributes of a record that the flow reads; see `_core.queue.Entry`."""

    sequence: int
    attempts: int
    results: Sequence[Any] | None
    since: float


class Flow:
    """Where the time of one operator goes.

    The operator writes to it where a task waits anyway, so a record without a wait costs nothing.

    Args:
        capacity: The operator's limit.
        bound: Upper limit of records in the buffer.
        held: Returns the elements that the operator holds. Watermarks among them have no attempts.
        jobs: The records whose first attempt may start.
        counters: The operator's counts and sums.
        group: The largest number of records in a call; 0: calls are made for single records.

    Attributes:
        capacity, group: As given.
        is_ordered: Whether results wait for those of earlier elements.
        sampling: The durations of some records.
        room: The feeder's waits for room in the buffer.
        finding: Returns what gates have found about the service.
        ungrouped: The number of new records that wait for more records of their group.
        behind: The number of records that wait for an earlier one with the same key.
        at_keys: The number of records that wait for gates of their key.
        must_retry_first: As in the scheduler, which decides it.
        gate, retries, keyed, full, source: The times in which a slot is free and nothing starts, each second for one
            reason: see `Totals`.
        lacks_records: Whether one of the last three is the present reason, so the start of a call may end it.
        gate_wait: The waits of each record for gates.
        calls: The calls that are made for groups.
        consumer_seconds: The time in which outputs waited for the consumer, in seconds, as are the next sums.
        blocked_seconds: The time in which calls let no other task run.
        input_end: The instant at which the input has ended; inf: it has not.
        started_at: The instant of the last record's first start.
        backoffs: sequence -> the end of the backoff of a record that waits for its retry.
        handlers: sequence -> since when a record without a result has held its slot after its last call.
        spent: sequence -> (seconds in backoffs, seconds in earlier attempts) of a retried record without a result.
        rested_seconds: The backoffs of invocations that have ended.
        repeated_seconds: Their attempts that were retried.
        timed_out_seconds: The time of invocations that timed out, without backoffs.
        handlers_seconds: The time for which records held their slot after their last call, for `on_timeout` and
            `on_error`.
    """

    def __init__(
        self,
        capacity: int,
        bound: int,
        held: Callable[[], Iterable[Record]],
        jobs: Sized,
        counters: Counters,
        *,
        group: int,
    ) -> None:
        self.capacity = capacity
        self.group = group
        self.is_ordered = False
        self.sampling = Sampling(capacity)
        self.finding: Callable[[], str] = str
        self.room = Stopwatch()
        self.ungrouped = self.behind = self.at_keys = 0
        self.must_retry_first = False
        self.gate, self.retries = Stopwatch(), Stopwatch()
        self.keyed, self.full, self.source = Stopwatch(), Stopwatch(), Stopwatch()
        self._reason: Stopwatch | None = None  # the one that is on
        self.lacks_records = False
        self.gate_wait = Durations()
        self.calls = Calls()
        self.consumer_seconds = 0.0
        self.blocked_seconds = 0.0
        self.input_end = inf
        self.started_at = -inf
        self.backoffs: dict[int, float] = {}
        self.handlers: dict[int, float] = {}
        self.spent: dict[int, tuple[float, float]] = {}
        self.rested_seconds = 0.0
        self.repeated_seconds = 0.0
        self.timed_out_seconds = 0.0
        self.handlers_seconds = 0.0
        self._bound = bound
        self._held = held
        self._jobs = jobs
        self._counters = counters
        self._begin = (0.0, 0.0)
        self._end: tuple[float, float] | None = None
        self._supply_end: Totals | None = None
        self._supply_until = -inf
        self._over_since = inf

    def begin(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self._begin = clocks

    def end(self, clocks: tuple[float, float]) -> None:
        """The operator has ended. The clocks are no longer read."""
        self._end = clocks

    def note_free_slots(self, now: float, *, starting: int = 0, idles: bool = False) -> None:
        """Derive why slots are free from now on. Call this when all that may start now has started.

        Jobs that are left start at this instant, unless the function blocks the event loop: see `block`.

        Args:
            now: The time.
            starting: How many other records take a slot next.
            idles: Whether a worker has found nothing to start.
        """
        free = self.capacity - self._counters.running - starting
        new = len(self._jobs) + self.ungrouped
        reason = self._reason_for(free, new) if free > 0 else None
        if self.input_end < inf:
            self._end_supply(now, idles=idles, is_over=free > 0 and reason is None and not new)
        if reason is self._reason:
            return
        if self._reason is not None:
            self._reason.turn(is_on=False, now=now)
        if reason is not None:
            reason.turn(is_on=True, now=now)
        self._reason = reason
        self.lacks_records = reason in {self.keyed, self.full, self.source}

    def _reason_for(self, free: int, new: int) -> Stopwatch | None:
        """Why these slots are free, while so many new records wait. None: jobs take them, or the input has ended."""
        jobs = 0 if self.group else new  # a group that is complete has started
        reason = None
        if self._counters.at_gate:
            reason = self.gate
        elif self.must_retry_first and new > 0:
            reason = self.retries
        elif jobs >= free:
            reason = None
        elif self.at_keys:
            reason = self.gate
        elif self.behind:
            reason = self.keyed
        elif self.room.is_on:
            reason = self.full
        elif self.input_end == inf:
            reason = self.source
        return reason

    def _end_supply(self, now: float, *, idles: bool, is_over: bool) -> None:
        """End the supply if it is over, or continue it if more has happened at the same instant.

        Calls end and start in any order at one instant. The supply ends at the same instant in all of these orders.
        """
        if self._supply_end is None:
            is_later = not self._counters.running or now > max(self.input_end, self.started_at)
            was_over = self._over_since < now  # and then a call ends, or a retry starts
            if is_later and (was_over or (is_over and idles)):
                self._supply_until = -inf if was_over else now
                self._supply_end = self._supply(now, self._running(now))  # free slots are normal from here on
            self._over_since = min(now, self._over_since) if is_over else inf
        elif not is_over and now == self._supply_until:
            self._supply_end, self._over_since = None, inf

    def end_gate_wait(self, seconds: float) -> None:
        """A record has waited for a gate."""
        self.gate_wait.add(seconds)
        if len(self.gate_wait.unfolded) >= FOLD:
            self.gate_wait.fold()

    def back_off(self, record: Record, seconds: float, now: float) -> None:
        """An attempt has ended, and another one follows after these seconds."""
        rested, _ = self.spent.get(record.sequence, (0.0, 0.0))
        self.spent[record.sequence] = rested + seconds, now - record.since - rested
        self.backoffs[record.sequence] = now + seconds

    def end_retries(self, record: Record) -> float:
        """The invocation of a retried record has ended. Returns its backoffs, in seconds."""
        rested, attempts = self.spent.pop(record.sequence, (0.0, 0.0))
        self.rested_seconds += rested
        self.repeated_seconds += attempts
        return rested

    def end_handler(self, record: Record, now: float) -> None:
        """A record without a result frees its slot. If a gate has refused it, it has made no call."""
        self.handlers_seconds += now - self.handlers.pop(record.sequence, record.since)

    def block(self, seconds: float, now: float) -> None:
        """Calls have blocked the loop for this long. That is why slots were free, so no other reason counts."""
        self.blocked_seconds += seconds
        for stopwatch in (self.keyed, self.full, self.source):
            stopwatch.exclude(seconds, now)

    # The account

    def statistics(self) -> Statistics:
        """The counts so far, and the histograms."""
        histograms = self.sampling.histograms(self._counters.records)
        return Statistics(**self._counts(), **histograms, gate_wait=self.gate_wait.histogram())

    def totals(self, read_clocks: Callable[[], tuple[float, float]]) -> Totals:
        """The sums so far, without the time of running invocations: so it is equally fast with any number of them.

        Args:
            read_clocks: Returns the time and the CPU time of the operator's thread.
        """
        return self._totals(self._end or read_clocks(), 0.0)

    def verdict(self, read_clocks: Callable[[], tuple[float, float]], *, ready_since: float | None = None) -> Verdict:
        """The verdict, including the time of running invocations.

        Args:
            read_clocks: As for `totals`.
            ready_since: Since when outputs wait for the consumer; None: there are none.
        """
        clocks = self._end or read_clocks()
        totals = self._totals(clocks, self._running(clocks[0]))
        late = 0.0 if ready_since is None else clocks[0] - ready_since
        return judge(replace(totals, consumer=totals.consumer + late), self.sampling.loads())

    def _totals(self, clocks: tuple[float, float], running: float) -> Totals:
        now, cpu_seconds = clocks
        begin, begin_cpu = self._begin
        return replace(
            self._supply_end or self._supply(now, running),
            **self._counts(),
            seconds=now - begin,
            consumer=self.consumer_seconds,
            cpu=cpu_seconds - begin_cpu,
            blocked=self.blocked_seconds,
            rested_seconds=self.rested_seconds,
            repeated_seconds=self.repeated_seconds,
            timed_out_seconds=self.timed_out_seconds,
            **self.sampling.extreme_loads(),
        )

    def _counts(self) -> dict[str, Any]:
        return {**self._counters.values(), "finding": self.finding()}

    def _supply(self, now: float, running: float) -> Totals:
        """The times in which there were elements: until now, or until all records had started.

        Args:
            running: The time for which the invocations that have not ended have held slots.
        """
        busy = self._counters.latency_seconds - self.rested_seconds + self.handlers_seconds + running
        if self.group:
            busy = self.calls.seconds(now)
        return Totals(
            operators=1,
            ordered=int(self.is_ordered),
            capacity=self.capacity,
            buffer=self._bound,
            group=self.group,
            supply=now - self._begin[0],
            busy=busy,
            source=self.source.seconds(now),
            full=self.full.seconds(now),
            keyed=self.keyed.seconds(now),
            gated=self.gate.seconds(now),
            retries=self.retries.seconds(now),
        )

    def _running(self, now: float) -> float:
        """The time for which the invocations that have not ended have held slots."""
        ends, handlers = self.backoffs, self.handlers
        records = (record for record in self._held() if record.attempts and record.results is None)
        seconds = sum(ends.get(each.sequence, now) - handlers.get(each.sequence, each.since) for each in records)
        return seconds - sum(rested for rested, _ in self.spent.values())
