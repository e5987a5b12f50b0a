"""The verdict: what limits an operator, from its measured numbers.

Little's law connects them: calls in flight = calls per second x mean latency. If all slots are busy, the slots or the
service are the limit. If slots are free, no record may start: either none has arrived, or the buffer is full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeAlias

from .describe import amount, duration, plural

__all__ = ["EXPLANATIONS", "Evidence", "Limit", "LoadClass", "Verdict", "judge"]


CALLS_OF_A_CLASS = 10  # so that its mean is meaningful


@dataclass(frozen=True, slots=True)
class LoadClass:
    """The latency at one load.

    Args:
        running: Invocations that ran at once, about.
        calls: Invocations that completed at this load.
        latency: The median of their durations, in seconds.
    """

    running: int
    calls: int
    latency: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an operator has measured.

    Shares are from 0.0 to 1.0.

    Args:
        capacity, buffer: Its two limits.
        seconds: The length of the run so far.
        calls: Invocations that have ended, without records that a gate refused before their first attempt.
        in_flight: Invocations that ran at once, the mean over the time in which there were elements.
        latency: The mean time for which an invocation held a slot, in seconds.
        longest: The longest duration of an invocation, in seconds.
        source_wait: The share of the same time in which the input had not ended and the buffer had room.
        starved: The share of the same time in which the buffer was full and a slot was free.
        consumer: The share of the run in which outputs waited for the consumer.
        cpu: The share of the run in which the thread of the loop used the CPU or, where the system counts that, waited
            for it.
        loads: The latency at each load, in ascending order.
        keyed: The share of the same time in which a record waited for an earlier one with the same key.
        repeated: The share of the time of calls that went into attempts that were retried.
        rested: The share of the time of invocations that their records spent in backoffs, without a slot.
        retried: Attempts after the first.
        timed_out: The share of the time of invocations that their deadline ended.
        peak: The most invocations that ran at once.
        gated: The share of the same time in which a gate held back at least one call.
        gates: By gate, the sum of the waits for it, in seconds.
        withheld: The share of the same time in which the input could not be read, because outputs were being written.
        operators: How many operators these are. All numbers are their sums, or the mean of their shares.
        running: Invocations that run now.
        failed: Invocations that failed or timed out.
        refused: Records that a gate refused before their first attempt.
        groups: Calls made for groups of records. 0: each record has its own calls.
        grouped: Records in these calls.
        group_wait: How long one of them waited for more records of its group, the mean, in seconds.
        refusal: Why a gate refused a call; "": none did.
    """

    capacity: int
    buffer: int
    seconds: float
    calls: int
    in_flight: float
    latency: float
    longest: float
    source_wait: float
    starved: float
    consumer: float
    cpu: float
    loads: tuple[LoadClass, ...] = ()
    keyed: float = 0.0
    repeated: float = 0.0
    rested: float = 0.0
    retried: int = 0
    timed_out: float = 0.0
    peak: int = 0
    gated: float = 0.0
    gates: tuple[tuple[str, float], ...] = ()
    withheld: float = 0.0
    operators: int = 1
    running: int = 0
    failed: int = 0
    refused: int = 0
    groups: int = 0
    grouped: int = 0
    group_wait: float = 0.0
    refusal: str = ""

    @property
    def size(self) -> float:
        """The mean number of records in a call."""
        return self.grouped / self.groups if self.groups else 1.0

    @property
    def ended(self) -> float:
        """Calls that have ended, about."""
        return self.calls / self.size

    @property
    def busy(self) -> float:
        """The share of the slots that were busy."""
        return self.in_flight / self.capacity

    @property
    def slot_wait(self) -> float:
        """The share of the time in which records waited for a slot."""
        return max(0.0, 1 - self.source_wait - self.starved)

    @property
    def allowed(self) -> float:
        """Records per second that the slots allow at this latency."""
        return self.capacity * self.size / self.latency

    @property
    def started_at_once(self) -> bool:
        """Whether there were no more records than slots, so that none had to wait for one.

        Of several operators, one may have had many records. So none of them may have used all of its slots.
        """
        calls = self.ended + self.running
        return calls <= self.capacity or (calls <= self.operators * self.capacity and self.peak < self.capacity)

    @property
    def compared(self) -> tuple[LoadClass, LoadClass] | None:
        """The lowest and the highest load; None if they are about equal."""
        loads = [each for each in self.loads if each.calls >= CALLS_OF_A_CLASS and each.latency > 0]
        return (loads[0], loads[-1]) if loads and 2 * loads[0].running < loads[-1].running else None


RISE = 1.25  # of the latency from a low to a high load


