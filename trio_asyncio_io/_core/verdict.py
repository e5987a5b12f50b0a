"""The verdict: what limits an operator, from its measured numbers.

Little's law connects them: calls in flight = calls per second x mean latency. If all slots are busy, the slots or the
service are the limit. If slots are free, no record may start: either none has arrived, or the buffer is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .evidence import CALLS_OF_A_CLASS, Evidence
from .explanation import EXPLANATIONS, throughput

__all__ = ["Limit", "Verdict", "judge"]

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

# With fewer calls, nothing is known
ENOUGH_CALLS = 10
ROUNDS = 2  # so many calls in each slot are enough, too

MORE_CALLS = f"Judge a run in which at least {ENOUGH_CALLS} calls, and one in each slot, have ended."

CPU_IS_BUSY = 0.9  # share of the time
CONSUMER_IS_LATE = 0.9
SLOTS_ARE_BUSY = 0.9
GATE_IS_SHUT = 0.5
WASTE = 0.5  # share of the time of calls
SATURATION = 2.0  # such a rise of the latency means that the calls wait in the service


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limits the throughput of an operator, and what to change. `str()` gives the sentences and the advice.

    Attributes:
        limit: "gate": a gate holds calls back. "capacity": all slots are busy. "service": all slots are busy, and more
            load only raises the latency. "source": slots are free, because elements arrive too slowly. "consumer":
            outputs wait for it. "buffer": slots are free and the buffer is full of results that wait for a
            straggler. "key": slots are free, because records wait for an earlier one with the same key. "timeouts": all
            slots are busy, most of the time with calls that time out. "retries": all slots are busy, most of the time
            with attempts that are repeated; or slots are free, and records in backoffs fill the buffer. "cpu": the thread of the event loop is busy. "blocking": the function blocks that thread, so
            the calls run one after another. "unknown": too few
            invocations have ended.
        advice: What to change, in one sentence.
        sentences: The numbers on which this rests.
    """

    limit: Limit
    advice: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.sentences, self.advice])


def judge(evidence: Evidence) -> Verdict:
    """The verdict on an operator."""
    if not (evidence.latency > 0 and evidence.seconds > 0):
        return Verdict("unknown", MORE_CALLS, (_of_nothing(evidence),))
    limit = _limit_of(evidence)
    if limit == "unknown":
        return Verdict(limit, MORE_CALLS, (*throughput(evidence), _of_few(evidence)))
    reason, advice = EXPLANATIONS[limit](evidence)
    return Verdict(limit, advice, (*throughput(evidence), reason))


def _of_nothing(evidence: Evidence) -> str:
    if evidence.calls:
        return f"No call took any time. Calls that have ended: {evidence.calls:,}."
    if evidence.running:
        return f"No call has ended yet. Calls that run: {evidence.running:,}."
    return "No call was made."


def _of_few(evidence: Evidence) -> str:
    started = evidence.calls + evidence.running
    return (
        f"Too few to judge: of {started:,} started, {evidence.calls:,} ended, with a capacity of {evidence.capacity:,}."
    )


def _limit_of(evidence: Evidence) -> Limit:
    if evidence.calls < min(ENOUGH_CALLS, ROUNDS * evidence.capacity):
        return "gate" if evidence.gated >= GATE_IS_SHUT else "unknown"
    return _limit_outside(evidence) or _limit_of_flow(evidence)


def _limit_outside(evidence: Evidence) -> Limit | None:
    """What limits an operator, if it is neither its limits nor its source."""
    if evidence.cpu >= CPU_IS_BUSY:
        return "cpu"
    if evidence.gated >= GATE_IS_SHUT and evidence.consumer < CONSUMER_IS_LATE:
        return "gate"
    if _is_blocked(evidence):
        return "blocking"
    return "consumer" if evidence.consumer >= CONSUMER_IS_LATE else None


def _limit_of_flow(evidence: Evidence) -> Limit:
    if evidence.busy < SLOTS_ARE_BUSY and not _waits_for_slots(evidence):
        return _limit_of_jobs(evidence)
    if evidence.started_at_once:
        return "source"
    return _limit_of_slots(evidence) if evidence.calls >= evidence.capacity else "unknown"


def _limit_of_jobs(evidence: Evidence) -> Limit:
    """What limits an operator whose slots wait for records."""
    if evidence.source_wait >= evidence.starved:
        return "consumer" if 2 * evidence.withheld > evidence.source_wait else "source"
    if 2 * evidence.keyed >= evidence.starved:
        return "key"
    return "retries" if evidence.rested >= WASTE else "buffer"


def _is_blocked(evidence: Evidence) -> bool:
    one_by_one = evidence.peak == 1 < evidence.capacity and evidence.calls >= CALLS_OF_A_CLASS
    return one_by_one and _waits_for_slots(evidence)


def _waits_for_slots(evidence: Evidence) -> bool:
    return evidence.slot_wait >= max(evidence.source_wait, evidence.starved)


def _limit_of_slots(evidence: Evidence) -> Limit:
    """What limits an operator whose records wait for slots."""
    if evidence.timed_out >= WASTE:
        return "timeouts"
    if evidence.repeated >= WASTE:
        return "retries"
    return "service" if _is_saturated(evidence) else "capacity"


def _is_saturated(evidence: Evidence) -> bool:
    if evidence.compared is None:
        return False
    low, high = evidence.compared
    return high.latency >= SATURATION * low.latency
