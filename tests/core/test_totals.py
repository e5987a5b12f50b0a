"""Totals: sums of several operators, and the verdict on them."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import pytest

from trio_asyncio_io import Totals
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import InputOrder

# 100 calls of 1 s in 10 of 10 slots
BUSY = Totals(
    operators=1,
    capacity=10,
    buffer=1000,
    peak_running=10,
    longest_seconds=1.0,
    seconds=10.0,
    completed=100,
    latency_seconds=100.0,
    supply=10.0,
    busy=100.0,
)
# The same time with one call at once, because the source is slow
IDLE = replace(
    BUSY,
    completed=10,
    latency_seconds=10.0,
    busy=10.0,
    source=9.0,
    peak_running=2,
    longest_seconds=3.0,
    seconds_by_gate={"RateLimit": 0.5},
)


@pytest.mark.parametrize(
    ("totals", "limit"),
    [
        (BUSY, "capacity"),
        (IDLE, "source"),
        (replace(IDLE, withheld=4.0), "source"),
        (replace(IDLE, withheld=5.0), "consumer"),
        (replace(BUSY, low_calls=10, low_latency_seconds=4.0, high_calls=80, high_latency_seconds=80.0), "service"),
        (replace(BUSY, low_calls=10, low_latency_seconds=10.0, high_calls=80, high_latency_seconds=80.0), "capacity"),
        (replace(BUSY, low_calls=4, low_latency_seconds=1.6, high_calls=80, high_latency_seconds=80.0), "capacity"),
        (Totals(), "unknown"),
    ],
)
def test_the_verdict_on_sums(totals: Totals, limit: str) -> None:
    assert totals.explain().limit == limit
    assert (totals + totals).explain().limit == limit


def test_a_sum_of_few_records_may_have_one_operator_with_many() -> None:
    few = Totals(
        operators=1,
        capacity=10,
        buffer=1000,
        peak_running=2,
        longest_seconds=1.0,
        seconds=1.0,
        completed=2,
        latency_seconds=2.0,
        supply=1.0,
        busy=2.0,
    )
    many = sum([few] * 20, BUSY)
    assert many.calls <= many.operators * many.capacity
    assert many.explain().limit == "capacity"
    assert sum([few] * 20, Totals()).explain().limit == "source"


def test_the_sum_is_the_mean_operator() -> None:
    both = BUSY + IDLE
    assert (both.operators, both.capacity, both.peak_running, both.longest_seconds, both.records) == (
        2,
        10,
        10,
        3.0,
        110,
    )
    assert both.slots_busy == pytest.approx(0.55)
    assert both.share_of_supply(both.source) == pytest.approx(0.45)
    assert both.explain().sentences[0] == (
        "110 calls in 20 s, summed over 2 operators: each 5.5 a second, with a mean latency of 1 s."
    )


def test_no_totals_add_nothing() -> None:
    assert Totals() + IDLE == IDLE


def test_differences_add_up_to_the_last_totals() -> None:
    """Whatever the order in which totals of one operator are reported."""
    series = [Totals(), IDLE, BUSY, IDLE + BUSY]
    differences = [later - earlier for earlier, later in pairwise(series)]
    added = sum(differences, Totals())
    for each in fields(added):
        if each.name in Totals.CONSTANT:
            continue
        assert getattr(added, each.name) == pytest.approx(getattr(series[-1], each.name)), each.name


def test_a_difference_describes_the_same_operator() -> None:
    later = replace(BUSY, ordered=1, buffer=50, seconds=20.0, completed=200, latency_seconds=200.0, supply=20.0)
    later = replace(later, busy=100.0, full=16.0, longest_seconds=9.0)
    earlier = replace(BUSY, ordered=1, buffer=50, busy=50.0, full=8.0, longest_seconds=9.0)
    assert ((later - earlier).operators, (later - earlier).ordered) == (1, 1)
    assert "unordered_wait" in later.explain().advice
    assert "unordered_wait" in (later - earlier).explain().advice


def test_invocations_that_run_do_not_count_in_totals() -> None:
    ledger = Ledger(InputOrder(), 10, capacity=2)
    ledger.begin_run((0.0, 0.0))
    for element in "ab":
        ledger.accept(element, 0.0)
    first = ledger.start(0.0)
    ledger.start(0.0).attempts = first.attempts = 1
    ledger.complete(first, ["A"], 3.0)
    totals = ledger.totals(lambda: (4.0, 1.0))
    assert (totals.operators, totals.calls, totals.busy, totals.seconds, totals.cpu) == (1, 1, 3.0, 4.0, 1.0)
    assert (totals.capacity, totals.buffer, totals.source) == (2, 10, 0.0)


def test_a_record_whose_handler_runs_counts_with_its_calls() -> None:
    ledger = Ledger(InputOrder(), 10, capacity=2)
    ledger.begin_run((0.0, 0.0))
    ledger.accept("a", 0.0)
    record = ledger.start(0.0)
    record.attempts = 1
    ledger.back_off(record, 2.0, 1.0)
    ledger.reserve(0.0)
    ledger.start_call(record, 3.0)
    ledger.fail(record, OSError("down"), 4.0)
    assert ledger.totals(lambda: (5.0, 1.0)).busy == 2.0
    ledger.finish(record, (), 6.0)
    assert ledger.totals(lambda: (7.0, 1.0)).busy == 4.0
