"""AdaptiveRate: plain arithmetic, without a loop."""

from __future__ import annotations

import pickle
from itertools import pairwise
from math import inf, nan
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


def use(gate: AdaptiveRate, start: float, end: float, latency: float = 0.0) -> float:
    """Start a call whenever the gate admits one, all of which succeed; the instant after the last one."""
    now = start
    while (now := now + gate.delay(now, 1.0)) < end:
        gate.started(now, 1.0)
        gate.ended(now + latency, latency, OK, 1.0)
    return end


def test_a_throttled_call_cuts_the_rate_which_grows_back_by_the_cube_of_the_time() -> None:
    gate = throttled(AdaptiveRate(10, cut=0.7, growth=0.4), 0.0)
    throttled(gate, use(gate, 0.0, 3.0))
    w = gate.rate(3.0) / 0.7
    to_reach = (0.3 * w / 0.4) ** (1 / 3)
    assert 50 <= w <= 80  # the mean of the last half second, while the rate doubled to 80
    assert gate.rate(3.0 + to_reach) == pytest.approx(w)
    assert gate.rate(3.0 + 1.5 * to_reach) == pytest.approx(w * (1 + 0.3 * 0.5**3))


def test_without_refusals_long_after_a_cut_the_rate_doubles_again_each_second() -> None:
    gate = throttled(AdaptiveRate(10), 0.0)
    throttled(gate, use(gate, 0.0, 3.0))
    assert gate.rate(14.0) == pytest.approx(2 * gate.rate(13.0))


def test_a_rate_of_few_calls_takes_at_least_twenty_of_them_or_six_seconds_to_return() -> None:
    for start, seconds in ((5.0, 4.0), (0.5, 6.0)):
        gate = AdaptiveRate(start)
        throttled(gate, 0.0)
        gate.started(0.0, 1.0)
        gate.ended(0.0, 0.0, OK, 1.0)
        throttled(gate, 0.6)
        w = gate.rate(0.6) / 0.7
        assert w == pytest.approx(start, rel=0.1)
        assert gate.rate(0.6 + seconds) == pytest.approx(w, rel=0.05)
        assert gate.rate(0.6 + 0.9 * seconds) < w


def test_the_rate_does_not_grow_while_no_call_uses_it() -> None:
    gate = throttled(AdaptiveRate(10), 0.0)
    throttled(gate, use(gate, 0.0, 3.0))
    before = gate.rate(3.0)
    gate.started(60.0, 1.0)
    assert gate.rate(60.0) == pytest.approx(before, rel=0.05)


def test_the_rate_is_cut_at_most_once_in_half_a_second_and_never_below_a_call_in_twenty_seconds() -> None:
    gate = throttled(AdaptiveRate(10), 0.0)
    now = use(gate, 0.0, 1.0)
    throttled(gate, now)
    before = gate.rate(now)
    throttled(gate, now + 0.1, now + 0.49)
    assert gate.rate(now) <= before
    assert gate.rate(now + 0.49) >= before
    gate = AdaptiveRate(0.06, cut=0.01)
    gate.ended(0.0, 0.0, THROTTLED, 1.0)
    gate.started(0.0, 1.0)
    gate.ended(0.0, 0.0, OK, 1.0)
    assert throttled(gate, 1.0).rate(1.0) == 0.05


def test_a_call_that_started_before_the_cut_does_not_cut_again() -> None:
    gate = throttled(AdaptiveRate(10), 0.0, 2.0)
    before = gate.rate(4.0)
    gate.ended(4.0, 2.5, THROTTLED, 1.0)
    assert gate.rate(4.0) == before
    gate.ended(4.0, 1.5, THROTTLED, 1.0)
    assert gate.rate(4.0) < before


