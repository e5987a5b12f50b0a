"""RateLimit: plain arithmetic, without a loop."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_asyncio_io._core.admission import SAME_INSTANT
from trio_asyncio_io.gates import Outcome, RateLimit

ROUNDING = 1e-6


def starts_of(gate: RateLimit, calls: list[tuple[float, float]]) -> list[float]:
    """The starts of calls (arrival, weight) that come in this order."""
    starts: list[float] = []
    for arrival, weight in calls:
        now = max(arrival, starts[-1] if starts else 0.0)
        now += gate.delay(now, weight)
        gate.started(now, weight)
        starts.append(now)
    return starts


def test_calls_start_evenly_spaced() -> None:
    assert starts_of(RateLimit(4), [(0.0, 1.0)] * 5) == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("rate", [3, 7, 10, 50, 333])
def test_no_second_has_more_calls_than_the_rate_although_sums_are_rounded(rate: int) -> None:
    """A service that counts calls per second would refuse an eleventh one at 0.9999999999999999 s."""
    starts = starts_of(RateLimit(rate), [(0.0, 1.0)] * (10 * rate))
    assert max(Counter(map(int, starts)).values()) == rate
    assert all(later - first >= 1.0 for first, later in zip(starts, starts[rate:], strict=False))


def test_a_call_never_starts_early_by_rounding() -> None:
    gate = RateLimit(1)
    gate.started(0.0, 1.0)
    asked = math.nextafter(1.0, 0.0)
    assert asked + gate.delay(asked, 1.0) >= 1.0
    assert gate.delay(asked, 1.0) > SAME_INSTANT  # an operator takes a shorter delay for none


def test_an_idle_time_saves_up_the_burst() -> None:
    gate = RateLimit(2, burst=3)
    assert starts_of(gate, [(0.0, 1.0)] * 5 + [(100.0, 1.0)] * 4) == [0, 0, 0, 0.5, 1.0, 100, 100, 100, 100.5]


def test_a_heavy_call_takes_its_weight() -> None:
    assert starts_of(RateLimit(10, burst=10), [(0.0, 8.0), (0.0, 5.0), (0.0, 1.0)]) == [
        0.0,
        pytest.approx(0.3),
        pytest.approx(0.4),
    ]


def test_a_call_that_is_larger_than_the_bucket_starts_when_the_bucket_is_full() -> None:
    assert starts_of(RateLimit(10, burst=10), [(0.0, 5.0), (0.0, 40.0), (0.0, 1.0)]) == [0.0, 0.5, 3.6]


def test_a_correction_moves_the_next_start() -> None:
    gate = RateLimit(10)
    gate.started(0.0, 5.0)
    gate.correct(5.0, 20.0)
    assert gate.delay(0.0, 1.0) == 2.0
    gate.correct(20.0, 1.0)
    assert gate.delay(0.0, 1.0) == pytest.approx(0.1)


def settled(calls: int, share: float) -> RateLimit:
    """A gate whose calls really weighed a share of their estimates."""
    gate = RateLimit(100.0, burst=100.0)
    for number in range(calls):
        gate.started(float(number), 100.0)
        gate.correct(100.0, 100.0 * share)
        gate.ended(number + 0.5, 0.5, Outcome("ok"), 100.0 * share)
    return gate


def starts_at_once(gate: RateLimit, now: float, weight: float) -> int:
    """Calls that start at this instant and do not end."""
    number = 0
    while gate.delay(now, weight) <= SAME_INSTANT:
        gate.started(now, weight)
        number += 1
    return number


def test_estimates_that_are_ten_times_too_high_do_not_empty_the_bucket() -> None:
    assert starts_at_once(settled(0, 0.1), 1_000.0, 10.0) in {9, 10}
    assert starts_at_once(settled(9, 0.1), 1_000.0, 10.0) in {9, 10}  # too few to tell
    assert starts_at_once(settled(20, 0.1), 1_000.0, 10.0) in range(97, 101)


def test_estimates_that_are_right_count_in_full() -> None:
    gate = RateLimit(4)
    for number in range(20):
        gate.started(float(number), 1.0)
        gate.ended(number + 0.5, 0.5, Outcome("ok"), 1.0)
    assert starts_of(gate, [(100.0, 1.0)] * 3) == [100.0, 100.25, 100.5]


def test_estimates_that_are_too_low_stay_as_they_are() -> None:
    assert starts_at_once(settled(20, 3.0), 1_000.0, 10.0) in {9, 10}


def test_a_bucket_saves_up_no_more_than_the_burst_while_calls_run_whose_estimates_are_too_high() -> None:
    gate = settled(20, 0.1)
    starts_at_once(gate, 1_000.0, 10.0)
    assert starts_at_once(gate, 2_000.0, 10.0) in range(97, 101)


@given(
    rate=st.floats(0.5, 100),
    burst=st.floats(0.5, 20),
    calls=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 10)), max_size=30),
)
def test_no_span_has_more_weight_than_the_burst_and_the_rate_allow(
    rate: float, burst: float, calls: list[tuple[float, float]]
) -> None:
    arrivals = accumulate(gap for gap, _ in calls)
    calls = [(arrival, min(weight, burst)) for arrival, (_, weight) in zip(arrivals, calls, strict=True)]
    starts = starts_of(RateLimit(rate, burst=burst), calls)
    for first in range(len(starts)):
        for last in range(first, len(starts)):
            weight = sum(each for _, each in calls[first : last + 1])
            assert weight <= burst + rate * (starts[last] - starts[first]) + ROUNDING


def test_a_gate_pickles_without_its_state() -> None:
    gate = RateLimit(2, burst=3, weight=len)
    gate.started(0.0, 100.0)
    copy = pickle.loads(pickle.dumps(gate))
    assert (copy.rate, copy.burst, copy.weight) == (2.0, 3.0, len)
    assert copy.delay(0.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0}, "rate must be above 0 and finite, got 0"),
        ({"rate": math.inf}, "rate must be above 0 and finite, got inf"),
        ({"rate": math.nan}, "rate must be above 0 and finite, got nan"),
        ({"rate": 1, "burst": math.inf}, "burst must be above 0 and finite, got inf"),
        ({"rate": 1, "burst": 0}, "burst must be above 0 and finite, got 0"),
        ({"rate": "5"}, "rate must be a number, got '5'"),
        ({"rate": 1, "weight": 3}, "weight must be callable, got 3"),
    ],
)
def test_an_argument_out_of_range_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        RateLimit(**arguments)
