"""The samples: which records are counted, and at which load."""

from __future__ import annotations

import pytest

from trio_asyncio_io import Histogram
from trio_asyncio_io._account.samples import EXACT_RECORDS, FOLD, STRIDE, Sampling
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import InputOrder


def call_one(ledger: Ledger, seconds: float) -> None:
    """Accept, start, complete and receive a record: a slot wait, a latency and a head wait of this length."""
    ledger.accept("a", 0.0)
    entry = ledger.start(seconds)
    ledger.complete(entry, ["x"], 2 * seconds)
    ledger.poll(3 * seconds, 1)
    ledger.receive()


def test_the_first_records_are_counted_exactly() -> None:
    ledger = Ledger(InputOrder(), 1)
    seconds = [number / 8 for number in range(EXACT_RECORDS)]
    for each in seconds:
        call_one(ledger, each)
    statistics = ledger.statistics()
    assert statistics.latency == statistics.slot_wait == statistics.head_wait == Histogram.of(seconds)


def test_later_records_are_counted_as_a_sample_and_their_sums_exactly() -> None:
    ledger = Ledger(InputOrder(), 1)
    rounds, seconds = 30, [value / 1024 for value in range(1, 1001)]
    for _ in range(rounds):
        for each in seconds:
            call_one(ledger, each)
    statistics = ledger.statistics()
    assert statistics.latency_seconds == statistics.slot_wait_seconds == statistics.head_wait_seconds
    assert statistics.latency_seconds == rounds * sum(seconds)
    for histogram in (statistics.latency, statistics.slot_wait, statistics.head_wait):
        assert histogram.count == pytest.approx(rounds * 1000, abs=STRIDE)
        percentiles = [histogram.p50, histogram.p95, histogram.p99]
        assert percentiles == pytest.approx([500 / 1024, 950 / 1024, 990 / 1024], rel=0.04)


@pytest.mark.parametrize("calls", [1, EXACT_RECORDS, EXACT_RECORDS + 5, 994, 1000, 2345])
def test_the_histogram_of_the_latency_has_a_duration_for_each_call(calls: int) -> None:
    ledger = Ledger(InputOrder(), 1)
    for number in range(calls):
        call_one(ledger, 1 + number % 7)
    numbers = ledger.statistics()
    assert numbers.latency.count == numbers.completed == calls


def test_the_longest_duration_is_exact_even_if_it_is_in_no_sample() -> None:
    for late in range(STRIDE):
        ledger = Ledger(InputOrder(), 1)
        for number in range(EXACT_RECORDS + 40):
            call_one(ledger, 3.41 if number == EXACT_RECORDS + late else 1.0)
        assert ledger.statistics().longest_seconds == pytest.approx(3.41)
        assert ledger.totals(lambda: (9.0, 0.0)).longest_seconds == ledger.statistics().longest_seconds


def test_the_lists_of_durations_stay_short() -> None:
    ledger = Ledger(InputOrder(), 1)
    lengths = set()
    for _ in range(12_000):
        call_one(ledger, 1.0)
        sampling = ledger.flow.sampling
        lengths.add(
            max(
                len(part.unfolded)
                for each in (sampling.exact, sampling.later)
                for part in (each.slot_wait, *each.latency)
            )
        )
    assert max(lengths) < FOLD


def test_both_samples_count_in_the_histograms() -> None:
    sampling = Sampling(4)
    sampling.exact.slot_wait.add(1.0)
    sampling.later.slot_wait.add(2.0)
    assert sampling.histograms(0)["slot_wait"] == Histogram.of([1.0, *[2.0] * STRIDE])
