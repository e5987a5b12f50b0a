"""Counts and times of one operator: frozen for users, mutable for the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .histogram import Histogram

__all__ = ["Counters", "Statistics"]


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
