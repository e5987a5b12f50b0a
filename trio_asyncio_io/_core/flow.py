"""The flow: where the time of an operator goes, as totals for a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

from .histogram import Durations
from .queue import Entry, Order
from .samples import FOLD, Sampling, extreme_loads_of, histograms_of, loads_of
from .statistics import Counters, Statistics
from .verdict import Totals, Verdict, judge

__all__ = ["Flow"]


class Stopwatch:
    """The time in which at least one task waited for something.

    Attributes:
        is_on: Whether a task waits now.
    """

    __slots__ = ("_seconds", "_since", "_tasks", "is_on")

    def __init__(self) -> None:
        self.is_on = False
        self._tasks = 0
        self._since = 0.0
        self._seconds = 0.0

    def begin(self, now: float) -> None:
        """A task starts to wait."""
        if not self._tasks:
            self._since = now
        self._tasks += 1
        self.is_on = True

    def end(self, now: float) -> None:
        """A task no longer waits."""
        self._tasks -= 1
        if not self._tasks:
            self._seconds += now - self._since
            self.is_on = False

    def seconds(self, now: float) -> float:
        """The time so far."""
        return self._seconds + (now - self._since if self._tasks else 0.0)


class Calls:
    """The time for which calls have run, summed over all calls."""

    __slots__ = ("_running", "_seconds", "_since")

    def __init__(self) -> None:
        self._running = 0
        self._since = 0.0
        self._seconds = 0.0

    def change(self, number: int, now: float) -> None:
        """Record that `number` more calls run; below 0, fewer."""
        self._seconds, self._since = self.seconds(now), now
        self._running += number

    def seconds(self, now: float) -> float:
        """The sum so far."""
        return self._seconds + self._running * (now - self._since)


class Flow:
    """Where the time of one operator goes.

    Written where a task waits anyway, so a record that nobody waits for costs nothing.

    Args:
        capacity: The operator's limit.
        bound: Upper limit of records in the buffer.
        order: Holds the invocations that have not ended.
        counters: The operator's counts and sums.
        group: The largest number of records in a call; 0: calls are made for single records.

    Attributes:
        capacity, group: As given.
        is_ordered: Whether results wait for those of earlier elements.
        sampling: The durations of some records.
        room: The feeder's waits for room in the buffer.
        full: The parts of these waits in which a slot was free, and the same after the end of the input.
        consumer_seconds: The time in which outputs waited for the consumer.
        gate: The waits of records for a gate while a slot is free for them, and for a gate of their key while no other
            record could use the free slots.
        at_keys: The records that wait for gates of their key.
        gate_wait: The waits of each record for gates.
        retries: The time in which new records wait for retries, while a slot is free for them.
        lanes: The waits of records for an earlier one with the same key.
        blocked_seconds: The time in which calls let no other task run.
        input_end: When the input has ended; inf: it has not.
        backoffs: By sequence, when the backoff of a record ends or has ended whose retry has not started.
        spent: By sequence, of a record that has been retried and has no result: its backoffs, and its attempts before
            the present one, in seconds.
        rested_seconds: The backoffs of invocations that have ended.
        repeated_seconds: Their attempts that were retried.
        timed_out_seconds: The time of invocations that timed out, without backoffs.
        handlers_seconds: The time that records held their slot after their last call: `on_timeout` and `on_error`.
    """

    def __init__(self, capacity: int, bound: int, order: Order, counters: Counters, *, group: int) -> None:
        self.capacity = capacity
        self.group = group
        self.is_ordered = False
        self.sampling = Sampling(capacity)
        self.room = Stopwatch()
        self.full = Stopwatch()
        self.consumer_seconds = 0.0
        self.gate = Stopwatch()
        self.at_keys = 0
        self.gate_wait = Durations()
        self.lanes = Stopwatch()
        self.retries = Stopwatch()
        self.blocked_seconds = 0.0
        self.input_end = inf
        self.backoffs: dict[int, float] = {}
        self.spent: dict[int, tuple[float, float]] = {}
        self.rested_seconds = 0.0
        self.repeated_seconds = 0.0
        self.timed_out_seconds = 0.0
        self.handlers_seconds = 0.0
        self._bound = bound
        self._order = order
        self._counters = counters
        self._begin = (0.0, 0.0)
        self._end: tuple[float, float] | None = None
        self._supply_end: Totals | None = None
        self._calls = Calls()  # those for groups

    def begin(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self._begin = clocks

    def end(self, clocks: tuple[float, float]) -> None:
        """The operator has ended. The clocks are not read any more."""
        self._end = clocks

    def settle(
        self, now: float, jobs: int, *, ending: int = 0, waits_for_retries: bool = False, idles: bool = False
    ) -> None:
        """Derive what keeps slots free from now on. Call this when all that may start now has started.

        A job that could start but does not, because the function blocks the event loop, is no lack. In front of records
        that wait for their key, or for its gates, the jobs leave the other slots free.

        Args:
            now: The time.
            jobs: How many records can start.
            ending: How many calls are about to free their slots.
            waits_for_retries: Whether new records wait for retries.
            idles: Whether a worker has found nothing to start.
        """
        free = self.capacity - self._counters.running + ending
        is_gated, at_keys, has_ended = self._counters.at_gate > 0, self.at_keys > 0, self.input_end < inf
        waits_for_retries = waits_for_retries and free > 0 and jobs > 0
        lacks = jobs < free if self.lanes.is_on or at_keys else jobs == 0 and free > 0
        lacks = lacks and not is_gated and not waits_for_retries
        is_short = lacks and (self.room.is_on or (has_ended and self.lanes.is_on))
        is_held = is_gated or (lacks and at_keys and (is_short or has_ended))
        for stopwatch, is_on in ((self.retries, waits_for_retries), (self.full, is_short), (self.gate, is_held)):
            if stopwatch.is_on is not is_on:
                (stopwatch.begin if is_on else stopwatch.end)(now)
        if idles and lacks and has_ended and not is_short and not at_keys and self._supply_end is None:
            self._supply_end = self._supply(now, self._running(now))  # free slots are normal from here on

    def wait_for_gate_of_key(self) -> None:
        """A record starts to wait for a gate of its key."""
        self.at_keys += 1

    def end_gate_wait(self, seconds: float) -> None:
        """A record has waited for a gate."""
        self.gate_wait.add(seconds)
        if len(self.gate_wait.unfolded) >= FOLD:
            self.gate_wait.fold()

    def end_wait_for_gate_of_key(self, seconds: float) -> None:
        """A record has waited for a gate of its key."""
        self.at_keys -= 1
        self.end_gate_wait(seconds)

    def back_off(self, entry: Entry, seconds: float, now: float) -> None:
        """An attempt has ended, and another one follows after these seconds."""
        rested, _ = self.spent.get(entry.sequence, (0.0, 0.0))
        self.spent[entry.sequence] = rested + seconds, now - entry.since - rested
        self.backoffs[entry.sequence] = now + seconds

    def end_retries(self, entry: Entry) -> float:
        """The invocation of a record has ended that has been retried. Returns its backoffs, in seconds."""
        rested, attempts = self.spent.pop(entry.sequence, (0.0, 0.0))
        self.rested_seconds += rested
        self.repeated_seconds += attempts
        return rested

    def start_call(self, now: float) -> None:
        """A call for a group starts."""
        self._calls.change(1, now)

    def end_call(self, now: float) -> None:
        """A call for a group has ended."""
        self._calls.change(-1, now)

    def block(self, seconds: float) -> None:
        """Calls have let no other task run for this long."""
        self.blocked_seconds += seconds

    # The account

    def statistics(self) -> Statistics:
        """The counts so far, and the histograms."""
        histograms: dict[str, Any] = histograms_of(self.sampling, self._counters.records)
        return Statistics(**self._counters.values(), **histograms, gate_wait=self.gate_wait.histogram())

    def totals(self, read_clocks: Callable[[], tuple[float, float]]) -> Totals:
        """The sums so far. Takes the same short time however many invocations run: their time does not count yet.

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
        return judge(replace(totals, consumer=totals.consumer + late), loads_of(self.sampling))

    def _totals(self, clocks: tuple[float, float], running: float) -> Totals:
        now, cpu_seconds = clocks
        begin, begin_cpu = self._begin
        return replace(
            self._supply_end or self._supply(now, running),
            **self._counters.values(),
            seconds=now - begin,
            consumer=self.consumer_seconds,
            cpu=cpu_seconds - begin_cpu,
            rested_seconds=self.rested_seconds,
            repeated_seconds=self.repeated_seconds,
            timed_out_seconds=self.timed_out_seconds,
            **extreme_loads_of(self.sampling),
        )

    def _supply(self, now: float, running: float) -> Totals:
        """The times for which there were elements: until now, or until all records had started.

        Args:
            running: The time for which the invocations that have not ended have held slots.
        """
        busy = self._counters.latency_seconds - self.rested_seconds + self.handlers_seconds + running
        if self.group:
            busy = self._calls.seconds(now)
        begin, input_end = self._begin[0], min(now, self.input_end)
        return Totals(
            operators=1,
            ordered=int(self.is_ordered),
            capacity=self.capacity,
            buffer=self._bound,
            group=self.group,
            supply=now - begin,
            busy=busy,
            source=input_end - begin - self.room.seconds(now),
            full=self.full.seconds(now),
            keyed=self.lanes.seconds(now),
            gated=self.gate.seconds(now),
            retries=self.retries.seconds(now),
            blocked=self.blocked_seconds,
        )

    def _running(self, now: float) -> float:
        """The time for which the invocations that have not ended have held slots."""
        ends = self.backoffs
        entries = (entry for entry in self._order.entries() if entry.attempts and entry.results is None)
        seconds = sum(ends.get(entry.sequence, now) - entry.since for entry in entries)
        return seconds - sum(rested for rested, _ in self.spent.values())
