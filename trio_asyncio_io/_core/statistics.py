"""Counts and times of one operator: frozen for users, mutable for the ledger, and as sums of several operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from operator import add, sub
from typing import Any, ClassVar

from .histogram import Histogram
from .verdict import Evidence, LoadClass, Verdict, judge

__all__ = ["Counters", "Statistics", "Totals", "combined"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counts and times of an operator at one moment.

    An invocation that has ended counts once, as completed, failed, timed_out or cancelled. Times are seconds on Trio's
    clock. With the option `group`, `running`, `peak_running` and `throttled` count calls. All other counts and times
    are those of records: ten records that share a call of 1 s have a latency of 10 s in sum.

    Attributes:
        running: Calls and handlers that run now, each in a slot. A record that waits has none.
        buffered: Records accepted and not yet received by the consumer, now.
        peak_running: The highest `running` so far; never above the capacity.
        peak_buffered: The highest `buffered` so far; never above the buffer.
        emitted: Outputs that the consumer has received, without watermarks.
        completed: Invocations whose function returned a result.
        retried: Attempts after the first.
        timed_out: Invocations that their deadline ended, whatever `on_timeout` did next.
        failed: Invocations whose last attempt raised, whatever `on_error` did next.
        skipped: Elements dropped by `on_error="skip"`; each one also counts as failed or timed_out.
        cancelled: Invocations cancelled because the operator stopped.
        slot_wait_seconds: The sum of the waits for a slot, before first calls and retries, without
            `gate_wait_seconds` and `group_wait_seconds`.
        head_wait_seconds: The sum of the waits of completed records for earlier ones in the output order.
        retries_denied: Retries that the retry budget refused.
        dead_lettered: Elements that became dead letters; each one also counts as failed or timed_out.
        throttled: Calls after which the service asked for fewer calls, such as with a status 429. Counted if there are
            gates.
        gate_wait_seconds: The sum of the waits of calls, retries included, that a gate held back.
        hedged: Further calls that `hedged` has made for elements of this operator. Calls that several elements share
            count for the operator whose element started them.
        hedges_won: Those of them that gave the result.
        refused: Elements that a gate refused before their first attempt; each one also counts as failed.
        longest_seconds: The longest of the durations in `latency`. It is exact.
        seconds_by_gate: The parts of `gate_wait_seconds`, by the class of the gate, such as {"RateLimit": 38.0}. If
            several gates hold a call back, its wait counts for the one with the longest delay.
        groups: Calls made for groups, retries included. 0 without the option `group`.
        grouped: Records in these calls. Retries count again.
        group_wait_seconds: The sum of the waits of records for more records of their group, before first calls and
            retries. These waits are in no other sum.
        refusal: Why a gate has refused a call, of the latest one; "": none was refused. Retries are included.
        latency_seconds: The sum of the durations of invocations, attempts and backoffs included, until the function
            returned, its last attempt raised or the element timed out, without waits for a gate or a slot.
            Those that were cancelled, or that a gate refused before their first attempt, do not count.
        latency: The durations whose sum is `latency_seconds`.
        slot_wait: The waits for a slot before the first calls of records. Those of retries are in `slot_wait_seconds`.
        head_wait: The waits whose sum is `head_wait_seconds`, of records that have left the queue.
        gate_wait: The waits whose sum is `gate_wait_seconds`, of the calls that a gate held back.

    The sums are exact, and so is the number of durations in `latency`. `gate_wait` has each wait. The other histograms
    have the first 500 records, and then one in nineteen, which represents those between.
    """

    running: int = 0
    buffered: int = 0
    peak_running: int = 0
    peak_buffered: int = 0
    emitted: int = 0
    completed: int = 0
    retried: int = 0
    timed_out: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    slot_wait_seconds: float = 0.0
    head_wait_seconds: float = 0.0
    retries_denied: int = 0
    dead_lettered: int = 0
    throttled: int = 0
    gate_wait_seconds: float = 0.0
    latency_seconds: float = 0.0
    latency: Histogram = field(default_factory=Histogram)
    slot_wait: Histogram = field(default_factory=Histogram)
    head_wait: Histogram = field(default_factory=Histogram)
    gate_wait: Histogram = field(default_factory=Histogram)
    hedged: int = 0
    hedges_won: int = 0
    refused: int = 0
    longest_seconds: float = 0.0
    seconds_by_gate: Mapping[str, float] = field(default_factory=dict, hash=False)
    groups: int = 0
    grouped: int = 0
    group_wait_seconds: float = 0.0
    refusal: str = ""

    @property
    def group_size(self) -> float:
        """The mean number of records in a call that was made for a group. 0.0: there were none."""
        return self.grouped / self.groups if self.groups else 0.0


