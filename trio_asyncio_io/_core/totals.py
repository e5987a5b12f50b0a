"""Totals: the numbers behind a verdict as sums, so that those of several operators can be added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import add, sub
from typing import Any, ClassVar

from .sums import combined
from .verdict import Evidence, LoadClass, Verdict, judge

__all__ = ["Totals"]


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
        high_calls: Calls at a high load: more than half of the capacity ran at once.
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