def test_the_cut_starts_from_what_the_service_really_admitted() -> None:
    """The limit fell from 100 to 60 per second: two of five calls were refused since the last cut."""
    rates = []
    for refused in (0, 40):
        gate = throttled(AdaptiveRate(100), 0.0)
        throttled(gate, now := use(gate, 0.0, 1.0))
        for number in range(100):
            gate.started(now, 1.0)
            outcome = THROTTLED if number % 5 in {1, 3} and refused else OK
            gate.ended(now, 0.0, outcome, 1.0)
            now += 0.004
        throttled(gate, now + 0.2)
        rates.append(gate.rate(now + 0.2))
    assert rates[1] == pytest.approx(0.6 * rates[0], rel=0.05)


def test_a_latency_changes_nothing() -> None:
    rates = []
    for latency in (0.0, 2.0):
        gate = throttled(AdaptiveRate(10), 0.0)
        now = use(gate, 0.0, 3.0, latency)
        gate.ended(now + latency, latency, THROTTLED, 1.0)
        rates.append(gate.rate(now + latency))
    assert rates[1] == pytest.approx(rates[0], rel=0.01)


def test_three_refusals_in_a_row_are_no_limit_but_a_service_that_refuses_everything() -> None:
    gate = throttled(AdaptiveRate(100), 0.0)
    now = use(gate, 0.0, 1.0)
    starts = []
    for _ in range(9):
        gate.started(now, 1.0)
        gate.ended(now, 0.0, THROTTLED, 1.0)
        starts.append(now)
        now += gate.delay(now, 1.0)
    gaps = [later - first for first, later in pairwise(starts)]
    assert gaps[2:] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0], abs=0.02)
    gate.started(now, 1.0)
    gate.ended(now, 0.0, OK, 1.0)
    assert gate.rate(now) >= 0.7 * 150  # the rate before, and not nine cuts of it


def test_at_a_low_rate_the_call_after_a_refusal_comes_sooner() -> None:
    """A refused call has used nothing of the limit."""
    gate = throttled(AdaptiveRate(1.0), 0.0)
    gate.started(0.0, 1.0)
    gate.ended(0.0, 0.0, OK, 1.0)
    gate.ended(0.01, 0.01, THROTTLED, 1.0)
    assert 0.15 <= gate.delay(0.01, 1.0) <= 0.45
    gate.started(0.4, 1.0)
    assert gate.delay(0.4, 1.0) > 0.7


def test_calls_start_evenly_at_the_rate() -> None:
    gate = throttled(AdaptiveRate(10), 0.0)
    gate.started(0.0, 1.0)
    assert gate.delay(0.0, 1.0) == pytest.approx(0.1)
    gate.started(0.1, 3.0)
    assert gate.delay(0.1, 1.0) == pytest.approx(0.3, rel=0.1)


@pytest.mark.parametrize(("seconds", "shortest", "longest"), [(30.0, 30.0, 33.0), (600.0, 60.0, 66.0), (1.1, 1.1, 1.3)])
def test_a_requested_pause_holds_back_all_calls(seconds: float, shortest: float, longest: float) -> None:
    gate = AdaptiveRate()
    gate.ended(10.0, 0.0, Outcome("throttled", seconds), 1.0)
    assert shortest <= gate.delay(10.0, 1.0) <= longest
    assert gate.rate(10.0 + shortest) <= 20  # it has not doubled meanwhile


@pytest.mark.parametrize("seconds", [0.0, 0.4, 1.0])
def test_a_pause_of_a_second_or_less_may_have_been_rounded_up_and_holds_back_nobody(seconds: float) -> None:
    gate = AdaptiveRate()
    gate.ended(10.0, 0.0, Outcome("throttled", seconds), 1.0)
    assert gate.delay(10.0, 1.0) == 0.0


def test_a_pause_is_not_taken_for_a_slow_service() -> None:
    gate = throttled(AdaptiveRate(100), 0.0)
    now = use(gate, 0.0, 1.0)
    before = throttled(gate, now).rate(now)
    gate.ended(now + 0.01, 0.0, Outcome("throttled", 30.0), 1.0)
    assert gate.rate(now + 33.5) >= before


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


