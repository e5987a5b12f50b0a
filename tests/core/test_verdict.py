"""The verdict on plain numbers."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from trio_asyncio_io import Totals
from trio_asyncio_io._account.samples import LoadClass
from trio_asyncio_io._account.verdict import judge

# 100 calls a second of 0.1 s each, in 10 of 10 slots
BUSY = Totals(
    operators=1,
    ordered=1,
    capacity=10,
    buffer=1000,
    seconds=100.0,
    supply=100.0,
    completed=10_000,
    latency_seconds=1000.0,
    busy=1000.0,
    longest_seconds=1.0,
    consumer=1.0,
    cpu=20.0,
)


def ended(count: int) -> dict[str, float]:
    """So many calls of 0.1 s each have ended."""
    return {"completed": count, "latency_seconds": count / 10}


def loads(low: float, high: float, calls: int = 100) -> tuple[LoadClass, ...]:
    return (LoadClass(1, calls, low), LoadClass(10, 1000, high))


@pytest.mark.parametrize(
    ("totals", "loads", "limit"),
    [
        (BUSY, (), "capacity"),
        (BUSY, loads(0.1, 0.11), "capacity"),
        (BUSY, loads(0.01, 0.1), "service"),
        (BUSY, loads(0.01, 0.1, calls=9), "capacity"),
        (replace(BUSY, cpu=95.0), (), "cpu"),
        (replace(BUSY, consumer=95.0), (), "consumer"),
        (replace(BUSY, busy=100.0, gated=60.0), (), "gate"),
        (replace(BUSY, gated=40.0), (), "capacity"),
        (replace(BUSY, busy=500.0, source=60.0), (), "source"),
        (replace(BUSY, busy=500.0, full=60.0), (), "buffer"),
        (replace(BUSY, busy=500.0, full=40.0, source=50.0), (), "source"),
        (replace(BUSY, busy=600.0, full=20.0, source=20.0), (), "capacity"),
        (replace(BUSY, busy=950.0, source=100.0), (), "capacity"),
        (replace(BUSY, busy=500.0, retries=60.0), (), "retries"),
        (replace(BUSY, busy=500.0, retries=40.0, source=50.0), (), "source"),
        (replace(BUSY, busy=500.0, retries=40.0, full=50.0), (), "buffer"),
        (replace(BUSY, busy=100.0, peak_running=1), (), "capacity"),
        (replace(BUSY, busy=100.0, blocked=90.0), (), "blocking"),
        (replace(BUSY, busy=100.0, blocked=90.0, gated=90.0, consumer=95.0), (), "blocking"),
        (replace(BUSY, busy=100.0, blocked=60.0), (), "blocking"),
        (replace(BUSY, busy=100.0, blocked=60.0, gated=60.0), (), "gate"),
        (replace(BUSY, busy=100.0, blocked=60.0, source=90.0), (), "source"),
        (replace(BUSY, busy=100.0, blocked=40.0), (), "capacity"),
        (replace(BUSY, busy=100.0, blocked=90.0, **ended(2)), (), "blocking"),
        (replace(BUSY, running=1, **ended(9)), (), "unknown"),
        (replace(BUSY, gated=60.0, **ended(9)), (), "gate"),
        (replace(BUSY, running=1, **ended(10)), (), "capacity"),
        (replace(BUSY, **ended(10)), (), "source"),
        (replace(BUSY, running=5, operators=2, **ended(5)), (), "unknown"),
        (replace(BUSY, operators=2, **ended(20)), (), "source"),
        (replace(BUSY, capacity=1, busy=100.0, **ended(2)), (), "capacity"),
        (replace(BUSY, running=1, capacity=1, busy=100.0, **ended(1)), (), "unknown"),
        (replace(BUSY, capacity=100, busy=10_000.0, running=100, **ended(50)), (), "unknown"),
        (replace(BUSY, timed_out_seconds=500.0), (), "timeouts"),
        (replace(BUSY, timed_out_seconds=400.0, repeated_seconds=500.0), (), "retries"),
        (replace(BUSY, timed_out_seconds=400.0, repeated_seconds=400.0), (), "capacity"),
        (replace(BUSY, busy=500.0, full=30.0, keyed=30.0), (), "key"),
        (replace(BUSY, busy=500.0, full=40.0, keyed=20.0), (), "buffer"),
        (replace(BUSY, busy=500.0, full=10.0, keyed=50.0, source=20.0), (), "key"),
        (replace(BUSY, busy=500.0, full=10.0, keyed=30.0, source=40.0), (), "source"),
        (replace(BUSY, **ended(0)), (), "unknown"),
        (replace(BUSY, seconds=0.0), (), "unknown"),
    ],
)
def test_numbers_have_their_limit(totals: Totals, loads: tuple[LoadClass, ...], limit: str) -> None:
    assert judge(totals, loads).limit == limit


def test_a_verdict_prints_its_sentences_and_its_advice() -> None:
    assert str(judge(BUSY, loads(0.1, 0.1))) == (
        "10,000 calls in 100 s: 100 a second, with a mean latency of 100 ms.\n"
        "The capacity of 10 allows 100 a second at this latency; 10.0 of 10 slots were busy on average (100%).\n"
        "All slots were busy 100% of the time. The latency did not rise with the load: 100 ms with about 1 call at "
        "once, 100 ms with about 10.\n"
        "Try capacity=20: it gives up to 2 x the throughput if the latency does not rise. If the throughput did not "
        "rise, the calls wait in the service: go back to 10."
    )


def test_failures_are_counted_and_come_before_more_capacity() -> None:
    verdict = judge(replace(BUSY, completed=5_000, failed=5_000))
    assert verdict.sentences[0].startswith("10,000 calls (5,000 failed or timed out) in 100 s: ")
    assert verdict.advice.startswith("Find out why the calls fail.")
    assert judge(replace(BUSY, completed=5_001, failed=4_999)).advice.startswith("Try capacity=20")


def test_the_advised_buffer_holds_all_results_behind_the_longest_call() -> None:
    verdict = judge(replace(BUSY, busy=200.0, full=80.0, buffer=20, longest_seconds=5.0))
    assert verdict.advice.startswith("Set buffer=500, ")  # 100 calls a second, for 5 s


def test_the_advised_capacity_is_not_below_what_ran_at_the_low_load() -> None:
    low, high = LoadClass(24, 100, 0.01), LoadClass(200, 1000, 1.0)
    totals = replace(BUSY, capacity=200, busy=20_000.0)
    assert judge(totals, (low, high)).advice.endswith("for this one, capacity=24 is enough.")


def test_calls_and_records_are_told_apart_if_there_were_retries() -> None:
    verdict = judge(replace(BUSY, retried=22, failed=3, completed=197, latency_seconds=20.0))
    assert verdict.sentences[0] == (
        "222 calls for 200 records (22 retried, 3 failed or timed out) in 100 s: 2 records a second, with a mean "
        "latency of 100 ms."
    )


def test_the_waits_for_gates_are_summed_over_records_if_these_share_calls() -> None:
    gated = replace(BUSY, busy=100.0, gated=60.0, seconds_by_gate={"RateLimit": 40.0})
    assert "Summed over all calls: RateLimit 40 s." in str(judge(gated))
    assert "Summed over all records: RateLimit 40 s." in str(judge(replace(gated, groups=1_000, grouped=10_000)))


@pytest.mark.parametrize(("rate", "remedy"), [(20.0, "the gate finds it"), (60.0, "change the gate")])
def test_a_gate_that_finds_its_limit_is_no_remedy_for_another_one(rate: float, remedy: str) -> None:
    waits = {"Auto 'api'": 40.0, "RateLimit": rate}
    totals = replace(BUSY, busy=100.0, gated=60.0, seconds_by_gate=waits, finding="60 calls at once")
    assert f"If the service allows more, {remedy};" in judge(totals).advice


def test_the_capacity_is_only_the_upper_limit_of_an_operator_that_finds_it() -> None:
    sentences = judge(replace(BUSY, busy=400.0, capacity=800, gated=60.0, finding="4 calls at once")).sentences
    assert sentences[1:3] == ("On average, 4.0 calls ran at once, of at most 800.", "4 calls at once.")


def test_a_gate_that_refuses_most_records_is_the_limit() -> None:
    half = replace(BUSY, failed=10_000, refused=10_000)
    most = replace(BUSY, failed=10_001, refused=10_001)
    assert (judge(half).limit, judge(most).limit) == ("capacity", "gate")
    assert judge(most).sentences[-1] == "Gates refused 10,001 of 20,001 records."
    assert judge(replace(half, gated=60.0)).sentences[-1].startswith("A gate held calls back 60% of the time.")


def test_the_wait_for_retries_is_named_with_a_gate_as_the_remedy() -> None:
    verdict = judge(replace(BUSY, busy=100.0, retries=70.0, retried=400))
    assert verdict.sentences[-1] == (
        "No new record began 70% of the time, while 10 records waited for a retry, as many as can run at once: the "
        "service refuses calls."
    )
    assert 'capacity="auto"' in verdict.advice


def test_an_operator_that_finds_its_capacity_is_not_advised_to_find_it() -> None:
    totals = replace(BUSY, busy=100.0, retries=70.0, retried=400, finding="60 calls at once")
    assert judge(totals).advice == "Find out why the attempts fail; a retry budget limits the retries."


@pytest.mark.parametrize(
    ("capacity", "group", "waited"), [(1, 0, "1 record waited"), (10, 0, "10 records waited"), (2, 10, "20 records w")]
)
def test_as_many_records_as_can_run_at_once_wait_for_a_retry(capacity: int, group: int, waited: str) -> None:
    totals = replace(BUSY, capacity=capacity, group=group, busy=0.1 * capacity, retries=70.0, retried=400)
    assert f"while {waited}" in judge(totals).sentences[-1]


def test_backoffs_that_fill_the_buffer_are_named() -> None:
    verdict = judge(replace(BUSY, busy=100.0, full=80.0, rested_seconds=900.0, retried=1))
    assert verdict.limit == "retries"
    assert verdict.sentences[-1].endswith("records spent 90% of their time in backoffs.")


def test_an_unpickled_verdict_equals_the_original() -> None:
    assert pickle.loads(pickle.dumps(judge(BUSY))) == judge(BUSY)
