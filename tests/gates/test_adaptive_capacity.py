"""AdaptiveCapacity: plain arithmetic, without a loop."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from itertools import cycle
from math import inf, nan
from statistics import median
from typing import Any

import pytest

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import AdaptiveCapacity, Outcome, PerKey
from trio_asyncio_io.gates._adaptive_capacity import _Window

OK = Outcome("ok")


def window(gate: AdaptiveCapacity, now: float, latency: float, latencies: Iterator[float] | None = None) -> float:
    """Use the whole limit, with this latency, until the limit changes or the window is over; the instant of the end.

    `latencies`: what the gate gets instead, if given.
    """
    for _ in range(max(8, int(3.0 / latency))):
        limit = gate.limit
        for _ in range(limit):
            assert gate.delay(now, 1.0) == 0.0
            gate.started(now, 1.0)
        assert gate.delay(now, 1.0) == inf or gate.limit != limit
        now += latency
        for _ in range(limit):
            gate.ended(now, next(latencies) if latencies else latency, OK, 1.0)
        if gate.limit != limit:
            break
    return now


def limits(gate: AdaptiveCapacity, latency_of: Callable[[int], float], windows: int, now: float = 0.0) -> list[int]:
    """The limits after each of so many windows, if a limit has this latency."""
    found = []
    for _ in range(windows):
        now = window(gate, now, latency_of(gate.limit))
        found.append(gate.limit)
    return found


def test_the_end_of_a_call_makes_room_for_exactly_one() -> None:
    gate = AdaptiveCapacity(4, 4)
    for _ in range(4):
        gate.started(0.0, 1.0)
    gate.ended(0.1, 0.1, OK, 1.0)
    assert gate.delay(0.1, 1.0) == 0.0
    gate.started(0.1, 1.0)
    assert gate.delay(0.1, 1.0) == inf


def test_after_an_outage_each_success_adds_one_call() -> None:
    gate = AdaptiveCapacity(40, 40)
    for now in range(0, 50, 10):
        gate.started(now, 1.0)
        gate.ended(now, 0.0, Outcome("overload"), 1.0)
    low = gate.limit
    found = []
    for now in (60.0, 60.1, 60.2):
        gate.started(now, 1.0)
        gate.ended(now, 0.1, OK, 1.0)
        found.append(gate.limit)
    assert found == [low + 1, low + 2, low + 3]


def test_a_window_without_fresh_calls_has_the_latency_of_the_others_and_no_error() -> None:
    window = _Window(10.0, 30)
    for _ in range(30):
        window.add(20.0, 15.0)
    assert (window.latency, window.error) == (15.0, 0.0)
    assert not window.has_latency(20.0)


def test_a_descent_needs_five_fresh_calls_even_if_they_take_equally_long() -> None:
    window = _Window(10.0, 1)
    found = []
    for _ in range(5):
        window.add(10.4, 0.2)
        found.append(window.has_latency(10.5))
    assert found == [False] * 4 + [True]
    assert not window.has_latency(10.4)


def test_a_descent_needs_twenty_calls_if_they_take_differently_long() -> None:
    window = _Window(10.0, 1)
    found = []
    for seconds in [0.1, 0.4] * 10:
        window.add(10.5, seconds)
        found.append(window.has_latency(10.5))
    assert found == [False] * 19 + [True]


def test_the_limit_doubles_while_the_throughput_grows() -> None:
    assert limits(AdaptiveCapacity(8, 200), lambda limit: 0.2, 6) == [16, 32, 64, 128, 200, 200]


def knee(servers: int) -> Callable[[int], float]:
    return lambda limit: 0.1 * max(1.0, limit / servers)


def test_above_the_knee_the_limit_becomes_the_calls_that_the_throughput_takes_at_the_least_latency() -> None:
    assert limits(AdaptiveCapacity(8, 200), knee(20), 3) == [16, 32, 19]


def test_a_start_above_the_knee_goes_down_until_the_latency_no_longer_falls() -> None:
    assert limits(AdaptiveCapacity(60, 200), knee(20), 6) == [120, 30, 15, 7, 20, 20]


def test_a_start_at_the_maximum_goes_down_as_well() -> None:
    assert limits(AdaptiveCapacity(60, 60), knee(20), 4) == [30, 15, 7, 20]


def test_a_start_with_no_room_for_a_step_that_proves_something_goes_down_as_well() -> None:
    assert limits(AdaptiveCapacity(90, 100), knee(8), 6) == [45, 22, 11, 5, 2, 8]


def test_a_descent_in_between_takes_the_limit_down_if_calls_wait() -> None:
    """A knee that has fallen from 64 to 20: half of the limit has half of the latency."""
    gate = AdaptiveCapacity(8, 64)
    assert limits(gate, knee(64), 12)[-1] == 64
    assert limits(gate, knee(20), 14, now=1000.0)[-1] == 20


def test_a_descent_in_between_changes_nothing_if_the_service_only_became_slower() -> None:
    gate = AdaptiveCapacity(8, 64)
    assert limits(gate, lambda limit: 0.1, 8)[-1] == 64
    assert {*limits(gate, lambda limit: 0.3, 30, now=1000.0)} == {32, 64}


def test_answers_of_no_latency_are_not_measured() -> None:
    gate = AdaptiveCapacity(3, 3)
    for number in range(1000):
        now = number / 100
        assert gate.delay(now, 1.0) == 0.0
        gate.started(now, 1.0)
        gate.ended(now, 0.0, OK, 1.0)
    assert gate.limit == 3


def test_a_start_at_the_maximum_returns_to_it_if_the_service_is_only_far_away() -> None:
    assert limits(AdaptiveCapacity(60, 60), lambda limit: 0.3, 3) == [30, 60, 60]


def test_a_step_up_that_gains_only_what_other_processes_lose_is_taken_back() -> None:
    """Three other processes have 24 calls in front of the same knee: a step up gains, and the latency shows why."""
    found = limits(AdaptiveCapacity(8, 200), lambda limit: 0.1 * max(1.0, (limit + 24) / 20), 30)
    assert max(found[3:]) <= 22
    assert median(found[3:]) <= 17


def test_a_latency_that_varies_is_not_a_queue() -> None:
    latencies = cycle([0.05, 0.2, 0.1, 0.4, 0.02])
    gate = AdaptiveCapacity(8, 200)
    now = 0.0
    for _ in range(6):
        now = window(gate, now, 0.1, latencies)
    assert gate.limit >= 100


def test_the_limit_is_cut_at_most_once_a_second() -> None:
    gate = AdaptiveCapacity(100, 100)
    for now in (5.0, 5.5, 5.9, 6.0):
        gate.started(now, 1.0)
        gate.ended(now, 0.0, Outcome("overload"), 1.0)
    assert gate.limit == 49  # 100 * 0.7 * 0.7


def test_a_call_that_started_before_the_cut_does_not_cut_again() -> None:
    gate = AdaptiveCapacity(100, 100)
    gate.ended(5.0, 0.0, Outcome("throttled"), 1.0)
    gate.ended(7.0, 3.0, Outcome("throttled"), 1.0)
    assert gate.limit == 70


def test_the_limit_never_falls_below_one() -> None:
    gate = AdaptiveCapacity(2, 4)
    for now in range(20):
        gate.ended(2.0 * now, 0.0, Outcome("overload"), 1.0)
    assert gate.limit == 1


def test_after_an_outage_the_limit_is_soon_what_it_was() -> None:
    gate = AdaptiveCapacity(100, 200)
    for second in range(60):
        gate.ended(2.0 * second, 0.0, Outcome("overload"), 1.0)
    assert gate.limit == 1
    for _ in range(99):
        gate.ended(120.0, 0.1, OK, 1.0)
    assert gate.limit == 100


@pytest.mark.parametrize(("seconds", "limit"), [(0.05, 100), (1.5, 70)])
def test_a_short_call_that_an_outage_found_half_way_is_no_sign_of_life(seconds: float, limit: int) -> None:
    gate = AdaptiveCapacity(100, 200)
    gate.ended(10.0, 0.01, Outcome("overload"), 1.0)
    gate.ended(10.04, seconds, OK, 1.0)
    for now in (11.0, 13.0):
        gate.ended(now, 0.01, Outcome("overload"), 1.0)
    for _ in range(100):
        gate.ended(20.0, 0.1, OK, 1.0)
    assert gate.limit == limit


def test_an_overload_beside_answers_does_not_let_the_limit_rise_at_once() -> None:
    gate = AdaptiveCapacity(100, 200)
    for second in range(1, 4):
        gate.ended(2.0 * second, 0.0, Outcome("overload"), 1.0)
        gate.ended(2.0 * second + 0.125, 0.125, OK, 1.0)
    assert gate.limit == 34  # 100 * 0.7 * 0.7 * 0.7


def test_a_pause_is_not_a_low_throughput() -> None:
    gate = AdaptiveCapacity(8, 200)
    now = window(gate, 0.0, 0.2)
    assert gate.limit == 16
    gate.started(now, 1.0)
    gate.ended(now + 0.2, 0.2, OK, 1.0)
    window(gate, now + 60.0, 0.2)
    assert gate.limit == 32


def test_the_limit_does_not_grow_if_it_is_not_used() -> None:
    gate = AdaptiveCapacity(10, 100)
    for step in range(2_000):
        now = step * 0.01
        gate.started(now, 1.0)
        gate.ended(now + 0.01, 0.01, OK, 1.0)
    assert gate.limit == 10


def test_a_cancelled_call_only_makes_room() -> None:
    gate = AdaptiveCapacity(1, 1)
    gate.started(0.0, 1.0)
    assert gate.delay(0.0, 1.0) == inf
    gate.ended(1.0, 1.0, Outcome("cancelled"), 1.0)
    assert gate.delay(1.0, 1.0) == 0.0


def test_it_pickles_with_its_options() -> None:
    copy = pickle.loads(pickle.dumps(AdaptiveCapacity(3, 7)))
    assert (copy.start, copy.maximum, copy.limit) == (3, 7, 3)


def test_an_argument_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match=r"^start must be at least 1, got 0$"):
        AdaptiveCapacity(0)
    with pytest.raises(ValueError, match=r"^maximum must be at least start, 9, got 8$"):
        AdaptiveCapacity(9, 8)


@pytest.mark.parametrize("arguments", [(nan,), (8, inf), (2.5,)])
def test_a_number_that_is_not_whole_is_an_error(arguments: Any) -> None:
    with pytest.raises(TypeError, match=r"^(start|maximum) must be a whole number, got "):
        AdaptiveCapacity(*arguments)


async def never(value: object) -> None:
    raise AssertionError


@pytest.mark.parametrize("gate", [AdaptiveCapacity(8, 51), PerKey(AdaptiveCapacity(8, 51), key=len)], ids=type)
def test_a_maximum_above_the_capacity_is_an_error(gate: Any) -> None:
    message = r"^capacity must be at least the maximum of AdaptiveCapacity\(start=8, maximum=51\), 51, got 50: raise"
    with pytest.raises(ValueError, match=message):
        unordered_wait([], never, timeout=1.0, capacity=50, gate=gate)
    unordered_wait([], never, timeout=1.0, capacity=51, gate=gate)


def test_the_default_maximum_is_at_most_the_default_capacity() -> None:
    unordered_wait([], never, timeout=1.0, gate=AdaptiveCapacity())


def test_a_classify_that_is_not_callable_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^classify must be callable"):
        AdaptiveCapacity(classify="overload")  # type: ignore[arg-type]
