"""The simulation takes exactly the time of the operator on a virtual clock, if both draw the same calls."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.forecast._services import Planted
from tests.plain_gates import AtMost, Refusing
from tests.rehearsal.planted import operated, simulated
from trio_asyncio_io import FixedDelay, RetryBudget
from trio_asyncio_io._core.options import Options
from trio_asyncio_io.gates import CircuitBreaker, RateLimit
from trio_asyncio_io.rehearsal import RecordedCall
from trio_asyncio_io.rehearsal._service import Begin
from trio_asyncio_io.rehearsal._simulation import SimulatedRun, simulate

pytestmark = pytest.mark.hypothesis


def draw_gamma(random: Random) -> tuple[float, None]:
    return random.gammavariate(2.0, 0.05), None


def draw_failing(random: Random) -> tuple[float, Exception | None]:
    return random.gammavariate(2.0, 0.05), ConnectionError("planted") if random.random() < 0.2 else None


@st.composite
def services(draw: st.DrawFn) -> Planted:
    limit = draw(st.sampled_from(["none", "servers", "rate"]))
    return Planted(
        "planted",
        draw(st.sampled_from([draw_gamma, draw_failing])),
        servers=draw(st.integers(1, 20)) if limit == "servers" else None,
        rate=draw(st.sampled_from([50.0, 333.0])) if limit == "rate" else None,
    )


# In front of a rate, the operator runs this often, and the simulation may lie outside its runs by this share
RUNS, MARGIN = 10, 0.05


@st.composite
def plain_settings(draw: st.DrawFn) -> dict[str, Any]:
    """Without retries and gates."""
    capacity = draw(st.integers(1, 30))
    return {
        "capacity": capacity,
        "buffer": capacity + draw(st.sampled_from([0, 3, 300])),
        "mode": draw(st.sampled_from(["ordered", "ordered", "unordered"])),
        "timeout": draw(st.sampled_from([0.15, 1.0, 1000.0])),
    }


@st.composite
def settings(draw: st.DrawFn) -> dict[str, Any]:
    """With retries, and perhaps with gates."""
    options = draw(plain_settings())
    gates = [None, RateLimit(70.0), RateLimit(300.0, burst=10.0), AtMost(1)]
    gate = draw(st.sampled_from(gates))
    budget = draw(st.sampled_from([None, RetryBudget(0.1, 2.0)]))
    if gate is not None or budget is not None:
        options["timeout"] = 1000.0  # deadlines coincide; see `check_run`
    return {**options, "gate": gate, "retry": FixedDelay(3, 0.0371, budget=budget)}


def check_run(service: Planted, options: dict[str, Any], seed: int) -> None:
    """Compare both runs. Nothing may depend on the order of events at one instant, in which Trio makes no promise."""
    run = simulated(service, 150, seed, **options)
    seconds, statistics = operated(service, 150, seed, **options)
    assert run.seconds == pytest.approx(seconds, abs=1e-6)
    assert run.timed_out == statistics.timed_out
    assert run.failed == statistics.failed
    assert run.retried == statistics.retried


@given(service=services(), options=plain_settings(), seed=st.integers(0, 10))
def test_a_plain_run_takes_the_time_and_the_calls_of_the_operator(
    service: Planted, options: dict[str, Any], seed: int
) -> None:
    check_run(service, options, seed)


@given(service=services(), options=settings(), seed=st.integers(0, 10))
def test_a_run_with_retries_and_gates_takes_the_time_and_the_calls_of_the_operator(
    service: Planted, options: dict[str, Any], seed: int
) -> None:
    # Calls that are refused at one instant end together; their order decides which record is retried or times out
    assume(service.rate is None or (options["retry"].budget is None and options["timeout"] == 1000.0))
    if service.rate is None:
        check_run(service, options, seed)
        return
    # The order also decides which of them the rate admits next, so hundreds of runs differ from one another
    run = simulated(service, 150, seed, **options)
    runs = [operated(service, 150, seed, **options) for _ in range(RUNS)]
    low, high = (extreme(seconds for seconds, _ in runs) for extreme in (min, max))
    assert low * (1 - MARGIN) <= run.seconds <= high * (1 + MARGIN)
    low, high = (extreme(statistics.retried for _, statistics in runs) for extreme in (min, max))
    assert low * (1 - MARGIN) - 2 <= run.retried <= high * (1 + MARGIN) + 2
    assert run.timed_out == 0


def test_records_whose_results_are_retried_hold_back_no_new_ones() -> None:
    retry = FixedDelay(2, 0.5, retry_on_result=lambda _: True)
    check_run(Planted("planted", draw_gamma), {"capacity": 3, "buffer": 100, "timeout": 1000.0, "retry": retry}, 1)


def test_a_run_with_gates_and_deadlines_takes_about_the_time_of_the_operator() -> None:
    options: dict[str, Any] = {
        "capacity": 20, "timeout": 0.15, "gate": RateLimit(100.0, burst=10.0), "retry": FixedDelay(3, 0.0371)
    }  # fmt: skip
    service = Planted("planted", draw_failing)
    run = simulated(service, 1000, 1, **options)
    seconds, statistics = operated(service, 1000, 1, **options)
    assert run.seconds == pytest.approx(seconds, rel=0.02)
    assert run.timed_out == pytest.approx(statistics.timed_out, rel=0.1)
    assert statistics.timed_out > 50


def test_a_refused_record_fails_without_a_call() -> None:
    run = simulated(Planted("planted", draw_gamma), 50, 1, capacity=2, timeout=9.0, gate=Refusing(after=0.1))
    assert 0 < run.calls < 50
    assert run.calls + run.failed == 50


class Recovering(Planted):
    """Fails at first."""

    def open(self, random: Random) -> Begin:
        errors = iter([ConnectionError()] * 40)

        def begin(_: float, __: float) -> tuple[float, RecordedCall]:
            return random.uniform(0.01, 0.02), RecordedCall(0.0, 0.0, "failed", 0.0, 1, next(errors, None))

        return begin


def test_an_open_circuit_breaker_holds_back_a_simulated_run() -> None:
    options: dict[str, Any] = {"capacity": 5, "timeout": 100.0}
    service = Recovering("planted", draw_gamma)
    without = simulated(service, 200, 1, **options)
    assert simulated(service, 200, 1, gate=CircuitBreaker(open_for=3.0), **options).seconds > without.seconds + 2


def test_a_gate_that_would_stop_the_run_is_reported() -> None:
    service = Planted("planted", lambda _: (0.01, ConnectionError("down")))
    with pytest.raises(RuntimeError, match="a gate would stop the run: ConnectionError") as caught:
        simulated(service, 200, 1, capacity=5, timeout=1000.0, gate=CircuitBreaker(give_up=60.0))
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_a_gate_that_is_given_keeps_its_state() -> None:
    gate = RateLimit(1_000.0)
    before = repr(vars(gate))
    simulated(Planted("planted", draw_gamma), 100, 1, capacity=10, timeout=9.0, gate=gate)
    assert repr(vars(gate)) == before


# Closed forms


class Evenly:
    """Each call takes as long as its number says; the last number is that of all others."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = seconds

    def open(self, _: Random) -> Begin:
        numbers = iter(self._seconds)
        last = self._seconds[-1]
        return lambda _, __: (seconds := next(numbers, last), RecordedCall(0.0, seconds, "answered", 0.0, 1))


