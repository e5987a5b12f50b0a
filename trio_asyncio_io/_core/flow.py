"""The flow: where the time of an operator goes, as evidence for a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .histogram import Durations, Histogram
from .queue import Entry, StreamElementQueue
from .samples import FOLD, Sampling, extreme_loads_of, histograms_of, loads_of
from .statistics import Counters, Totals
from .verdict import Evidence

__all__ = ["Flow"]


class Wait:
    """The time in which at least one task waited for something."""

    __slots__ = ("_seconds", "_since", "_tasks")

    def __init__(self) -> None:
        self._tasks = 0
        self._since = 0.0
        self._seconds = 0.0

    def begin(self, now: float) -> None:
        """A task starts to wait."""
        if not self._tasks:
            self._since = now
        self._tasks += 1

    def end(self, now: float) -> None:
        """A task no longer waits."""
        self._tasks -= 1
        if not self._tasks:
            self._seconds += now - self._since

    @property
    def is_on(self) -> bool:
        """Whether a task waits now."""
        return self._tasks > 0

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
        """So many more calls run."""
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
        queue: Holds the invocations that have not ended.
        counters: The operator's counts and sums.

    Attributes:
        capacity: As given.
        sampling: The durations of some records.
        room: The feeder's waits for room in the buffer.
        starved: The parts of these waits in which a slot was free.
        consumer_seconds: The time in which outputs waited for the consumer.
        gate: The waits of records for a gate while a slot is free for them, and for a gate of their key while no other
            record could use the free slots.
        gate_wait: The waits of each record for gates.
        lanes: The waits of records for an earlier one with the same key.
        backoffs: By sequence, when the backoff of a record ends or has ended whose retry has not started.
        spent: By sequence, of a record that has been retried and has no result: its backoffs, and its attempts before
            the present one, in seconds.
        rested_seconds: The backoffs of invocations that have ended.
        repeated_seconds: Their attempts that were retried.
        timed_out_seconds: The time of invocations that timed out, without backoffs.
        handlers_seconds: The time that records held their slot after their last call: `on_timeout` and `on_error`.
    """

    def __init__(self, capacity: int, queue: StreamElementQueue, counters: Counters) -> None:
        self.sampling = Sampling(capacity)
        self.room = Wait()
        self.starved = Wait()
        self.consumer_seconds = 0.0
        self.gate = Wait()
        self._at_keys = 0  # records that wait for gates of their key
        self._is_shut = False  # whether they count in `gate`: slots are free, and no other record can start
        self.gate_wait = Durations()
        self.lanes = Wait()
        self.backoffs: dict[int, float] = {}
        self.spent: dict[int, tuple[float, float]] = {}
        self.rested_seconds = 0.0
        self.repeated_seconds = 0.0
        self.timed_out_seconds = 0.0
        self.handlers_seconds = 0.0
        self.capacity = capacity
        self._queue = queue
        self._counters = counters
        self._begin = (0.0, 0.0)
        self._end: tuple[float, float] | None = None
        self._input_end: float | None = None
        self._supply_end: tuple[float, float, float, float] | None = None
        self._running_calls: Calls | None = None  # None: each call has one record

    def count_calls(self) -> None:
        """From now on, a call may have several records, and `change_calls` is called for each."""
        self._running_calls = Calls()

    def change_calls(self, number: int, now: float) -> None:
        """A call starts (1) or ends (-1)."""
        assert self._running_calls is not None
        self._running_calls.change(number, now)

    def begin(self, clocks: tuple[float, float]) -> None:
        """The operator starts. `clocks` are the time and the CPU time of its thread."""
        self._begin = clocks

    def end(self, clocks: tuple[float, float]) -> None:
        """The operator has ended. The clocks are not read any more."""
        self._end = clocks

    def end_input(self, now: float, *, jobs: int) -> None:
        """The input has ended. So many records can start."""
        self._input_end = now
        if not self._has_free_slots(jobs):
            return
        if self.lanes.is_on:
            self.starved.begin(now)
        self._shut(now)

    def wait_for_room(self, now: float, *, jobs: int) -> None:
        """The feeder starts to wait for room. So many records can start."""
        self.room.begin(now)
        self.check_slots(now, jobs=jobs)

    def have_room(self, now: float) -> None:
        """The feeder no longer waits for room."""
        self.room.end(now)
        if self.starved.is_on:
            self.starved.end(now)
        self._open(now)

    def end_gate_wait(self, seconds: float, now: float) -> None:
        """A record has waited for a gate."""
        self.gate.end(now)
        self._add_wait(seconds)

    def wait_for_gate_of_key(self) -> None:
        """A record starts to wait for a gate of its key."""
        self._at_keys += 1

    def end_wait_for_gate_of_key(self, seconds: float, now: float) -> None:
        """A record has waited for a gate of its key."""
        self._at_keys -= 1
        if not self._at_keys:
            self._open(now)
        self._add_wait(seconds)

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

    def _add_wait(self, seconds: float) -> None:
        self.gate_wait.add(seconds)
        if len(self.gate_wait.unfolded) >= FOLD:
            self.gate_wait.fold()

    def check_slots(self, now: float, *, jobs: int) -> None:
        """A slot may be free for which there is no record, because so many can start and no more come now."""
        is_waiting = self.room.is_on or (self._input_end is not None and self.lanes.is_on)
        if is_waiting and self._has_free_slots(jobs) and not self.starved.is_on:
            self.starved.begin(now)
            self._shut(now)

    def _has_free_slots(self, jobs: int) -> bool:
        """Whether slots are free for lack of records, of which so many can start.

        Records that can start but do not, because the function blocks the event loop, are no lack. In front of records
        that wait for their key, or for its gates, those that can start leave the other slots free.
        """
        free = self.capacity - self._counters.running
        return jobs < free if self.lanes.is_on or self._at_keys else not jobs and free > 0

    def idle(self, now: float) -> None:
        """A slot becomes free, and there is no record to start."""
        if self._counters.at_gate:  # a job at a gate waits for the gate, so the slots are not free for lack of jobs
            return
        if self.room.is_on or (self._input_end is not None and self.lanes.is_on):
            if not self.starved.is_on:
                self.starved.begin(now)
            self._shut(now)
        elif self._input_end is not None and self._at_keys:
            self._shut(now)
        elif self._input_end is not None and self._supply_end is None:
            self._supply_end = self._supply(now, self._running(now))  # free slots are normal from here on

    def start_after_wait(self, now: float) -> None:
        """A record starts that has waited for more than a slot."""
        if self._counters.running >= self.capacity:
            self._open(now)

    def _shut(self, now: float) -> None:
        if self._at_keys and not self._is_shut:
            self._is_shut = True
            self.gate.begin(now)

    def _open(self, now: float) -> None:
        if self._is_shut:
            self._is_shut = False
            self.gate.end(now)

    def histograms(self) -> dict[str, Histogram]:
        """The histograms, by their names in `Statistics`."""
        return {**histograms_of(self.sampling, self._calls), "gate_wait": self.gate_wait.histogram()}

    def evidence(self, read_clocks: Callable[[], tuple[float, float]], *, ready_since: float | None = None) -> Evidence:
        """The numbers so far, with those of the invocations that run.

        Args:
            read_clocks: Returns the time and the CPU time of the operator's thread.
            ready_since: Since when outputs wait for the consumer; None: there are none.
        """
        clocks = self._end or read_clocks()
        totals = self._totals(clocks, self._supply_end or self._supply(clocks[0], self._running(clocks[0])))
        late = 0.0 if ready_since is None else clocks[0] - ready_since
        totals = replace(totals, consumer=totals.consumer + late)
        return replace(totals.evidence(), loads=loads_of(self.sampling), running=self._counters.running)

    def totals(self, read_clocks: Callable[[], tuple[float, float]]) -> Totals:
        """The sums so far, without the invocations that run. Takes the same short time however many there are."""
        clocks = self._end or read_clocks()
        return self._totals(clocks, self._supply_end or self._supply(clocks[0], 0.0))

    def _totals(self, clocks: tuple[float, float], supply: tuple[float, float, float, float]) -> Totals:
        counters = self._counters
        now, cpu_seconds = clocks
        begin, begin_cpu = self._begin
        supply_end, busy, source_wait, starved = supply
        return Totals(
            operators=1,
            capacity=self.capacity,
            buffer=self._queue.bound,
            peak=counters.peak_running,
            seconds=now - begin,
            longest=counters.longest_seconds,
            calls=self._calls,
            failed=counters.failed + counters.timed_out - counters.refused,
            refused=counters.refused,
            refusal=counters.refusal,
            latency=counters.latency_seconds - self.rested_seconds,
            supply=supply_end - begin,
            busy=busy,
            source=source_wait,
            starved=starved,
            consumer=self.consumer_seconds,
            cpu=cpu_seconds - begin_cpu,
            keyed=self.lanes.seconds(supply_end),
            gated=self.gate.seconds(supply_end),
            gate_waits=counters.gate_wait_seconds,
            seconds_by_gate=counters.seconds_by_gate,
            repeated=self.repeated_seconds,
            rested=self.rested_seconds,
            timed_out=self.timed_out_seconds,
            retried=counters.retried,
            throttled=counters.throttled,
            hedged=counters.hedged,
            hedges_won=counters.hedges_won,
            groups=counters.groups,
            grouped=counters.grouped,
            group_waits=counters.group_wait_seconds,
            **extreme_loads_of(self.sampling),
        )

    @property
    def _calls(self) -> int:
        """Invocations that have ended and made a call."""
        counters = self._counters
        return counters.completed + counters.failed + counters.timed_out - counters.refused

    def _running(self, now: float) -> float:
        """The time for which the invocations that have not ended have held slots."""
        ends = self.backoffs
        entries = (entry for entry in self._queue.entries() if entry.attempts and entry.results is None)
        seconds = sum(ends.get(entry.sequence, now) - entry.since for entry in entries)
        return seconds - sum(rested for rested, _ in self.spent.values())

    def _supply(self, now: float, running: float) -> tuple[float, float, float, float]:
        """The time, and up to it the busy time of all slots, the wait for the source, and the time without jobs."""
        if self._running_calls is None:
            busy = self._counters.latency_seconds - self.rested_seconds + self.handlers_seconds + running
        else:
            busy = self._running_calls.seconds(now)
        input_end = now if self._input_end is None else self._input_end
        source_wait = input_end - self._begin[0] - self.room.seconds(now)
        return now, busy, source_wait, self.starved.seconds(now)
