"""CircuitBreaker: plain arithmetic, without a loop."""

from __future__ import annotations

import gc
import pickle
from math import inf, nan
from typing import Any
from weakref import WeakSet

import pytest

from trio_asyncio_io.gates import CircuitBreaker, CircuitOpenError, Outcome

OK = Outcome("ok")
DOWN = ConnectionRefusedError("down")
OVERLOAD = Outcome("overload", error=DOWN)


def opened(**options: Any) -> CircuitBreaker:
    """A circuit that opens at 0.0."""
    gate = CircuitBreaker(**{"calls": 3, **options})
    for _ in range(3):
        gate.ended(0.0, 0.0, OVERLOAD, 1.0)
    return gate


def probe(gate: CircuitBreaker, now: float, outcome: Outcome) -> None:
    gate.started(now, 1.0)
    gate.ended(now, 0.0, outcome, 1.0)


def test_it_may_be_forgotten_without_overload() -> None:
    gate = CircuitBreaker()
    for kind in ("ok", "error", "throttled", "cancelled"):
        gate.ended(0.0, 0.0, Outcome(kind), 1.0)  # type: ignore[arg-type]
    assert gate.may_forget(0.0)
    gate.ended(1.0, 0.0, OVERLOAD, 1.0)
    assert not gate.may_forget(1.0)
    gate.ended(11.0, 0.0, OK, 1.0)  # the overload has left the window
    assert gate.may_forget(11.0)


@pytest.mark.parametrize(("ok", "overload", "opens"), [(0, 19, False), (0, 20, True), (11, 10, False), (10, 10, True)])
def test_it_opens_at_a_share_of_enough_calls(ok: int, overload: int, opens: bool) -> None:
    gate = CircuitBreaker()
    gate.ended(0.0, 0.0, OVERLOAD, 1.0)
    for _ in range(ok):
        gate.ended(1.0, 0.0, OK, 1.0)
    for _ in range(overload - 1):
        gate.ended(2.0, 0.0, OVERLOAD, 1.0)
    assert gate.is_closed == (not opens)


def test_it_opens_after_enough_calls_in_a_row_however_slow_they_are() -> None:
    gate = CircuitBreaker(calls=5)
    for now in range(4):
        gate.ended(30.0 * now, 30.0, OVERLOAD, 1.0)
    assert gate.is_closed
    gate.ended(120.0, 30.0, OVERLOAD, 1.0)
    assert not gate.is_closed


def test_it_opens_after_enough_calls_in_a_row_whatever_there_was_before() -> None:
    gate = CircuitBreaker()
    gate.ended(0.0, 0.0, OVERLOAD, 1.0)
    for _ in range(1_000):
        gate.ended(0.0, 0.0, OK, 1.0)
    for _ in range(20):
        assert gate.is_closed
        gate.ended(1.0, 0.0, OVERLOAD, 1.0)
    assert not gate.is_closed


def test_one_failure_in_the_trickle_does_not_open_it_again() -> None:
    """Otherwise a service that always fails one call in a hundred would never be back."""
    gate = opened(open_for=10.0, max_open=100.0)
    now = gate.delay(0.0, 1.0)
    probe(gate, now, OK)
    for number in range(100):
        probe(gate, now + 1.0, OVERLOAD if number == 50 else OK)
    probe(gate, now + 10.0, OK)
    assert gate.is_closed


def test_failures_in_the_trickle_open_it_for_twice_as_long() -> None:
    gate = opened(open_for=10.0, max_open=100.0)
    now = gate.delay(0.0, 1.0)
    probe(gate, now, OK)
    probe(gate, now + 1.0, OK)
    probe(gate, now + 2.0, OVERLOAD)
    assert 16.0 <= gate.delay(now + 2.0, 1.0) <= 24.0


def test_a_circuit_that_opened_in_the_trickle_needs_a_probe_again() -> None:
    gate = opened(open_for=10.0, max_open=2.0)
    now = gate.delay(0.0, 1.0)
    probe(gate, now, OK)
    probe(gate, now + 1.0, OVERLOAD)
    now += 1.0 + gate.delay(now + 1.0, 1.0)
    gate.started(now, 1.0)
    assert gate.delay(now, 1.0) > 100.0