def run_of(service: Evenly, elements: int, **options: Any) -> SimulatedRun:
    return simulate(service, elements, Options(**options), Random(1))


@pytest.mark.parametrize(("elements", "capacity", "seconds"), [(100, 10, 1.0), (101, 10, 1.1), (5, 10, 0.1)])
def test_equal_calls_take_the_time_of_their_rounds(elements: int, capacity: int, seconds: float) -> None:
    run = run_of(Evenly(0.1), elements, capacity=capacity, timeout=9.0)
    assert run.seconds == pytest.approx(seconds)
    assert run.calls == elements
    assert run.delays == pytest.approx([0.1] * elements)


def test_the_steady_pace_is_that_of_the_second_half() -> None:
    service = Evenly(*[0.1] * 50, 0.2)
    run = run_of(service, 100, capacity=1, timeout=9.0)
    assert run.seconds == pytest.approx(15.0)
    assert run.pace == pytest.approx(5.0)
    assert run.seconds_for(200) == pytest.approx(35.0)


def test_a_straggler_holds_back_the_outputs_behind_it() -> None:
    options: dict[str, Any] = {"capacity": 2, "buffer": 4, "timeout": 9.0}
    run = run_of(Evenly(1.0, 0.1), 10, mode="ordered", **options)
    # Three records fit behind the straggler, which the second slot ends at 0.3; six more take both slots from 1.0 on
    assert run.seconds == pytest.approx(1.3)
    assert max(run.delays) == pytest.approx(1.0)
    assert run.delay(0.0) == pytest.approx(0.1)
    unordered = run_of(Evenly(1.0, 0.1), 10, mode="unordered", **options)
    assert unordered.seconds == pytest.approx(1.0)


def test_a_call_that_takes_too_long_ends_at_its_deadline() -> None:
    run = run_of(Evenly(5.0, 0.1), 3, capacity=1, timeout=1.0)
    assert run.seconds == pytest.approx(1.2)
    assert (run.timed_out, run.failed) == (1, 0)


def test_a_quantile_of_the_delays_is_one_of_them() -> None:
    run = run_of(Evenly(0.4, 0.1, 0.3, 0.2), 4, capacity=4, mode="unordered", timeout=9.0)
    assert [run.delay(share) for share in (0.0, 0.25, 0.5, 0.99)] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert SimulatedRun(0).delay(0.5) == 0.0
