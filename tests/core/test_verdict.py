"""The verdict on plain numbers."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from trio_asyncio_io._core.verdict import Evidence, LoadClass, judge

# 100 calls a second of 0.1 s each, in 10 of 10 slots
BUSY = Evidence(
    capacity=10,
    buffer=1000,
    seconds=100.0,
    calls=10_000,
    in_flight=10.0,
    latency=0.1,
    longest=1.0,
    source_wait=0.0,
    starved=0.0,
    consumer=0.01,
    cpu=0.2,
)


def loads(low: float, high: float, calls: int = 100) -> tuple[LoadClass, ...]:
    return (LoadClass(1, calls, low), LoadClass(10, 1000, high))


@pytest.mark.parametrize(
    ("evidence", "limit"),
    [
        (BUSY, "capacity"),
        (replace(BUSY, loads=loads(0.1, 0.11)), "capacity"),
        (replace(BUSY, loads=loads(0.01, 0.1)), "service"),
        (replace(BUSY, loads=loads(0.01, 0.1, calls=9)), "capacity"),
        (replace(BUSY, cpu=0.95), "cpu"),
        (replace(BUSY, consumer=0.95), "consumer"),
        (replace(BUSY, in_flight=1.0, gated=0.6), "gate"),
        (replace(BUSY, gated=0.4), "capacity"),
        (replace(BUSY, in_flight=5.0, source_wait=0.6), "source"),
        (replace(BUSY, in_flight=5.0, starved=0.6), "buffer"),
        (replace(BUSY, in_flight=5.0, starved=0.4, source_wait=0.5), "source"),
        (replace(BUSY, in_flight=6.0, starved=0.2, source_wait=0.2), "capacity"),
        (replace(BUSY, in_flight=9.5, source_wait=1.0), "capacity"),
        (replace(BUSY, in_flight=1.0, peak=1), "blocking"),
        (replace(BUSY, in_flight=1.0, peak=1, capacity=1), "capacity"),
        (replace(BUSY, in_flight=1.0, peak=1, calls=9), "unknown"),
        (replace(BUSY, calls=9, running=1), "unknown"),
        (replace(BUSY, calls=9, gated=0.6), "gate"),
        (replace(BUSY, calls=10, running=1), "capacity"),
        (replace(BUSY, calls=10), "source"),
        (replace(BUSY, calls=5, running=5, operators=2), "unknown"),
        (replace(BUSY, calls=20, operators=2), "source"),
        (replace(BUSY, calls=2, capacity=1, in_flight=1.0), "capacity"),
        (replace(BUSY, calls=1, running=1, capacity=1, in_flight=1.0), "unknown"),
        (replace(BUSY, capacity=100, in_flight=100.0, calls=50, running=100), "unknown"),
        (replace(BUSY, timed_out=0.5), "timeouts"),
        (replace(BUSY, timed_out=0.4, repeated=0.5), "retries"),
        (replace(BUSY, timed_out=0.4, repeated=0.4), "capacity"),
        (replace(BUSY, in_flight=5.0, starved=0.6, keyed=0.3), "key"),
        (replace(BUSY, in_flight=5.0, starved=0.6, keyed=0.2), "buffer"),
        (replace(BUSY, in_flight=5.0, starved=0.2, keyed=0.9, source_wait=0.7), "source"),
        (replace(BUSY, calls=0, latency=0.0), "unknown"),
        (replace(BUSY, seconds=0.0), "unknown"),
    ],
)
def test_numbers_have_their_limit(evidence: Evidence, limit: str) -> None:
    assert judge(evidence).limit == limit


def test_a_verdict_prints_its_sentences_and_its_advice() -> None:
    assert str(judge(replace(BUSY, loads=loads(0.1, 0.1)))) == (
        "10,000 calls in 100 s: 100 a second, with a mean latency of 100 ms.\n"
        "The capacity of 10 allows 100 a second at this latency; on average 10.0 slots were busy (100%).\n"
        "All slots were busy 100% of the time. The latency did not rise with the load: 100 ms with about 1 call at "
        "once, 100 ms with about 10.\n"
        "Set capacity=20: it gives 2 x the throughput if the latency still does not rise. If the throughput did not "
        "rise, go back to 10."
    )


def test_failures_are_counted_and_come_before_more_capacity() -> None:
    verdict = judge(replace(BUSY, failed=5_000))
    assert verdict.sentences[0].startswith("10,000 calls (5,000 failed or timed out) in 100 s: ")
    assert verdict.advice.startswith("Find out why the calls fail.")
    assert judge(replace(BUSY, failed=4_999)).advice.startswith("Try capacity=20")


def test_the_advised_buffer_holds_all_results_behind_the_longest_call() -> None:
    verdict = judge(replace(BUSY, in_flight=2.0, starved=0.8, buffer=20, longest=5.0))
    assert verdict.advice.startswith("Set buffer=500, ")  # 100 calls a second, for 5 s


def test_the_advised_capacity_is_not_below_what_ran_at_the_low_load() -> None:
    low, high = LoadClass(24, 100, 0.01), LoadClass(200, 1000, 1.0)
    evidence = replace(BUSY, capacity=200, in_flight=200.0, loads=(low, high))
    assert judge(evidence).advice.endswith("for this one, capacity=24 is enough.")


def test_calls_and_records_are_told_apart_if_there_were_retries() -> None:
    verdict = judge(replace(BUSY, calls=200, retried=22, failed=3))
    assert verdict.sentences[0] == (
        "222 calls for 200 records (22 retried, 3 failed or timed out) in 100 s: 2 records a second, with a mean "
        "latency of 100 ms."
    )


def test_the_waits_for_gates_are_summed_over_records_if_these_share_calls() -> None:
    gated = replace(BUSY, in_flight=1.0, gated=0.6, gates=(("RateLimit", 40.0),))
    assert "Summed over all calls: RateLimit 40 s." in str(judge(gated))
    assert "Summed over all records: RateLimit 40 s." in str(judge(replace(gated, groups=10, grouped=100)))


def test_an_unpickled_verdict_equals_the_original() -> None:
    assert pickle.loads(pickle.dumps(judge(BUSY))) == judge(BUSY)