def test_an_open_circuit_admits_one_probe_after_a_while() -> None:
    gate = opened(open_for=10.0)
    delay = gate.delay(0.0, 1.0)
    assert 8.0 <= delay <= 12.0
    assert gate.delay(delay, 1.0) == 0.0
    gate.started(delay, 1.0)
    assert gate.delay(delay, 1.0) > 100.0  # until the probe ends


def test_it_is_open_for_twice_as_long_after_each_failed_probe() -> None:
    gate = opened(open_for=10.0, max_open=30.0)
    now = 0.0
    for expected in (20.0, 30.0, 30.0):
        now += gate.delay(now, 1.0)
        probe(gate, now, OVERLOAD)
        assert 0.8 * expected <= gate.delay(now, 1.0) <= 1.2 * expected


@pytest.mark.parametrize("kind", ["ok", "error", "throttled"])
def test_an_answered_probe_lets_a_trickle_through_and_then_all(kind: Any) -> None:
    gate = opened(open_for=10.0, trickle=2)
    now = gate.delay(0.0, 1.0)
    probe(gate, now, Outcome(kind))
    gate.started(now, 1.0)
    assert gate.delay(now, 1.0) == 0.0
    gate.started(now, 1.0)
    assert gate.delay(now, 1.0) > 100.0
    gate.ended(now + 5.0, 5.0, OK, 1.0)
    assert not gate.is_closed
    gate.ended(now + 10.0, 10.0, OK, 1.0)
    assert gate.is_closed


def test_a_cancelled_probe_says_nothing() -> None:
    gate = opened()
    now = gate.delay(0.0, 1.0)
    probe(gate, now, Outcome("cancelled"))
    assert gate.delay(now, 1.0) == 0.0


def test_calls_that_started_before_say_nothing_about_the_probe() -> None:
    gate = opened(open_for=10.0)
    now = gate.delay(0.0, 1.0)
    gate.started(now, 1.0)
    gate.ended(now + 1.0, now + 1.0, OK, 1.0)
    assert gate.delay(now + 1.0, 1.0) > 100.0


def test_it_gives_up_with_the_exception_of_the_service() -> None:
    gate = opened(open_for=3.0, max_open=6.0, give_up=5.0)
    now = gate.delay(0.0, 1.0)
    probe(gate, now, OVERLOAD)
    assert gate.delay(now, 1.0) <= 5.0 - now
    with pytest.raises(ConnectionRefusedError) as raised:
        gate.delay(5.0, 1.0)
    assert str(raised.value) == "down"
    (note,) = raised.value.__notes__
    assert note == (
        "the service has accepted no call for 5 seconds (give_up), so the operator stops. Check the service and its "
        "quota. Start again when it accepts calls, or set give_up to a longer time"
    )


def test_after_giving_up_another_wait_begins_with_the_next_refusal() -> None:
    gate = opened(open_for=20.0, max_open=20.0, give_up=5.0)
    with pytest.raises(ConnectionRefusedError):
        gate.delay(5.0, 1.0)
    now = 5.0 + gate.delay(5.0, 1.0)
    assert now >= 16.0
    probe(gate, now, OVERLOAD)
    assert gate.delay(now, 1.0) == 5.0
    with pytest.raises(ConnectionRefusedError):
        gate.delay(now + 5.0, 1.0)


def test_after_an_answered_probe_another_wait_begins_with_the_next_refusal() -> None:
    gate = opened(open_for=10.0, max_open=1000.0, give_up=60.0)
    probe(gate, 12.0, OK)
    for _ in range(3):
        probe(gate, 50.0, OVERLOAD)
    due = 50.0 + gate.delay(50.0, 1.0)
    gate.started(due, 1.0)
    assert gate.delay(due, 1.0) == pytest.approx(110.0 - due)
    with pytest.raises(ConnectionRefusedError):
        gate.delay(110.1, 1.0)