@dataclass(slots=True)
class Counters:
    """The counts and sums of `Statistics`, but mutable."""

    running: int = 0
    buffered: int = 0
    peak_running: int = 0
    peak_buffered: int = 0
    emitted: int = 0
    completed: int = 0
    retried: int = 0
    timed_out: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    slot_wait_seconds: float = 0.0
    head_wait_seconds: float = 0.0
    retries_denied: int = 0
    dead_lettered: int = 0
    throttled: int = 0
    gate_wait_seconds: float = 0.0
    latency_seconds: float = 0.0
    hedged: int = 0
    hedges_won: int = 0
    refused: int = 0
    longest_seconds: float = 0.0
    seconds_by_gate: Mapping[str, float] = field(default_factory=dict)
    groups: int = 0
    grouped: int = 0
    group_wait_seconds: float = 0.0
    refusal: str = ""
    at_gate: int = 0

    def freeze(self, histograms: Mapping[str, Any]) -> Statistics:
        """The current values, and these histograms."""
        values = asdict(self)
        del values["at_gate"]
        return Statistics(**values, **histograms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Where the time of one or several operators has gone, as sums. Experimental: it may change in any release.

    `+` adds those of several operators, such as one in each process: sums are added, `capacity`, `buffer`, `peak` and
    `longest` are the highest, and `refusal` is one of those. `-` gives what was added after earlier totals of the same
    operator. Times are in seconds. `explain()` of the sum describes the mean operator.

    Args:
        operators: How many operators these are.
        capacity: Upper limit of invocations that run at once in an operator.
        buffer: Upper limit of records that an operator holds.
        peak: The most invocations that ran at once in an operator.
        longest: The longest duration of an invocation.
        seconds: The length of the runs so far.
        calls: Invocations that have ended, without records that a gate refused before their first attempt.
        failed: Those of them that failed or timed out.
        refused: Records that a gate refused before their first attempt.
        latency: The time for which they held slots: their durations without backoffs.
        supply: The part of `seconds` up to the moment when the input had ended and all records had started.
        busy: The time for which invocations held a slot.
        source: The time in which the input had not ended and the buffer had room.
        withheld: The part of it in which the input could not be read, because outputs were being written.
        starved: The time in which the buffer was full and a slot was free.
        consumer: The time in which outputs waited for the consumer.
        cpu: The CPU time of the thread of the loop and, where the system counts it, the time it waited for the CPU.
        keyed: The time in which a record waited for an earlier one with the same key.
        gated: The time in which a gate held back at least one call.
        gate_waits: The waits for gates, summed over all calls.
        seconds_by_gate: The same, by the class of the gate; see `Statistics`.
        refusal: Why a gate has refused a call; see `Statistics`.
        repeated: The time of attempts that were retried.
        rested: The time that these records spent in backoffs, without a slot.
        timed_out: The time of invocations that their deadline ended.
        retried: Attempts after the first.
        throttled: Calls after which the service asked for fewer calls, counted if there are gates.
        hedged: Further calls that `hedged` has made.
        hedges_won: Those of them that gave the result.
        low_calls: Calls at a low load: at most a quarter of the capacity ran at once.
        low_latency: Their durations.
        high_calls: Calls at a high load: more than half of the capacity ran at once, about. These four are those of a
            sample, scaled, without calls that failed or were answered from a cache.
        high_latency: Their durations.
        groups: Calls made for groups; see `Statistics`.
        grouped: Records in these calls.
        group_waits: The waits of records for more records of their group.
    """

    HIGHEST: ClassVar = ("capacity", "buffer", "peak", "longest", "refusal")  # not added

    operators: int = 0
    capacity: int = 0
    buffer: int = 0
    peak: int = 0
    longest: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    failed: int = 0
    refused: int = 0
    latency: float = 0.0
    supply: float = 0.0
    busy: float = 0.0
    source: float = 0.0
    withheld: float = 0.0
    starved: float = 0.0
    consumer: float = 0.0
    cpu: float = 0.0
    keyed: float = 0.0
    gated: float = 0.0
    gate_waits: float = 0.0
    repeated: float = 0.0
    rested: float = 0.0
    timed_out: float = 0.0
    retried: int = 0
    throttled: int = 0
    hedged: int = 0
    hedges_won: int = 0
    low_calls: int = 0
    low_latency: float = 0.0
    high_calls: int = 0
    high_latency: float = 0.0
    groups: int = 0
    grouped: int = 0
    group_waits: float = 0.0
    seconds_by_gate: Mapping[str, float] = field(default_factory=dict, hash=False)
    refusal: str = ""

    def __add__(self, other: Totals) -> Totals:
        return self._with(add, other)

    def __sub__(self, earlier: Totals) -> Totals:
        return self._with(sub, earlier)

    def explain(self) -> Verdict:
        """What limits these operators, and what to change."""
        return judge(self.evidence())

    def evidence(self) -> Evidence:
        """The numbers as shares."""
        return Evidence(
            capacity=self.capacity,
            buffer=self.buffer,
            seconds=self.seconds,
            calls=self.calls,
            in_flight=_share(self.busy, self.supply),
            latency=_share(self.latency, self.calls),
            longest=self.longest,
            source_wait=_share(self.source, self.supply),
            starved=_share(self.starved, self.supply),
            consumer=_share(self.consumer, self.seconds),
            cpu=_share(self.cpu, self.seconds),
            loads=self._loads(),
            keyed=_share(self.keyed, self.supply),
            repeated=min(1.0, _share(self.repeated, self.latency)),
            rested=_share(self.rested, self.latency + self.rested),
            retried=self.retried,
            failed=self.failed,
            refused=self.refused,
            refusal=self.refusal,
            timed_out=_share(self.timed_out, self.latency),
            peak=self.peak,
            gated=_share(self.gated, self.supply),
            gates=tuple(self.seconds_by_gate.items()),
            withheld=_share(self.withheld, self.supply),
            operators=self.operators,
            groups=self.groups,
            grouped=self.grouped,
            group_wait=_share(self.group_waits, self.grouped),
        )

    def _loads(self) -> tuple[LoadClass, ...]:
        """The mean latency at a low and at a high load."""
        classes = (
            (max(1, self.capacity // 4), self.low_calls, self.low_latency),
            (self.capacity, self.high_calls, self.high_latency),
        )
        return tuple(LoadClass(load, calls, latency / calls) for load, calls, latency in classes if calls)

    def _with(self, operation: Callable[[float, float], float], other: Totals) -> Totals:
        values: dict[str, Any] = {
            each.name: operation(getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
            if each.name not in {*self.HIGHEST, "seconds_by_gate"}
        }
        highest = {name: max(getattr(self, name), getattr(other, name)) for name in self.HIGHEST}
        by_gate = combined(operation, self.seconds_by_gate, other.seconds_by_gate)
        return Totals(**values | highest, seconds_by_gate=by_gate)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def combined(
    operation: Callable[[float, float], float], first: Mapping[str, float], second: Mapping[str, float]
) -> dict[str, float]:
    """The operation applied to the numbers of each name. A missing name counts as 0.0."""
    names = dict.fromkeys([*first, *second])
    return {name: operation(first.get(name, 0.0), second.get(name, 0.0)) for name in names}
