"""The verdict: what limits an operator, from the sums of its times.

Little's law connects them: calls in flight = calls per second x mean latency. If all slots are busy, the slots or the
service are the limit. If slots are free, no record may start: either none has arrived, or the buffer is full.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .._values.public import share_descriptions
from .samples import LoadClass
from .sentences import Compared, explained, of_few, of_nothing, refusals, throughput
from .sums import Sums, share_of

# Enough to judge a run: this many calls, or this many in each slot
ENOUGH_CALLS, ROUNDS = 10, 2
MORE_CALLS = f"Judge a run in which at least {ENOUGH_CALLS} calls, and one in each slot, have ended."

# Shares of the time. From 0.5 on, no other reason has a larger one
CPU_IS_BUSY = CONSUMER_IS_LATE = LOOP_IS_BLOCKED = SLOTS_ARE_BUSY = 0.9
GATE_IS_SHUT = 0.5
WASTE = 0.5  # of the time of calls

CALLS_OF_A_LOAD = 10  # fewer calls have no meaningful latency
# Factor of the latency, from a low to a high load. With it, a call waits in the service for half of its time
SATURATION = 2.0


Limit: TypeAlias = Literal[
    "unknown",
    "cpu",
    "consumer",
    "gate",
    "blocking",
    "timeouts",
    "retries",
    "service",
    "capacity",
    "key",
    "buffer",
    "source",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limits the throughput of an operator, and what to change. `str()` gives the sentences and the advice.

    Attributes:
        limit: "gate": a gate holds calls back, or refuses most of them. "capacity": all slots are busy. "service": all
            slots are busy, and more load only raises the latency. "source": slots are free, because elements arrive too
            slowly. "consumer": outputs wait for it. "buffer": slots are free and the buffer is full of results that
            wait for a straggler. "key": slots are free, because records wait for an earlier one with the same key.
            "timeouts": all slots are busy, most of the time with calls that time out. "retries": all slots are busy,
            most of the time with attempts that are repeated; or slots are free, and no new record begins because too
            many wait for their retry, or because those fill the buffer. "cpu": the thread of the event loop is busy.
            "blocking": the function blocks that thread, so the calls run one after another. "unknown": too few
            invocations have ended.
        advice: What to change.
        sentences: The numbers that show it.
    """

    limit: Limit
    advice: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.sentences, self.advice])


@share_descriptions(Sums)
class Totals(Sums):
    """Where the time of one or several operators has gone, as sums. Experimental: it may change in any release.

    `+` adds the totals of several operators, such as one in each process. `-` gives the increase since earlier totals
    of the same operator. Times are in seconds. `explain()` of the sum describes the mean operator.

    Args:
        The sums of `Sums`, and the counts of `Counts`.
    """

    __slots__ = ()

    def explain(self) -> Verdict:
        """What limits these operators, and what to change.

        It compares the mean latency at low loads with the one at high loads. `Results.explain` knows each load of its
        operator, so it compares the medians at the lowest and the highest, and may advise a lower capacity. Sums of
        several operators, and Spark's metrics, need a fixed number of loads.
        """
        low = LoadClass(max(1, self.capacity // 4), self.low_calls, share_of(self.low_latency_seconds, self.low_calls))
        high = LoadClass(self.capacity, self.high_calls, share_of(self.high_latency_seconds, self.high_calls))
        return judge(self, (low, high))


def judge(totals: Sums, loads: Iterable[LoadClass] = ()) -> Verdict:
    """The verdict on these totals, given the latency at each load, in ascending order of the loads."""
    if not (totals.mean_latency > 0 and totals.seconds > 0):
        return Verdict("unknown", MORE_CALLS, (of_nothing(totals), *refusals(totals)))
    compared = _compared(loads)
    limit = _limit_of(totals, compared)
    if limit == "unknown":
        return Verdict(limit, MORE_CALLS, (*throughput(totals), of_few(totals)))
    reason, advice = explained(limit, totals, compared)
    return Verdict(limit, advice, (*throughput(totals), reason))


def _compared(loads: Iterable[LoadClass]) -> Compared | None:
    """The lowest and the highest load. None: they are about equal, or too few calls ran at them."""
    known = [each for each in loads if each.calls >= CALLS_OF_A_LOAD and each.latency > 0]
    return (known[0], known[-1]) if known and 2 * known[0].running < known[-1].running else None


# Which limit


def _limit_of(totals: Sums, compared: Compared | None) -> Limit:
    if totals.first_calls < min(ENOUGH_CALLS, ROUNDS * totals.capacity):
        if totals.share_of_run(totals.blocked) >= LOOP_IS_BLOCKED:
            return "blocking"
        return "gate" if totals.share_of_supply(totals.gated) >= GATE_IS_SHUT else "unknown"
    return _limit_outside(totals) or _limit_of_flow(totals, compared)


def _limit_outside(totals: Sums) -> Limit | None:
    """The limit, if it is outside the operator's options and its source."""
    if totals.share_of_run(totals.cpu) >= CPU_IS_BUSY:
        return "cpu"
    blocked, is_late = totals.share_of_run(totals.blocked), totals.share_of_run(totals.consumer) >= CONSUMER_IS_LATE
    if blocked >= LOOP_IS_BLOCKED:
        return "blocking"
    is_shut = totals.share_of_supply(totals.gated) >= GATE_IS_SHUT or totals.refused > totals.records
    if is_shut and not is_late:
        return "gate"
    if blocked >= WASTE and _waits_for_slots(totals):
        return "blocking"
    return "consumer" if is_late else None


def _limit_of_flow(totals: Sums, compared: Compared | None) -> Limit:
    if totals.slots_busy < SLOTS_ARE_BUSY and not _waits_for_slots(totals):
        return _limit_of_jobs(totals)
    if totals.started_at_once:
        return "source"
    return _limit_of_slots(totals, compared) if totals.first_calls >= totals.capacity else "unknown"


def _limit_of_jobs(totals: Sums) -> Limit:
    """The limit if slots wait for records."""
    held = totals.full + totals.keyed
    if totals.source >= max(held, totals.retries):
        return "consumer" if 2 * totals.withheld > totals.source else "source"
    if totals.retries >= held:
        return "retries"
    if totals.keyed >= totals.full:
        return "key"
    return "retries" if share_of(totals.rested_seconds, totals.latency_seconds) >= WASTE else "buffer"


def _waits_for_slots(totals: Sums) -> bool:
    most = max(totals.source, totals.full + totals.keyed, totals.retries)
    return totals.slot_wait_share >= totals.share_of_supply(most)


def _limit_of_slots(totals: Sums, compared: Compared | None) -> Limit:
    """The limit if records wait for slots."""
    if totals.share_of_calls(totals.timed_out_seconds) >= WASTE:
        return "timeouts"
    if totals.share_of_calls(totals.repeated_seconds) >= WASTE:
        return "retries"
    if compared is None:
        return "capacity"
    low, high = compared
    return "service" if high.latency >= SATURATION * low.latency else "capacity"
