"""The explanation: the sentences of a verdict, with the numbers on which they rest."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from .evidence import Evidence, LoadClass

__all__ = ["EXPLANATIONS", "throughput"]

RISE = 1.25  # of the latency from a low to a high load


def throughput(evidence: Evidence) -> Iterator[str]:
    """The sentences that each verdict has."""
    calls = _calls(evidence.calls) + (f" ({evidence.failed:,} failed or timed out)" if evidence.failed else "")
    runs = f", summed over {evidence.operators:,} operators: each" if evidence.operators > 1 else ":"
    yield (
        f"{calls} in {_seconds(evidence.seconds)}{runs} {_rate(evidence.calls / evidence.seconds)}, "
        f"with a mean latency of {_seconds(evidence.latency)}."
    )
    yield (
        f"The capacity of {evidence.capacity:,} allows {_rate(evidence.allowed)} at this latency; on average "
        f"{evidence.in_flight:,.1f} slots were busy ({evidence.busy:.0%})."
    )


def _of_cpu(evidence: Evidence) -> tuple[str, str]:
    return (
        f"The thread of the event loop used the CPU {evidence.cpu:.0%} of the time.",
        "A higher capacity changes nothing: use more processes, or move computations out of the event loop.",
    )


def _of_consumer(evidence: Evidence) -> tuple[str, str]:
    return (
        f"Outputs waited for the consumer {evidence.consumer:.0%} of the time.",
        "Make the code that receives the results faster, or receive in several tasks.",
    )


def _of_gate(evidence: Evidence) -> tuple[str, str]:
    by_wait = sorted(evidence.gates, key=lambda gate: -gate[1])
    waits = ", ".join(f"{name} {_seconds(seconds)}" for name, seconds in by_wait)
    reason = f"A gate held calls back {evidence.gated:.0%} of the time. Summed over all calls: {waits}."
    return reason, "More capacity changes nothing. If the service allows more, change the gate; else accept the time."


def _of_capacity(evidence: Evidence) -> tuple[str, str]:
    if 2 * evidence.failed >= evidence.calls:
        return _slots(evidence), "Find out why the calls fail. More capacity only makes more of them fail."
    doubled = 2 * evidence.capacity
    if evidence.compared is None:
        reason = f"{_slots(evidence)} The load was always about the same, so its effect on the latency is unknown."
        return reason, f"Try capacity={doubled:,}: it gives up to 2 x the throughput if the latency does not rise."
    reason = f"{_slots(evidence)} {_response(*evidence.compared)}"
    return reason, f"Set capacity={doubled:,}: it gives 2 x the throughput if the latency still does not rise."


def _of_service(evidence: Evidence) -> tuple[str, str]:
    assert evidence.compared is not None
    low, high = evidence.compared
    enough = max(1, round(evidence.capacity * low.latency / high.latency))
    return (
        f"{_slots(evidence)} {_response(low, high)} So the calls wait in the service.",
        f"More capacity only raises the latency. Make the service faster; for this one, capacity={enough:,} is enough.",
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
    if evidence.repeated < evidence.rested:
        return (
            (
                f"The buffer of {evidence.buffer:,} was full {evidence.starved:.0%} of the time, while slots were free: "
                f"invocations spent {evidence.rested:.0%} of their time in backoffs before {evidence.retried:,} retries."
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
            f"Slots were free {evidence.starved:.0%} of the time, while records waited for an earlier one with the "
            "same key: one call at a time runs for each key."
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
        f"results waited for an earlier call. The longest call took {_seconds(evidence.longest)}."
    )
    return reason, f"Set buffer={max(needed, 2 * evidence.buffer):,}, or use unordered_wait."


def _of_source(evidence: Evidence) -> tuple[str, str]:
    if evidence.started_at_once and evidence.source_wait <= evidence.slot_wait:
        count = _calls(evidence.calls + evidence.running)
        reason = f"No record waited for a slot: there were only {count}, for {evidence.capacity:,} slots."
        return reason, "More capacity changes nothing. With more elements, more calls can run at once."
    enough = max(1, ceil(1.2 * evidence.in_flight))
    advice = f" For this one, capacity={enough:,} is enough." if enough < evidence.capacity else ""
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
        f"The latency {change} with the load: {_seconds(low.latency)} with about {_calls(low.running)} at once, "
        f"{_seconds(high.latency)} with about {high.running:,}."
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 10 else f"{seconds:.3g} s"  # noqa: PLR2004 - digits


def _rate(rate: float) -> str:
    return f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.2g} a second"  # noqa: PLR2004 - digits


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"
