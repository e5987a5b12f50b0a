"""The account of an operator: one declaration of its counts, for users, for the ledger and for sums of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from operator import add, itemgetter, sub
from typing import Any, ClassVar, Final, Self

from .._values.describe import duration
from .._values.public import share_descriptions
from .histogram import Histogram

# As an argument that type checkers do not see: for them, `Counters` could not be written to otherwise
FROZEN: Final[dict[str, bool]] = {"frozen": True}


@dataclass(slots=True, kw_only=True, repr=False, **FROZEN)
class Counts:
    """The counts and the sums of waits of one operator, or of several.

    `+` adds the counts of several operators, such as one in each process: for the names in `HIGHEST`, the highest value
    counts, and for those in `LATEST`, the last text. `-` gives the increase since an earlier moment, for the same
    operators: the names in `CONSTANT` and `LATEST` stay as they are. `repr` shows what is not zero.

    A new count is one line here: `Statistics`, `Totals`, their sums, reports and Spark's metrics then have it.

    Args:
        emitted: Outputs that the consumer has received, without watermarks.
        completed: Invocations whose function returned a result.
        late: Results that the function returned after its deadline had cancelled it; each one also counts as completed.
            The usual cause is a bare `except:` around the call, which catches the cancellation.
        failed: Invocations whose last attempt raised, whatever `on_error` did next.
        timed_out: Invocations that their deadline ended, whatever `on_timeout` did next.
        retried: Attempts after the first.
        skipped: Elements dropped by `on_error="skip"`; each one also counts as failed or timed_out.
        dead_lettered: Elements that became dead letters; each one also counts as failed or timed_out.
        cancelled: Invocations cancelled because the operator stopped.
        retries_denied: Retries that the retry budget refused.
        refused: Elements that a gate refused before their first attempt; each one also counts as failed.
        refusal: Why a gate refused the latest call that was refused, retries included; "": none was refused.
        finding: What a gate such as `Auto` has found about the service; "": nothing, or the gates of a `PerKey` have
            more than one key. In a sum, the finding of the last operator that has one.
        throttled: Calls after which the service requested fewer calls, such as with a status 429. Counted if there are
            gates.
        known: Elements that needed no call, because their results were in a restored snapshot or are remembered, such
            as by `policies.persistent`.
        hedged: Second calls that `hedged` has made for elements of this operator. Calls that several elements share
            count for the operator whose element started them.
        hedges_won: Second calls that gave the result.
        groups: Calls made for groups, retries included. 0 without the option `group`.
        grouped: Records in these calls. Retries count again.
        running: Calls and handlers that run now, each in a slot. A record that waits has none.
        buffered: Records accepted and not yet received by the consumer, now.
        at_gate: Records that a gate holds back now, while a slot is free for them.
        peak_running: The highest `running` so far; never above the capacity.
        peak_buffered: The highest `buffered` so far; never above the buffer.
        latency_seconds: The sum of the durations of invocations, attempts and backoffs included, until the function
            returned, its last attempt raised or the element timed out, without waits for a gate or a slot.
            Those that were cancelled, or that a gate refused before their first attempt, do not count.
        longest_seconds: The longest duration of an invocation. It is exact.
        slot_wait_seconds: The sum of the waits for a slot, before first calls and retries, without
            `gate_wait_seconds` and `group_wait_seconds`.
        group_wait_seconds: The sum of the waits of records for more records of their group, before first calls and
            retries. These waits are in no other sum.
        gate_wait_seconds: The sum of the waits of calls, retries included, that a gate held back.
        seconds_by_gate: The parts of `gate_wait_seconds`, by the gate's class and name, such as
            {"RateLimit 'tokens'": 38.0}. If several gates hold a call back, its wait counts for the one with the
            longest delay.
        head_wait_seconds: The sum of the waits of completed records for earlier ones in the output order.
    """

    HIGHEST: ClassVar[tuple[str, ...]] = (
        "peak_running",
        "peak_buffered",
        "longest_seconds",
        "capacity",
        "buffer",
        "group",
    )

    LATEST: ClassVar[tuple[str, ...]] = ("refusal", "finding")

    CONSTANT: ClassVar[tuple[str, ...]] = ("operators", "ordered")

    emitted: int = 0
    completed: int = 0
    late: int = 0
    failed: int = 0
    timed_out: int = 0
    retried: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    cancelled: int = 0
    retries_denied: int = 0
    refused: int = 0
    refusal: str = ""
    finding: str = ""
    throttled: int = 0
    known: int = 0
    hedged: int = 0
    hedges_won: int = 0
    groups: int = 0
    grouped: int = 0
    running: int = 0
    buffered: int = 0
    at_gate: int = 0
    peak_running: int = 0
    peak_buffered: int = 0
    latency_seconds: float = 0.0
    longest_seconds: float = 0.0
    slot_wait_seconds: float = 0.0
    group_wait_seconds: float = 0.0
    gate_wait_seconds: float = 0.0
    seconds_by_gate: Mapping[str, float] = field(default_factory=dict, hash=False)
    head_wait_seconds: float = 0.0

    def __add__(self, other: Self) -> Self:
        return self._with(add, other)

    def __sub__(self, earlier: Self) -> Self:
        return self._with(sub, earlier)

    def __repr__(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        shown = ", ".join(f"{name}={_rounded(value)!r}" for name, value in values.items() if value != type(value)())
        return f"{type(self).__name__}({shown})"

    def values(self) -> dict[str, Any]:
        """The counts by name, without those of a subclass."""
        found = {each.name: getattr(self, each.name) for each in fields(Counts)}
        return {**found, "seconds_by_gate": dict(self.seconds_by_gate)}

    @property
    def done(self) -> int:
        """Elements that are finished, with or without a result."""
        return self.completed + self.failed + self.timed_out + self.known

    @property
    def records(self) -> int:
        """Records whose invocation has ended, and for which at least one call was made."""
        return self.completed + self.failed + self.timed_out - self.refused

    @property
    def calls(self) -> int:
        """Calls for these records and, with groups, for those that run. Retries are calls of their own."""
        return self.groups or self.records + self.retried

    @property
    def without_result(self) -> int:
        """How many of `records` failed or timed out."""
        return self.failed + self.timed_out - self.refused

    @property
    def group_size(self) -> float:
        """The mean number of records in a call that was made for a group. 0.0: there were none."""
        return self.grouped / self.groups if self.groups else 0.0

    def _with(self, operation: Callable[[Any, Any], Any], other: Self) -> Self:
        names = [each.name for each in fields(self)]
        return type(self)(**{name: self._merged(name, operation, getattr(other, name)) for name in names})

    def _merged(self, name: str, operation: Callable[[Any, Any], Any], other: Any) -> Any:
        own = getattr(self, name)
        if name in self.HIGHEST:
            return max(own, other)
        if name in self.LATEST:
            return own if operation is sub else other or own
        if operation is sub and name in self.CONSTANT:
            return own
        if isinstance(own, Mapping):
            keys = dict.fromkeys([*own, *other])
            return {key: operation(own.get(key, 0.0), other.get(key, 0.0)) for key in keys}
        return operation(own, other)


class Counters(Counts):
    """Counts that the ledger writes to: mutable, at the price of any object with slots."""

    __slots__ = ()
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


@share_descriptions(Counts)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # pyright: ignore[reportGeneralTypeIssues]
class Statistics(Counts):  # type: ignore[misc] # frozen, see `FROZEN`
    """The counts and times of an operator at one moment.

    An invocation that has ended counts once, as completed, failed, timed_out or cancelled. Times are seconds on Trio's
    clock. With the option `group`, `running`, `peak_running` and `throttled` count calls. All other counts and times
    refer to records: ten records that share a call of 1 s have a latency of 10 s in sum.

    Statistics of several operators can be added. `repr` shows what is not zero, and for each histogram its median and
    its 99th percentile.

    Args:
        latency: The durations whose sum is `latency_seconds`.
        slot_wait: The waits for a slot before the first calls of records. Those of retries are in `slot_wait_seconds`.
        head_wait: The waits whose sum is `head_wait_seconds`, of records that have left the queue.
        gate_wait: The waits whose sum is `gate_wait_seconds`, of the calls that a gate held back.

    The sums are exact, and so is the number of durations in `latency`. `gate_wait` has each wait. The other histograms
    have the first 500 records, and then one in nineteen, which represents those between.
    """

    latency: Histogram = field(default_factory=Histogram)
    slot_wait: Histogram = field(default_factory=Histogram)
    head_wait: Histogram = field(default_factory=Histogram)
    gate_wait: Histogram = field(default_factory=Histogram)


def _rounded(value: Any) -> Any:
    """Seconds in whole microseconds: the last digits of a sum depend on the order of its terms."""
    return round(value, 6) if isinstance(value, float) else value


def by_wait(statistics: Counts) -> list[tuple[str, float]]:
    """The sum of the waits for each gate, the longest one first."""
    return sorted(statistics.seconds_by_gate.items(), key=itemgetter(1), reverse=True)


def gates_and_hedges(statistics: Counts) -> list[str]:
    """What gates and hedges did with an operator's calls, in words for a line such as `summary`. Does not need rich.

    Args:
        statistics: The operator's statistics.

    Returns:
        The sum of the waits for each gate; the elements that a gate refused before their first call, and
        why, such as a budget that is used up; how often the service requested fewer calls; what `capacity="auto"` has
        found; the second calls of `hedged` per hundred calls, with the share of them that won; and the calls made for
        groups. Only what happened.

    Example:
        >>> from trio_asyncio_io.integration import gates_and_hedges
        >>> waits = {"CircuitBreaker": 3.0, "RateLimit": 38.0}
        >>> numbers = Statistics(seconds_by_gate=waits, throttled=212)
        >>> gates_and_hedges(numbers)
        ['gated by RateLimit 38 s and CircuitBreaker 3 s', '212 throttled']
        >>> gates_and_hedges(Statistics(completed=1_000, hedged=51, hedges_won=36))
        ['hedged 5.1% (won 71%)']
    """
    parts = []
    if waits := by_wait(statistics):
        parts.append(f"gated by {' and '.join(f'{gate} {duration(seconds)}' for gate, seconds in waits)}")
    if statistics.refused or statistics.refusal:
        parts.append(f"{statistics.refused:,} refused" + (f" ({statistics.refusal})" if statistics.refusal else ""))
    if throttled := statistics.throttled:
        parts.append(f"{throttled:,} throttled")
    if statistics.finding:
        parts.append(statistics.finding)
    if hedged := statistics.hedged:
        ended = statistics.completed + statistics.failed + statistics.timed_out + statistics.cancelled
        calls = statistics.groups or ended + statistics.running + statistics.retried - statistics.refused
        parts.append(f"hedged {hedged / max(calls, 1):.1%} (won {statistics.hedges_won / hedged:.0%})")
    if statistics.groups:
        parts.append(f"{statistics.grouped:,} records in {statistics.groups:,} calls")
    return parts
