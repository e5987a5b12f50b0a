"""Every gate, with calls of any length and weight: no error, no delay below 0, and limits within their bounds."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_asyncio_io.gates import Auto, Budget, CircuitBreaker, Gate, Outcome, RateLimit, RefusedError

LEAST, MOST = 5e-324, 1.7e308
LATEST = 1e9  # seconds: an operator takes instants for equal that differ by less than rounding does here
numbers = st.sampled_from([LEAST, 1e-300, 1e-9, 0.1, 1.0, 3.0, 1e9, 1e300, MOST]) | st.floats(LEAST, MOST)
durations = st.sampled_from([0.0, 0.0, LEAST, 1e-12, 0.05, 0.4, 1.0, 3.0, 1000.0]) | st.floats(0.0, LATEST)
weights = st.just(0.0) | numbers
bounded = numbers.filter(lambda seconds: seconds <= 1e300)  # some percent more are finite, too


@st.composite
def capacities(draw: st.DrawFn) -> Auto:
    start = draw(st.integers(1, 100))
    return Auto(start, draw(st.integers(start, 10**6)))


GATES: dict[str, st.SearchStrategy[Any]] = {
    "rate limit": st.builds(RateLimit, numbers, burst=numbers, weight=st.just(abs)),
    "auto": capacities(),
    "circuit breaker": st.builds(
        CircuitBreaker,
        share=st.floats(LEAST, 1),
        calls=st.integers(1, 3),
        window=numbers,
        open_for=bounded,
        max_open=numbers,
        trickle=st.integers(1, 3),
        give_up=numbers | st.just(inf),
    ),
    "budget": st.builds(Budget, weights, weight=st.just(abs)),
}
ERROR = ConnectionError()
OUTCOMES = [Outcome("ok")] * 4 + [
    Outcome("throttled", error=ERROR),
    Outcome("throttled", 5.0, ERROR),
    Outcome("throttled", MOST, ERROR),
    Outcome("overload", error=ERROR),
    Outcome("overload"),
    Outcome("error", error=ERROR),
    Outcome("cancelled"),
]
steps = st.lists(
    st.tuples(
        st.sampled_from(["start", "start", "start", "wait", "end", "end all", "settle"]),
        durations,
        weights,
        st.sampled_from(OUTCOMES),
    ),
    max_size=80,
)


class Driver:
    """Calls the gate as an operator does, and checks it after each step."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.now = 0.0
        self.calls: list[list[float]] = []  # of those that run: the start and the weight

    def delay(self, weight: float) -> float:
        """The delay, or infinity if the gate refuses the call."""
        try:
            delay = self.gate.delay(self.now, weight)
        except (RefusedError, ConnectionError):
            return inf
        assert delay >= 0.0, delay
        assert self.calls or delay < inf
        return delay

    def start(self, weight: float) -> None:
        weight = 1.0 if self.gate.weight is None else weight
        for _ in range(3):
            delay = self.delay(weight)
            if not delay:
                self.gate.started(self.now, weight)
                self.calls.append([self.now, weight])
            if not delay or self.now + delay > LATEST:
                return
            self.now += delay

    def end(self, outcome: Outcome) -> None:
        if self.calls:
            start, weight = self.calls.pop(0)
            self.gate.ended(self.now, self.now - start, outcome, weight)

    def settle(self, weight: float) -> None:
        if self.calls and self.gate.weight is not None:
            call = self.calls[-1]
            self.gate.correct(call[1], weight)
            call[1] = weight

    def step(self, kind: str, seconds: float, weight: float, outcome: Outcome) -> None:
        match kind:
            case "start":
                self.start(weight)
            case "wait":
                self.now = min(self.now + seconds, LATEST)
            case "end":
                self.end(outcome)
            case "end all":
                while self.calls:
                    self.end(outcome)
            case "settle":
                self.settle(weight)
        self.check()

    def check(self) -> None:
        gate = self.gate
        self.delay(1.0)
        assert gate.may_forget(self.now) in {True, False}
        if isinstance(gate, Auto):
            assert 1 <= gate.limit <= gate.most
        if isinstance(gate, Budget):
            assert min(gate.spent, gate.reserved, gate.left) >= 0.0
            assert bool(gate.reserved) == any(weight for _, weight in self.calls)


@pytest.mark.parametrize("kind", GATES)
@settings(max_examples=4 * settings().max_examples)
@given(data=st.data())
def test_a_gate_is_safe_for_any_calls(kind: str, data: st.DataObject) -> None:
    driver = Driver(data.draw(GATES[kind]))
    for step in data.draw(steps):
        driver.step(*step)


@pytest.mark.parametrize("kind", GATES)
@settings(max_examples=2 * settings().max_examples)
@given(data=st.data())
def test_a_gate_is_safe_for_many_calls_of_one_length(kind: str, data: st.DataObject) -> None:
    """It runs long enough for adaptive gates to take their steps. Calls that take no time all end at one instant."""
    driver = Driver(data.draw(GATES[kind]))
    pattern = data.draw(st.lists(st.tuples(durations, st.sampled_from(OUTCOMES)), min_size=1, max_size=4))
    at_once = data.draw(st.integers(1, 10))
    for number in range(120):
        seconds, outcome = pattern[number % len(pattern)]
        for _ in range(at_once):
            driver.start(1.0)
        driver.step("wait", seconds, 0.0, outcome)
        driver.step("end all", 0.0, 0.0, outcome)
        driver.now = min(driver.now + 0.3, LATEST)