@pytest.mark.parametrize("name", ["start", "cut", "growth", "max_pause"])
@pytest.mark.parametrize("value", [nan, inf])
def test_a_number_that_is_not_finite_is_an_error(name: str, value: float) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got {value}$"):
        AdaptiveRate(**wrong)


def test_a_classify_that_is_not_callable_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^classify must be callable"):
        AdaptiveRate(classify="overload")  # type: ignore[arg-type]


def test_an_answer_before_the_first_throttled_call_says_nothing_about_the_rate() -> None:
    """An idle gate is told of errors, such as a status 404."""
    gate = AdaptiveRate(20)
    gate.ended(0.0, 0.0, Outcome("error"), 1.0)
    assert throttled(gate, 1.0).rate(1.0) == 20


# Giving up

QUOTA = ConnectionRefusedError("the quota is used up")
DAYS = Outcome("throttled", 16 * 86_400.0, QUOTA)


def paused(gate: AdaptiveRate, now: float = 0.0) -> AdaptiveRate:
    gate.ended(now, 0.0, DAYS, 1.0)
    return gate


def test_it_gives_up_with_the_last_answer_of_the_service() -> None:
    gate = paused(AdaptiveRate(give_up=90.0))
    gate.ended(70.0, 0.0, DAYS, 1.0)
    assert gate.delay(70.0, 1.0) == 20.0
    with pytest.raises(ConnectionRefusedError) as raised:
        gate.delay(90.0, 1.0)
    assert str(raised.value) == str(QUOTA)
    assert raised.value.__cause__ is None  # a copy: the original would keep the frames of its call
    (note,) = raised.value.__notes__
    assert note == (
        "the service has accepted no call for 1.5 minutes (give_up), so the operator stops, and in its last answer it "
        "asks to wait 16 days. Check the service and its quota. Start again when it accepts calls, or set give_up to a "
        "longer time"
    )


def test_after_giving_up_another_wait_begins() -> None:
    """Such as that of the next run: the clock of a gate stands still between two runs."""
    gate = paused(AdaptiveRate(give_up=30.0))
    with pytest.raises(ConnectionRefusedError):
        gate.delay(30.0, 1.0)
    assert gate.delay(30.0, 1.0) >= 30.0


def test_a_success_begins_the_wait_again() -> None:
    gate = paused(AdaptiveRate(give_up=90.0))
    gate.ended(50.0, 1.0, OK, 1.0)
    paused(gate, 70.0)
    assert gate.delay(70.0, 1.0) >= 60.0
    assert gate.delay(100.0, 1.0) >= 30.0


def test_the_time_in_which_no_call_waits_does_not_count() -> None:
    gate = paused(AdaptiveRate(give_up=90.0))
    gate.started(1000.0, 1.0)
    paused(gate, 1000.0)
    assert 20.0 <= gate.delay(1000.0, 1.0) <= 30.0


def test_it_never_gives_up_with_infinity_or_without_an_exception() -> None:
    assert paused(AdaptiveRate(give_up=inf)).delay(50.0, 1.0) > 0
    gate = AdaptiveRate(give_up=10.0)
    gate.ended(0.0, 0.0, Outcome("throttled", 100.0), 1.0)
    assert gate.delay(50.0, 1.0) > 0


def test_a_pause_that_is_cut_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    gate = AdaptiveRate(name="api")
    gate.ended(0.0, 0.0, Outcome("throttled", 60.0), 1.0)
    assert caplog.messages == []
    for now in (70.0, 140.0):
        paused(gate, now)
    (message,) = caplog.messages
    assert message == (
        "AdaptiveRate 'api': the service asks to wait 16 days. The next call is made after 1 minute (max_pause), and "
        "if the service accepts none for 5 minutes (give_up), the operator stops"
    )