def throughput(evidence: Evidence) -> Iterator[str]:
    """The sentences that each verdict has."""
    calls, each = plural(evidence.calls + evidence.retried, "call"), ""
    if evidence.retried or evidence.groups:
        calls = plural(evidence.groups, "call") if evidence.groups else calls
        calls, each = f"{calls} for {plural(evidence.calls, 'record')}", " records"
    counts = {"retried": evidence.retried, "failed or timed out": evidence.failed}
    problems = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    runs = f", summed over {evidence.operators:,} operators: each" if evidence.operators > 1 else ":"
    yield (
        f"{calls}{f' ({problems})' if problems else ''} in {duration(evidence.seconds)}{runs} "
        f"{amount(evidence.calls / evidence.seconds)}{each} a second, with a mean latency of "
        f"{duration(evidence.latency)}."
    )
    yield from refusals(evidence)
    yield (
        f"The capacity of {evidence.capacity:,} allows {amount(evidence.allowed)} a second at this latency; on average "
        f"{evidence.in_flight:,.1f} slots were busy ({evidence.busy:.0%})."
    )
    if evidence.groups:
        yield (
            f"On average, a call had {amount(evidence.size)} records, and each waited "
            f"{duration(evidence.group_wait)} for its group to be complete."
        )


def refusals(evidence: Evidence) -> Iterator[str]:
    """What gates have refused, and why."""
    why = f": {evidence.refusal}" if evidence.refusal else ""
    if evidence.refused:
        yield f"Gates refused {plural(evidence.refused, 'other record')}, for which no call was made{why}."
    elif why:
        yield f"Gates refused retries{why}."


def _of_cpu(evidence: Evidence) -> tuple[str, str]:
    return (
        f"The thread of the event loop used the CPU, or waited for it, {evidence.cpu:.0%} of the time.",
        "More capacity changes nothing: use more processes on free cores, or move computations out of the event loop.",
    )


def _of_consumer(evidence: Evidence) -> tuple[str, str]:
    return (
        f"Outputs waited for the consumer {evidence.consumer:.0%} of the time.",
        "Make the code that receives the results faster, or receive in several tasks.",
    )


def _of_gate(evidence: Evidence) -> tuple[str, str]:
    if evidence.refused > evidence.calls:
        reason = f"Gates refused {evidence.refused:,} of {evidence.refused + evidence.calls:,} records."
        return reason, "Remove the cause, such as an outage or a budget that is used up. More capacity changes nothing."
    by_wait = sorted(evidence.gates, key=lambda gate: -gate[1])
    waits = ", ".join(f"{name} {duration(seconds)}" for name, seconds in by_wait)
    of_all = "records" if evidence.groups else "calls"
    reason = f"A gate held calls back {evidence.gated:.0%} of the time. Summed over all {of_all}: {waits}."
    return reason, "More capacity changes nothing. If the service allows more, change the gate; else accept the time."


def _of_capacity(evidence: Evidence) -> tuple[str, str]:
    if 2 * evidence.failed >= evidence.calls:
        return _slots(evidence), "Find out why the calls fail. More capacity only makes more of them fail."
    double, back = (
        f"capacity={2 * evidence.capacity:,}",
        f"If the throughput did not rise, go back to {evidence.capacity:,}.",
    )
    if evidence.compared is None:
        reason = f"{_slots(evidence)} The load was always about the same, so its effect on the latency is unknown."
        return reason, f"Try {double}: it gives up to 2 x the throughput if the latency does not rise. {back}"
    reason = f"{_slots(evidence)} {_response(*evidence.compared)}"
    return reason, f"Set {double}: it gives 2 x the throughput if the latency still does not rise. {back}"


def _of_service(evidence: Evidence) -> tuple[str, str]:
    assert evidence.compared is not None
    low, high = evidence.compared
    # Not less than ran at the low load: only there the latency is known not to rise
    enough = max(low.running, round(evidence.capacity * low.latency / high.latency))
    advice = f"; for this one, capacity={enough:,} is enough" if enough < evidence.capacity else ""
    return (
        f"{_slots(evidence)} {_response(low, high)} So the calls wait in the service.",
        f"More capacity only raises the latency. Make the service faster{advice}.",
    )


def _of_blocking(evidence: Evidence) -> tuple[str, str]:
    return (
        (
            f"Never more than one call ran at once, although records waited: the function does not let others run. The "
            f"thread of the event loop used the CPU {evidence.cpu:.0%} of the time."
        ),
        "Call a blocking function in a thread, with adapters.in_thread, or replace it by an async one.",
    )


def _of_timeouts(evidence: Evidence) -> tuple[str, str]:
    return (
        f"{_slots(evidence)} Calls that timed out took {evidence.timed_out:.0%} of that time.",
        "Make the service answer in time. A shorter timeout frees the slots earlier; more capacity adds more timeouts.",
    )