def test_time_without_a_call_that_waits_does_not_count_for_giving_up() -> None:
    """A source may pause for an hour, and the service be back."""
    gate = opened(open_for=2.0, give_up=5.0)
    assert gate.delay(3600.0, 1.0) == 0.0
    gate.started(3600.0, 1.0)
    assert gate.delay(3600.0, 1.0) > 0.0  # the next call waits for the probe
    gate.ended(3601.0, 1.0, OVERLOAD, 1.0)
    assert 0.0 < gate.delay(3601.0, 1.0) <= 2.4
    with pytest.raises(ConnectionRefusedError):
        gate.delay(3604.0, 1.0)


def test_in_the_mode_fail_it_never_gives_up() -> None:
    gate = opened(mode="fail", open_for=10.0, give_up=1.0)
    with pytest.raises(CircuitOpenError):
        gate.delay(5.0, 1.0)
    assert gate.delay(12.0, 1.0) == 0.0


def test_in_the_mode_fail_it_refuses_calls() -> None:
    gate = opened(mode="fail", open_for=10.0)
    with pytest.raises(CircuitOpenError, match=r"^the circuit is open: the service does not answer$") as raised:
        gate.delay(1.0, 1.0)
    assert str(raised.value.__cause__) == "down"
    assert gate.delay(12.0, 1.0) == 0.0


def test_it_pickles_with_its_options_and_closed() -> None:
    copy = pickle.loads(pickle.dumps(opened(mode="fail", give_up=inf, trickle=7)))
    assert (copy.mode, copy.calls, copy.give_up, copy.trickle) == ("fail", 3, inf, 7)
    assert copy.is_closed


@pytest.mark.parametrize("name", ["share", "calls", "window", "open_for", "max_open", "trickle", "give_up"])
def test_an_argument_out_of_range_is_named(name: str) -> None:
    wrong: dict[str, Any] = {name: -1}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got -1$"):
        CircuitBreaker(**wrong)
    with pytest.raises(ValueError, match=r'^mode must be "pause" or "fail", got 5$'):
        CircuitBreaker(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [nan, inf])
@pytest.mark.parametrize("name", ["share", "window", "open_for", "max_open"])
def test_a_number_that_is_not_finite_is_an_error(name: str, value: float) -> None:
    """A circuit that is open for ever would hold back all calls for ever."""
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got {value}$"):
        CircuitBreaker(**wrong)


def test_a_classify_that_is_not_callable_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^classify must be callable"):
        CircuitBreaker(classify="overload")  # type: ignore[arg-type]


class UnavailableError(Exception):
    """An exception with a response, as of an HTTP client."""


def overload(alive: WeakSet[UnavailableError]) -> Outcome:
    with pytest.raises(UnavailableError) as raised:
        raise UnavailableError("503")
    alive.add(raised.value)
    return Outcome("overload", error=raised.value)


def test_it_keeps_no_error_while_it_is_closed() -> None:
    alive: WeakSet[UnavailableError] = WeakSet()
    gate = CircuitBreaker(calls=3)
    for now in (0.0, 1.0):
        gate.ended(now, 0.0, overload(alive), 1.0)
    gc.collect()
    assert gate.is_closed
    assert not alive


def test_it_keeps_an_error_without_its_frames_until_a_probe_is_answered() -> None:
    alive: WeakSet[UnavailableError] = WeakSet()
    gate = CircuitBreaker("fail", calls=1, open_for=1.0)
    gate.ended(0.0, 0.0, overload(alive), 1.0)
    gc.collect()
    assert not alive  # a copy is kept
    with pytest.raises(CircuitOpenError) as raised:
        gate.delay(0.0, 1.0)
    kept = raised.value.__cause__
    assert str(kept) == "503"
    assert kept is not None
    assert kept.__traceback__ is None
    probe(gate, 2.0, OK)
    for _ in range(10):
        gate.started(2.0, 1.0)
    with pytest.raises(CircuitOpenError) as raised:
        gate.delay(2.0, 1.0)
    assert raised.value.__cause__ is None


def test_after_giving_up_it_keeps_no_error() -> None:
    alive: WeakSet[UnavailableError] = WeakSet()
    gate = CircuitBreaker(calls=1, open_for=20.0, max_open=20.0, give_up=5.0)
    gate.ended(0.0, 0.0, overload(alive), 1.0)
    with pytest.raises(UnavailableError) as raised:
        gate.delay(5.0, 1.0)
    alive.add(raised.value)
    del raised
    gc.collect()
    assert not alive
