"""The sentences of a verdict: the numbers of the run, the reason for each limit, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TypeAlias

from .._values.describe import amount, duration, plural
from .samples import LoadClass
from .statistics import by_wait
from .sums import Sums, share_of

Compared: TypeAlias = tuple[LoadClass, LoadClass]  # the lowest and the highest load

GROUPS_ARE_FULL = 0.5  # share of the largest size
RISE = 1.25  # factor of the latency, from a low to a high load
FINDS_ITS_LIMIT = "Auto"  # the class of this gate


def explained(limit: str, totals: Sums, compared: Compared | None) -> tuple[str, str]:
    """The reason for a limit other than "unknown", and the advice."""
    if limit == "capacity":
        return _of_capacity(totals, compared)
    if limit == "service":
        assert compared is not None
        return _of_service(totals, *compared)
    return _EXPLANATIONS[limit](totals)


def of_nothing(totals: Sums) -> str:
    return f"No call has taken any time: {round(totals.first_calls):,} ended, {totals.running:,} run."


def of_few(totals: Sums) -> str:
    ended = round(totals.first_calls)
    return (
        f"Too few calls to judge: of {ended + totals.running:,} started, {ended:,} ended, with a capacity of "
        f"{totals.capacity:,}."
    )


def throughput(totals: Sums) -> Iterator[str]:
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
    if totals.finding:  # the capacity is only its upper limit
        yield f"On average, {totals.in_flight:,.1f} calls ran at once, of at most {totals.capacity:,}."
        yield f"{totals.finding[0].upper()}{totals.finding[1:]}."
    else:
        allowed = f"{amount(totals.allowed)}{' records' if totals.groups else ''} a second"
        yield (
            f"The capacity of {totals.capacity:,} allows {allowed} at this latency; {totals.in_flight:,.1f} of "
            f"{totals.capacity:,} slots were busy on average ({totals.slots_busy:.0%})."
        )
    if totals.groups:
        limit = f" of at most {totals.group:,}" if totals.group else ""
        yield (
            f"On average, a call had {amount(totals.size)}{limit} records, and each waited "
            f"{duration(totals.group_wait_seconds / totals.grouped)} for its group to be complete."
        )


def refusals(totals: Sums) -> Iterator[str]:
    """The sentence about calls that gates have refused."""
    why = f": {totals.refusal}" if totals.refusal else ""
    if totals.refused:
        yield f"Gates refused {plural(totals.refused, 'other record')}, for which no call was made{why}."
    elif why:
        yield f"Gates refused retries{why}."


def _of_cpu(totals: Sums) -> tuple[str, str]:
    share = totals.share_of_run(totals.cpu)
    return (
        f"The thread of the event loop used the CPU, or waited for it, {share:.0%} of the time.",
        "More capacity changes nothing: use more processes on free cores, or move computations out of the event loop.",
    )


def _of_consumer(totals: Sums) -> tuple[str, str]:
    return (
        f"Outputs waited for the consumer {totals.share_of_run(totals.consumer):.0%} of the time.",
        "Make the code that receives the results faster, or receive in several tasks.",
    )


def _of_gate(totals: Sums) -> tuple[str, str]:
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


def _of_capacity(totals: Sums, compared: Compared | None) -> tuple[str, str]:
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


def _of_service(totals: Sums, low: LoadClass, high: LoadClass) -> tuple[str, str]:
    # Not less than ran at the low load: only there the latency is known not to rise
    enough = max(low.running, round(totals.capacity * low.latency / high.latency))
    advice = f"; for this one, capacity={enough:,} is enough" if enough < totals.capacity else ""
    return (
        f"{_slots(totals)} {_response(low, high)} So the calls wait in the service.",
        f"More capacity only raises the latency. Make the service faster{advice}.",
    )


def _of_blocking(totals: Sums) -> tuple[str, str]:
    reason = (
        f"The function let nothing else run {totals.share_of_run(totals.blocked):.0%} of the time, "
        f"{duration(totals.blocked / totals.calls)} in each call. The thread of the loop used the CPU "
        f"{totals.share_of_run(totals.cpu):.0%} of the time."
    )
    return reason, "Call a blocking function in a thread, with adapters.in_thread, or replace it by an async one."


def _of_timeouts(totals: Sums) -> tuple[str, str]:
    share = totals.share_of_calls(totals.timed_out_seconds)
    return (
        f"{_slots(totals)} Calls that timed out took {share:.0%} of that time.",
        "Make the service answer in time. A shorter timeout frees the slots earlier; more capacity adds more timeouts.",
    )


def _of_retries(totals: Sums) -> tuple[str, str]:
    if totals.retries > max(totals.full, totals.supply * totals.slot_wait_share):
        at_once = totals.capacity * max(totals.group, 1)  # no new record begins while so many wait for a retry
        reason = (
            f"No new record began {totals.share_of_supply(totals.retries):.0%} of the time, while "
            f"{plural(at_once, 'record')} waited for a retry, as many as can run at once: the service refuses calls."
        )
    elif totals.share_of_supply(totals.full) > totals.slot_wait_share:
        rested = share_of(totals.rested_seconds, totals.latency_seconds)
        reason = f"{_full(totals)}: records spent {rested:.0%} of their time in backoffs."
    else:
        repeated = totals.share_of_calls(totals.repeated_seconds)
        reason = f"{_slots(totals)} About {repeated:.0%} of that time went into attempts that were repeated."
    fewer = "" if totals.finding else ' Try capacity="auto": it makes fewer calls while the service refuses them.'
    return reason, f"Find out why the attempts fail; a retry budget limits the retries.{fewer}"


def _of_key(totals: Sums) -> tuple[str, str]:
    reason = (
        f"Slots were free {totals.share_of_supply(totals.keyed):.0%} of the time, while records waited for "
        "earlier ones with the same key."
    )
    faster = "Use a finer key, combine the records of a key into one call, or make that call faster."
    return reason, f"{faster} More capacity changes nothing."


def _of_buffer(totals: Sums) -> tuple[str, str]:
    held = ": results waited for an earlier call" if totals.ordered else ""
    reason = f"{_full(totals)}{held}. The longest call took {duration(totals.longest_seconds)}."
    in_all_slots = totals.capacity * max(totals.group, 1)
    behind_the_longest = ceil(totals.allowed * totals.longest_seconds)
    unordered = ", or use unordered_wait" if totals.ordered else ""
    return reason, f"Set buffer={max(in_all_slots, behind_the_longest, 2 * totals.buffer):,}{unordered}."


def _of_source(totals: Sums) -> tuple[str, str]:
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


def _slots(totals: Sums) -> str:
    share = max(totals.slots_busy, totals.slot_wait_share)
    return f"All slots were busy {share:.0%} of the time."


def _full(totals: Sums) -> str:
    share = totals.share_of_supply(totals.full)
    return f"The buffer of {totals.buffer:,} was full {share:.0%} of the time, while slots were free"


def _response(low: LoadClass, high: LoadClass) -> str:
    change = "rose" if high.latency > RISE * low.latency else "did not rise"
    return (
        f"The latency {change} with the load: {duration(low.latency)} with about {plural(low.running, 'call')} at "
        f"once, {duration(high.latency)} with about {high.running:,}."
    )


# limit -> (totals -> the reason, the advice)
_EXPLANATIONS = {
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