def _of_retries(evidence: Evidence) -> tuple[str, str]:
    if evidence.starved > evidence.slot_wait:
        return (
            (
                f"The buffer of {evidence.buffer:,} was full {evidence.starved:.0%} of the time, while slots were "
                f"free: records spent {evidence.rested:.0%} of their time in backoffs, before {evidence.retried:,} "
                "retries."
            ),
            "Find out why the attempts fail. With a larger buffer, more other records can run during the backoffs.",
        )
    return (
        (
            f"{_slots(evidence)} About {evidence.repeated:.0%} of that time went into {evidence.retried:,} attempts "
            "that were repeated."
        ),
        "Find out why the attempts fail. More capacity also sends more attempts that fail; a retry budget limits them.",
    )


def _of_key(evidence: Evidence) -> tuple[str, str]:
    return (
        (
            f"Slots were free {evidence.starved:.0%} of the time, while records waited for earlier ones with the same "
            "key."
        ),
        (
            "Use a finer key, combine the records of a key into one call, or make that call faster. More capacity "
            "changes nothing."
        ),
    )


def _of_buffer(evidence: Evidence) -> tuple[str, str]:
    needed = ceil(evidence.allowed * evidence.longest)
    reason = (
        f"The buffer of {evidence.buffer:,} was full {evidence.starved:.0%} of the time, while slots were free: "
        f"results waited for an earlier call. The longest call took {duration(evidence.longest)}."
    )
    return reason, f"Set buffer={max(needed, 2 * evidence.buffer):,}, or use unordered_wait."


def _of_source(evidence: Evidence) -> tuple[str, str]:
    if evidence.started_at_once and evidence.source_wait <= evidence.slot_wait:
        count = plural(round(evidence.ended) + evidence.running, "call")
        reason = f"No record waited for a slot: there were only {count}, for {evidence.capacity:,} slots."
        return reason, "More capacity changes nothing. With more elements, more calls can run at once."
    enough = max(evidence.peak, ceil(1.2 * evidence.in_flight))
    advice = f" For this one, capacity={enough:,} is enough." if evidence.peak and enough < evidence.capacity else ""
    return (
        f"Elements came too slowly: {evidence.source_wait:.0%} of the time the buffer had room for more.",
        f"Make the source faster.{advice}",
    )


# By limit: evidence -> the reason and the advice
EXPLANATIONS = {
    "cpu": _of_cpu,
    "consumer": _of_consumer,
    "gate": _of_gate,
    "blocking": _of_blocking,
    "timeouts": _of_timeouts,
    "retries": _of_retries,
    "key": _of_key,
    "capacity": _of_capacity,
    "service": _of_service,
    "buffer": _of_buffer,
    "source": _of_source,
}


def _slots(evidence: Evidence) -> str:
    share = max(evidence.busy, evidence.slot_wait)
    return f"All slots were busy {share:.0%} of the time."


def _response(low: LoadClass, high: LoadClass) -> str:
    change = "rose" if high.latency > RISE * low.latency else "did not rise"
    return (
        f"The latency {change} with the load: {duration(low.latency)} with about {plural(low.running, 'call')} at "
        f"once, {duration(high.latency)} with about {high.running:,}."
    )


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
        limit: "gate": a gate holds calls back, or refuses most of them. "capacity": all slots are busy. "service": all
            slots are busy, and more load only raises the latency. "source": slots are free, because elements arrive too
            slowly. "consumer": outputs wait for it. "buffer": slots are free and the buffer is full of results that
            wait for a straggler. "key": slots are free, because records wait for an earlier one with the same key.
            "timeouts": all slots are busy, most of the time with calls that time out. "retries": all slots are busy,
            most of the time with attempts that are repeated; or slots are free, and records in backoffs fill the
            buffer. "cpu": the thread of the event loop is busy. "blocking": the function blocks that thread, so the
            calls run one after another. "unknown": too few invocations have ended.
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
        return Verdict("unknown", MORE_CALLS, (_of_nothing(evidence), *refusals(evidence)))
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
    if evidence.ended < min(ENOUGH_CALLS, ROUNDS * evidence.capacity):
        return "gate" if evidence.gated >= GATE_IS_SHUT else "unknown"
    return _limit_outside(evidence) or _limit_of_flow(evidence)


def _limit_outside(evidence: Evidence) -> Limit | None:
    """What limits an operator, if it is neither its limits nor its source."""
    if evidence.cpu >= CPU_IS_BUSY:
        return "cpu"
    is_shut = evidence.gated >= GATE_IS_SHUT or evidence.refused > evidence.calls
    if is_shut and evidence.consumer < CONSUMER_IS_LATE:
        return "gate"
    if _is_blocked(evidence):
        return "blocking"
    return "consumer" if evidence.consumer >= CONSUMER_IS_LATE else None


def _limit_of_flow(evidence: Evidence) -> Limit:
    if evidence.busy < SLOTS_ARE_BUSY and not _waits_for_slots(evidence):
        return _limit_of_jobs(evidence)
    if evidence.started_at_once:
        return "source"
    return _limit_of_slots(evidence) if evidence.ended >= evidence.capacity else "unknown"


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
