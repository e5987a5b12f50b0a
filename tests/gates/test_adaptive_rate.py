"""AdaptiveRate: plain arithmetic, without a loop."""

from __future__ import annotations

import pickle
from math import inf
from typing import Any

import pytest

from trio_asyncio_io.gates import AdaptiveRate, Outcome

OK = Outcome("ok")
THROTTLED = Outcome("throttled")


def throttled(gate: AdaptiveRate, *instants: float) -> AdaptiveRate:
    for instant in instants:
        gate.ended(instant, 0.0, THROTTLED, 1.0)
    return gate


def test_it_is_idle_until_the_first_throttled_call() -> None:
    gate = AdaptiveRate()
    for outcome in (OK, Outcome("overload"), Outcome("error"), Outcome("cancelled")):
        gate.ended(0.0, 0.0, outcome, 1.0)
    assert gate.is_idle
    assert gate.rate(0.0) == inf
    assert not throttled(gate, 0.0).is_idle


def test_the_rate_starts_at_the_hint_and_doubles_each_second() -> None:
    gate = throttled(AdaptiveRate(20), 5.0)
    assert [gate.rate(5.0 + seconds) for seconds in range(4)] == [20, 40, 80, 160]


def test_a_throttled_call_cuts_the_rate_which_grows_back_by_the_cube_of_the_time() -> None:
    gate = throttled(AdaptiveRate(10, cut=0.7, growth=0.4), 0.0, 3.0)
    to_reach = (0.3 * 80 / 0.4) ** (1 / 3)
    assert gate.rate(3.0) == pytest.approx(0.7 * 80)
    assert gate.rate(3.0 + to_reach) == pytest.approx(80)
    assert gate.rate(3.0 + 2 * to_reach) == pytest.approx(80 * 1.3)
    assert gate.rate(1000.0) == 160  # at most twice of what was reached


def test_the_rate_is_cut_at_most_once_in_half_a_second_and_never_below_a_call_in_two_seconds() -> None:
    gate = throttled(AdaptiveRate(10), 0.0, 1.0, 1.1, 1.2, 1.49)
    assert 14 <= gate.rate(1.49) <= 17  # one cut from 20, and what has grown since
    assert throttled(AdaptiveRate(10, cut=0.01), 0.0, 1.0).rate(1.0) == 0.5


def test_a_call_that_started_before_the_cut_does_not_cut_again() -> None:
    gate = throttled(AdaptiveRate(10), 0.0, 2.0)
    before = gate.rate(4.0)
    gate.ended(4.0, 2.5, THROTTLED, 1.0)
    assert gate.rate(4.0) == before
    gate.ended(4.0, 1.5, THROTTLED, 1.0)
    assert gate.rate(4.0) < before


def test_the_cut_starts_from_what_the_service_really_admitted() -> None:
    gate = throttled(AdaptiveRate(100), 0.0)
    for number in range(21):
        gate.ended(number / 20, 0.0, OK, 1.0)
    throttled(gate, 1.0)
    assert gate.rate(1.0) == pytest.approx(0.7 * 20, rel=0.1)


def test_calls_start_evenly_at_the_rate() -> None:
    gate = throttled(AdaptiveRate(10), 0.0)
    gate.started(0.0, 1.0)
    assert gate.delay(0.0, 1.0) == pytest.approx(0.1)
    gate.started(0.1, 3.0)
    assert gate.delay(0.1, 1.0) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize(("seconds", "shortest", "longest"), [(30.0, 30.0, 33.0), (600.0, 60.0, 66.0), (0.0, 0.0, 0.0)])
def test_a_requested_pause_holds_back_all_calls(seconds: float, shortest: float, longest: float) -> None:
    gate = AdaptiveRate()
    gate.ended(10.0, 0.0, Outcome("throttled", seconds), 1.0)
    assert shortest <= gate.delay(10.0, 1.0) <= longest
    assert gate.rate(10.0 + shortest) <= 20  # it has not doubled meanwhile


def test_a_pause_is_not_taken_for_a_slow_service() -> None:
    gate = throttled(AdaptiveRate(100), 0.0)
    for number in range(101):
        gate.ended(number / 100, 0.0, OK, 1.0)
    gate.ended(1.0, 0.0, Outcome("throttled", 30.0), 1.0)
    gate.ended(34.0, 0.0, OK, 1.0)
    assert gate.rate(35.0) >= 0.7 * 100 * 0.9


def test_the_rate_is_cut_although_each_refusal_comes_soon_after_a_pause() -> None:
    gate = AdaptiveRate(10)
    now = 0.0
    for _ in range(12):
        gate.ended(now, 0.0, Outcome("throttled", 1.0), 1.0)
        now += gate.delay(now, 1.0) + 0.01
        gate.started(now, 1.0)
    assert gate.rate(now) < 1.0


def test_it_pickles_with_its_options_and_without_what_it_has_learnt() -> None:
    gate = throttled(AdaptiveRate(5, cut=0.5, growth=1.0, max_pause=3.0, classify=repr), 0.0)
    copy = pickle.loads(pickle.dumps(gate))
    assert (copy.start, copy.cut, copy.growth, copy.max_pause, copy.classify) == (5.0, 0.5, 1.0, 3.0, repr)
    assert copy.is_idle


@pytest.mark.parametrize("name", ["start", "cut", "growth", "max_pause"])
def test_an_argument_out_of_range_is_named(name: str) -> None:
    wrong: dict[str, Any] = {name: -1}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got -1$"):
        AdaptiveRate(**wrong)


def test_a_classify_that_is_not_callable_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^classify must be callable"):
        AdaptiveRate(classify="overload")  # type: ignore[arg-type]
