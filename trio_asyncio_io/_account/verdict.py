"""The verdict: what limits an operator, from the sums of its times.

Little's law connects them: calls in flight = calls per second x mean latency. If all slots are busy, the slots or the
service are the limit. If slots are free, no record may start: either none has arrived, or the buffer is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Literal, TypeAlias

from .._values.describe import amount, duration, plural
from .._values.public import share_descriptions
from .samples import LoadClass
from .statistics import Counts, by_wait

# Enough to judge a run: this many calls, or this many in each slot
ENOUGH_CALLS, ROUNDS = 10, 2
MORE_CALLS = f"Judge a run in which at least {ENOUGH_CALLS} calls, and one in each slot, have ended."

# Shares of the time. From 0.5 on, no other reason has a larger one
CPU_IS_BUSY = CONSUMER_IS_LATE = LOOP_IS_BLOCKED = SLOTS_ARE_BUSY = 0.9
GATE_IS_SHUT = 0.5
WASTE = 0.5  # of the time of calls
GROUPS_ARE_FULL = 0.5  # share of the largest size

FINDS_ITS_LIMIT = "Auto"  # the class of this gate

CALLS_OF_A_LOAD = 10  # fewer calls have no meaningful latency
# Factors of the latency, from a low to a high load. From 2.0 on, a call waits in the service for half of its time
RISE, SATURATION = 1.25, 2.0


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

Compared: TypeAlias = tuple[LoadClass, LoadClass]  # the lowest and the highest load


@share_descriptions(Counts)
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # pyright: ignore[reportGeneralTypeIssues]
class Totals(Counts):  # type: ignore[misc] # frozen, as `Counts` is
    """Where the time of one or several operators has gone, as sums. Experimental: it may change in any release.

    `+` adds the totals of several operators, such as one in each process. `-` gives the increase since earlier totals
    of the same operator. Times are in seconds. `explain()` of the sum describes the mean operator.

    Args:
        operators: The number of operators.
        ordered: The number of operators with the mode "ordered".
        capacity: Upper limit of invocations that run at once in an operator.
        buffer: Upper limit of records that an operator holds.
        group: Upper limit of records in a call. 0: without the option `group`.
        seconds: The length of the runs so far.
        supply: The part of `seconds` in which records could start. It ends after the input has ended and all records
            have started, at the next end of a call or start of a retry that leaves no call waiting for a gate. If no
            call runs, it ends immediately.
        busy: The time for which invocations held a slot.
        source: The time in which a slot was free, the buffer had room, the input had not ended, and no record waited.
            A record that waits for its group, or for its retry, does not count.
        withheld: The part of `source` in which Spark took outputs and gave no input.
        full: The time in which a slot was free, the buffer was full, and no record waited for its key.
        consumer: The time in which outputs waited for the consumer.
        cpu: The CPU time of the loop's thread and, where the system counts it, the thread's wait for the CPU.
        keyed: The time in which a slot was free, and all waiting records waited for an earlier one with their key.
        gated: The time in which a slot was free, and a gate held back calls.
        retries: The time in which a slot was free, and new records waited until fewer records wait for their retry.
        blocked: The time in which a call ran that let no other task run.
        repeated_seconds: The sum of the durations of attempts that were retried.
        rested_seconds: The sum of the backoffs of records, which hold no slot.
        timed_out_seconds: The sum of the durations of invocations that their deadline ended.
        low_calls: Calls at a low load: at most a quarter of the capacity ran at once.
        low_latency_seconds: The sum of their durations.
        high_calls: Calls at a high load: more than half of the capacity ran at once.
        high_latency_seconds: The sum of their durations.
    """

    operators: int = 0
    ordered: int = 0
    capacity: int = 0
    buffer: int = 0
    group: int = 0
    seconds: float = 0.0
    supply: float = 0.0
    busy: float = 0.0
    source: float = 0.0
    withheld: float = 0.0
    full: float = 0.0
    consumer: float = 0.0
    cpu: float = 0.0
    keyed: float = 0.0
    gated: float = 0.0
    retries: float = 0.0
    blocked: float = 0.0
    repeated_seconds: float = 0.0
    rested_seconds: float = 0.0
    timed_out_seconds: float = 0.0
    low_calls: int = 0
    low_latency_seconds: float = 0.0
    high_calls: int = 0
    high_latency_seconds: float = 0.0

    def explain(self) -> Verdict:
        """What limits these operators, and what to change.

        It compares the mean latency at low loads with the one at high loads. `Results.explain` knows each load of its
        operator, so it compares the medians at the lowest and the highest, and may advise a lower capacity. Sums of
        several operators, and Spark's metrics, need a fixed number of loads.
        """
        low = LoadClass(max(1, self.capacity // 4), self.low_calls, _share(self.low_latency_seconds, self.low_calls))
        high = LoadClass(self.capacity, self.high_calls, _share(self.high_latency_seconds, self.high_calls))
        return judge(self, (low, high))

    # Means and shares, of the mean operator

    @property
    def call_seconds(self) -> float:
        """The sum of the durations of invocations without backoffs: the time for which they held slots."""
        return self.latency_seconds - self.rested_seconds

    @property
    def mean_latency(self) -> float:
        """The mean time for which an invocation held a slot."""
        return _share(self.call_seconds, self.records)

    @property
    def size(self) -> float:
        """The mean number of records in a call."""
        return self.group_size or 1.0

    @property
    def first_calls(self) -> float:
        """The number of calls that have ended, without retries; with groups, an estimate."""
        return self.records / self.size

    @property
    def in_flight(self) -> float:
        """The mean number of calls that ran at once, over the time in which there were elements."""
        return _share(self.busy, self.supply)

    @property
    def slots_busy(self) -> float:
        """The share of the slots that were busy."""
        return _share(self.in_flight, self.capacity)

    @property
    def slot_wait_share(self) -> float:
        """The share of the time in which no slot was free."""
        return max(0.0, 1.0 - self.share_of_supply(self.source + self.full + self.keyed + self.retries + self.gated))

    @property
    def allowed(self) -> float:
        """Records per second that the slots allow at this latency."""
        return self.capacity * self.size / self.mean_latency

    @property
    def started_at_once(self) -> bool:
        """Whether there were no more calls than slots, so that no call had to wait for a slot.

        Among several operators, one may have had most of the records. So none of them may have used all of its slots.
        """
        calls = self.first_calls + self.running
        return calls <= self.capacity or (calls <= self.operators * self.capacity and self.peak_running < self.capacity)

    def share_of_run(self, seconds: float) -> float:
        """This time as a share of the run."""
        return _share(seconds, self.seconds)

    def share_of_supply(self, seconds: float) -> float:
        """This time as a share of the time in which there were elements."""
        return _share(seconds, self.supply)

    def share_of_calls(self, seconds: float) -> float:
        """This sum as a share of the time of calls."""
        return min(1.0, _share(seconds, self.call_seconds))


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


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


def judge(totals: Totals, loads: Iterable[LoadClass] = ()) -> Verdict:
    """The verdict on these totals, given the latency at each load, in ascending order of the loads."""
    if not (totals.mean_latency > 0 and totals.seconds > 0):
        return Verdict("unknown", MORE_CALLS, (_of_nothing(totals), *refusals(totals)))
    compared = _compared(loads)
    limit = _limit_of(totals, compared)
    if limit == "unknown":
        return Verdict(limit, MORE_CALLS, (*throughput(totals), _of_few(totals)))
    if limit == "capacity":
        reason, advice = _of_capacity(totals, compared)
    elif limit == "service":
        assert compared is not None
        reason, advice = _of_service(totals, *compared)
    else:
        reason, advice = EXPLANATIONS[limit](totals)
    return Verdict(limit, advice, (*throughput(totals), reason))


def _compared(loads: Iterable[LoadClass]) -> Compared | None:
    """The lowest and the highest load. None: they are about equal, or too few calls ran at them."""
    known = [each for each in loads if each.calls >= CALLS_OF_A_LOAD and each.latency > 0]
    return (known[0], known[-1]) if known and 2 * known[0].running < known[-1].running else None


# Which limit


def _limit_of(totals: Totals, compared: Compared | None) -> Limit:
    if totals.first_calls < min(ENOUGH_CALLS, ROUNDS * totals.capacity):
        if totals.share_of_run(totals.blocked) >= LOOP_IS_BLOCKED:
            return "blocking"
        return "gate" if totals.share_of_supply(totals.gated) >= GATE_IS_SHUT else "unknown"
    return _limit_outside(totals) or _limit_of_flow(totals, compared)


def _limit_outside(totals: Totals) -> Limit | None:
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


def _limit_of_flow(totals: Totals, compared: Compared | None) -> Limit:
    if totals.slots_busy < SLOTS_ARE_BUSY and not _waits_for_slots(totals):
        return _limit_of_jobs(totals)
    if totals.started_at_once:
        return "source"
    return _limit_of_slots(totals, compared) if totals.first_calls >= totals.capacity else "unknown"


def _limit_of_jobs(totals: Totals) -> Limit:
    """The limit if slots wait for records."""
    held = totals.full + totals.keyed
    if totals.source >= max(held, totals.retries):
        return "consumer" if 2 * totals.withheld > totals.source else "source"
    if totals.retries >= held:
        return "retries"
    if totals.keyed >= totals.full:
        return "key"
    return "retries" if _share(totals.rested_seconds, totals.latency_seconds) >= WASTE else "buffer"


def _waits_for_slots(totals: Totals) -> bool:
    most = max(totals.source, totals.full + totals.keyed, totals.retries)
    return totals.slot_wait_share >= totals.share_of_supply(most)


def _limit_of_slots(totals: Totals, compared: Compared | None) -> Limit:
    """The limit if records wait for slots."""
    if totals.share_of_calls(totals.timed_out_seconds) >= WASTE:
        return "timeouts"
    if totals.share_of_calls(totals.repeated_seconds) >= WASTE:
        return "retries"
    if compared is None:
        return "capacity"
    low, high = compared
    return "service" if high.latency >= SATURATION * low.latency else "capacity"


# Sentences


def _of_nothing(totals: Totals) -> str:
    return f"No call has taken any time: {round(totals.first_calls):,} ended, {totals.running:,} run."


def _of_few(totals: Totals) -> str:
    ended = round(totals.first_calls)
    return (
        f"Too few calls to judge: of {ended + totals.running:,} started, {ended:,} ended, with a capacity of "
        f"{totals.capacity:,}."
    )


def throughput(totals: Totals) -> Iterator[str]:
    """The opening sentences, which all verdicts share."""
    calls, each = plural(totals.calls, "call"), ""
    if totals.retried or totals.groups:
        calls, each = f"{calls} for {plural(totals.records, 'record')}", " records"
    counts = {"retried": totals.retried, "failed or timed out": totals.without_result}
    problems = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    runs = f", summed over {totals.operators:,} operators: each" if totals.operators > 1 else ":"
    yield (
        f"{calls}{f' ({problems})' if problems else ''} in {duration(totals.seconds)}{runs} "
        f"{amount(totals.records / totals.seconds)}{each} a second, with a mean latency of "
        f"{duration(totals.mean_latency)}."
    )
    yield from refusals(totals)
    of_records = " records" if totals.groups else ""
    yield (
        f"The capacity of {totals.capacity:,} allows {amount(totals.allowed)}{of_records} a second at this latency; "
        f"{totals.in_flight:,.1f} of {totals.capacity:,} slots were busy on average ({totals.slots_busy:.0%})."
    )
    if totals.finding:
        yield f"{totals.finding[0].upper()}{totals.finding[1:]}."
    if totals.groups:
        limit = f" of at most {totals.group:,}" if totals.group else ""
        yield (
            f"On average, a call had {amount(totals.size)}{limit} records, and each waited "
            f"{duration(totals.group_wait_seconds / totals.grouped)} for its group to be complete."
        )


def refusals(totals: Totals) -> Iterator[str]:
    """The sentence about calls that gates have refused."""
    why = f": {totals.refusal}" if totals.refusal else ""
    if totals.refused:
        yield f"Gates refused {plural(totals.refused, 'other record')}, for which no call was made{why}."
    elif why:
        yield f"Gates refused retries{why}."


def _of_cpu(totals: Totals) -> tuple[str, str]:
    share = totals.share_of_run(totals.cpu)
    return (
        f"The thread of the event loop used the CPU, or waited for it, {share:.0%} of the time.",
        "More capacity changes nothing: use more processes on free cores, or move computations out of the event loop.",
    )


def _of_consumer(totals: Totals) -> tuple[str, str]:
    return (
        f"Outputs waited for the consumer {totals.share_of_run(totals.consumer):.0%} of the time.",
        "Make the code that receives the results faster, or receive in several tasks.",
    )


def _of_gate(totals: Totals) -> tuple[str, str]:
    if totals.refused > totals.records:
        reason = f"Gates refused {totals.refused:,} of {plural(totals.refused + totals.records, 'record')}."
        return reason, "Remove the cause, such as an outage or a budget that is used up. More capacity changes nothing."
    gates = by_wait(totals)
    waits = ", ".join(f"{name} {duration(seconds)}" for name, seconds in gates)
    of_all = f"Summed over all {'records' if totals.groups else 'calls'}: {waits}."
    reason = f"A gate held calls back {totals.share_of_supply(totals.gated):.0%} of the time. {of_all}"
    if totals.group:
        fewer = "make fewer: use a larger group, or a longer group_wait if groups are not full."
        return reason, f"More capacity changes nothing. If the gate counts calls, {fewer}"
    is_found = totals.finding and gates and gates[0][0].startswith(FINDS_ITS_LIMIT)
    remedy = "the gate finds it" if is_found else "change the gate"
    return reason, f"More capacity changes nothing. If the service allows more, {remedy}; else accept the time."


def _of_capacity(totals: Totals, compared: Compared | None) -> tuple[str, str]:
    reason = _slots(totals)
    if 2 * totals.without_result >= totals.records:
        return reason, "Find out why the calls fail. More capacity only makes more of them fail."
    if totals.group and totals.group_size < GROUPS_ARE_FULL * totals.group:
        return reason, "Make fewer calls: with a longer group_wait, more records share one."
    if compared is None:
        response = "The load was always about the same, so its effect on the latency is unknown."
    else:
        response = _response(*compared)
    try_it = f"Try capacity={2 * totals.capacity:,}: it gives up to 2 x the throughput if the latency does not rise."
    back = f"If the throughput did not rise, the calls wait in the service: go back to {totals.capacity:,}."
    return f"{reason} {response}", f"{try_it} {back}"


def _of_service(totals: Totals, low: LoadClass, high: LoadClass) -> tuple[str, str]:
    # Not less than ran at the low load: only there the latency is known not to rise
    enough = max(low.running, round(totals.capacity * low.latency / high.latency))
    advice = f"; for this one, capacity={enough:,} is enough" if enough < totals.capacity else ""
    return (
        f"{_slots(totals)} {_response(low, high)} So the calls wait in the service.",
        f"More capacity only raises the latency. Make the service faster{advice}.",
    )


def _of_blocking(totals: Totals) -> tuple[str, str]:
    reason = (
        f"The function let nothing else run {totals.share_of_run(totals.blocked):.0%} of the time, "
        f"{duration(totals.blocked / totals.calls)} in each call. The thread of the loop used the CPU "
        f"{totals.share_of_run(totals.cpu):.0%} of the time."
    )
    return reason, "Call a blocking function in a thread, with adapters.in_thread, or replace it by an async one."


def _of_timeouts(totals: Totals) -> tuple[str, str]:
    share = totals.share_of_calls(totals.timed_out_seconds)
    return (
        f"{_slots(totals)} Calls that timed out took {share:.0%} of that time.",
        "Make the service answer in time. A shorter timeout frees the slots earlier; more capacity adds more timeouts.",
    )


def _of_retries(totals: Totals) -> tuple[str, str]:
    if totals.retries > max(totals.full, totals.supply * totals.slot_wait_share):
        at_once = totals.capacity * max(totals.group, 1)  # no new record begins while so many wait for a retry
        reason = (
            f"No new record began {totals.share_of_supply(totals.retries):.0%} of the time, while "
            f"{plural(at_once, 'record')} waited for a retry, as many as can run at once: the service refuses calls."
        )
    elif totals.share_of_supply(totals.full) > totals.slot_wait_share:
        rested = _share(totals.rested_seconds, totals.latency_seconds)
        reason = f"{_full(totals)}: records spent {rested:.0%} of their time in backoffs."
    else:
        repeated = totals.share_of_calls(totals.repeated_seconds)
        reason = f"{_slots(totals)} About {repeated:.0%} of that time went into attempts that were repeated."
    fewer = "" if totals.finding else ' Try capacity="auto": it makes fewer calls while the service refuses them.'
    return reason, f"Find out why the attempts fail; a retry budget limits the retries.{fewer}"


def _of_key(totals: Totals) -> tuple[str, str]:
    reason = (
        f"Slots were free {totals.share_of_supply(totals.keyed):.0%} of the time, while records waited for "
        "earlier ones with the same key."
    )
    faster = "Use a finer key, combine the records of a key into one call, or make that call faster."
    return reason, f"{faster} More capacity changes nothing."


def _of_buffer(totals: Totals) -> tuple[str, str]:
    held = ": results waited for an earlier call" if totals.ordered else ""
    reason = f"{_full(totals)}{held}. The longest call took {duration(totals.longest_seconds)}."
    in_all_slots = totals.capacity * max(totals.group, 1)
    behind_the_longest = ceil(totals.allowed * totals.longest_seconds)
    unordered = ", or use unordered_wait" if totals.ordered else ""
    return reason, f"Set buffer={max(in_all_slots, behind_the_longest, 2 * totals.buffer):,}{unordered}."


def _of_source(totals: Totals) -> tuple[str, str]:
    source = totals.share_of_supply(totals.source)
    if totals.started_at_once and source <= totals.slot_wait_share:
        count = plural(round(totals.first_calls) + totals.running, "call")
        reason = f"No record waited for a slot: there were only {count}, for {totals.capacity:,} slots."
        return reason, "More capacity changes nothing. With more elements, more calls can run at once."
    enough = max(totals.peak_running, ceil(1.2 * totals.in_flight))
    is_less = totals.peak_running and enough < totals.capacity
    advice = f" For this one, capacity={enough:,} is enough." if is_less else ""
    return (
        f"Elements came too slowly: {source:.0%} of the time a slot was free and no record waited.",
        f"Make the source faster.{advice}",
    )


def _slots(totals: Totals) -> str:
    share = max(totals.slots_busy, totals.slot_wait_share)
    return f"All slots were busy {share:.0%} of the time."


def _full(totals: Totals) -> str:
    share = totals.share_of_supply(totals.full)
    return f"The buffer of {totals.buffer:,} was full {share:.0%} of the time, while slots were free"


def _response(low: LoadClass, high: LoadClass) -> str:
    change = "rose" if high.latency > RISE * low.latency else "did not rise"
    return (
        f"The latency {change} with the load: {duration(low.latency)} with about {plural(low.running, 'call')} at "
        f"once, {duration(high.latency)} with about {high.running:,}."
    )


# limit -> (totals -> the reason, the advice)
EXPLANATIONS = {
    "cpu": _of_cpu,
    "consumer": _of_consumer,
    "gate": _of_gate,
    "blocking": _of_blocking,
    "timeouts": _of_timeouts,
    "retries": _of_retries,
    "key": _of_key,
    "buffer": _of_buffer,
    "source": _of_source,
}
