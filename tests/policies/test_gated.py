"""gated: gates around a function."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from itertools import accumulate, combinations
from typing import Any

import pytest
import trio
from hypothesis import assume, given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.plain_gates import AtMost, Listener, Refusing
from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.gates import Budget, CircuitBreaker, Gate, Outcome, PerKey, RateLimit, settle
from trio_asyncio_io.integration import usage_of_all as usage
from trio_asyncio_io.policies import cached, gated, hedged, single_flight
from trio_asyncio_io.rehearsal import record
from trio_asyncio_io.testing import Recorder, Scripted, Step

ROUNDING = 1e-6  # seconds


def limited(function: Any, rate: float, *, burst: float = 1.0) -> gated[Any]:
    return gated(function, RateLimit(rate, burst=burst))


async def starts_of(function: Any, recorder: Recorder[Any, Any], arrivals: dict[Any, float]) -> list[tuple[Any, float]]:
    """The calls and their starts, for the given arrivals."""

    async def call(value: Any, instant: float) -> None:
        await trio.sleep_until(instant)
        await function(value)

    origin = trio.current_time()
    async with trio.open_nursery() as nursery:
        for value, instant in arrivals.items():
            nursery.start_soon(call, value, origin + instant)
    return [(call.value, call.started - origin) for call in recorder.calls]


async def test_each_attempt_counts_as_a_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(error=OSError("busy"))))
    retry = FixedDelay(3, 0.0)
    async with ordered_wait(["a"], limited(recorder, 1.0), timeout=10.0, retry=retry, on_error="skip") as results:
        assert [result async for result in results] == []
    assert [call.started for call in recorder.calls] == [0.0, 1.0, 2.0, 3.0]


async def test_waiting_for_a_start_counts_towards_the_timeout(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    async with ordered_wait("abc", limited(recorder, 1.0), timeout=1.5, on_error="skip") as results:
        assert [result async for result in results] == ["a", "b"]
    assert recorder.values == ["a", "b"]


@pytest.mark.parametrize("later", [0.0, 10_000.0])
def test_the_limit_holds_from_the_end_of_one_run_to_the_start_of_the_next(later: float) -> None:
    """The clock of the second run may be ahead of the first one or behind it."""
    recorder = Recorder(Scripted())
    function = limited(recorder, 1.0, burst=3)

    async def main(instant: float) -> list[float]:
        await trio.sleep_until(instant)
        return [start for _, start in await starts_of(function, recorder, dict.fromkeys(range(4), 0.0))]

    assert trio.run(main, 5.0, clock=MockClock(autojump_threshold=0)) == [0.0, 0.0, 0.0, 1.0]
    recorder.calls.clear()
    assert trio.run(main, later, clock=MockClock(autojump_threshold=0)) == [1.0, 2.0, 3.0, 4.0]


def test_it_pickles_with_its_options() -> None:
    async def main() -> list[float]:
        recorder = copy.function
        return [instant for _, instant in await starts_of(copy, recorder, dict.fromkeys(range(4), 0.0))]

    copy = pickle.loads(pickle.dumps(limited(Recorder(Scripted()), 2.0, burst=2)))
    assert repr(copy).startswith("gated(")
    assert trio.run(main, clock=MockClock(autojump_threshold=0)) == [0.0, 0.0, 0.5, 1.0]


@dataclass(frozen=True)
class Caller:
    arrival: float
    patience: float


def model(callers: list[Caller], rate: float, burst: int) -> list[tuple[int, float]]:
    """The numbers of the callers that start, and their starts: a token bucket."""
    starts: list[tuple[int, float]] = []
    full = -math.inf  # when the bucket is full again
    for number, caller in enumerate(callers):
        start = max(caller.arrival, full - (burst - 1) / rate)
        assume(abs(start - caller.arrival - caller.patience) > ROUNDING)
        if start < caller.arrival + caller.patience:
            starts.append((number, start))
            full = max(full, start) + 1 / rate
    return starts


@given(
    gaps=st.lists(st.just(0.0) | st.floats(0.0, 3.0), min_size=1, max_size=30),
    patience=st.lists(st.just(math.inf) | st.floats(0.01, 5.0), min_size=30, max_size=30),
    rate=st.floats(0.1, 50.0),
    burst=st.integers(1, 5),
)
def test_starts_are_those_of_a_token_bucket(gaps: list[float], patience: list[float], rate: float, burst: int) -> None:
    """For any arrivals and cancellations. So no span has more than burst + rate * seconds starts."""
    callers = list(map(Caller, accumulate(gaps), patience))
    expected = model(callers, rate, burst)
    recorder = Recorder(Scripted())
    function = limited(recorder, rate, burst=burst)

    async def call(number: int, caller: Caller) -> None:
        with trio.move_on_after(caller.patience):
            await function(number)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number, caller in enumerate(callers):
                await trio.sleep_until(caller.arrival)
                nursery.start_soon(call, number, caller)
                await wait_all_tasks_blocked()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    starts = [call.started for call in recorder.calls]
    assert recorder.values == [number for number, _ in expected]
    assert starts == pytest.approx([instant for _, instant in expected], abs=ROUNDING)
    for (first, begin), (last, end) in combinations(enumerate(starts), 2):
        assert last - first + 1 <= burst + rate * (end - begin) + ROUNDING * rate


async def drained(source: Any, function: Any, **options: Any) -> None:
    """Run an operator that skips failed elements to its end."""
    async with ordered_wait(source, function, on_error="skip", **options) as results:
        async for _ in results:
            pass


class Broken(Listener):
    """Raises in one method."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    def _maybe(self, method: str) -> None:
        if method == self.method:
            raise ZeroDivisionError(method)

    def delay(self, now: float, weight: float) -> float:
        self._maybe("delay")
        return math.nan if self.method == "nan" else 0.0

    def started(self, now: float, weight: float) -> None:
        self._maybe("started")

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        self._maybe("ended")


async def test_a_cached_result_does_not_wait(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    function = cached(single_flight(limited(recorder, 1.0)))
    async with ordered_wait("abababab", function, capacity=1, timeout=9.0) as results:
        assert len([result async for result in results]) == 8
    assert [(call.value, call.started) for call in recorder.calls] == [("a", 0.0), ("b", 1.0)]
    assert trio.current_time() == 1.0


async def test_the_waits_are_added_up(autojump_clock: MockClock) -> None:
    function = limited(Scripted(), 1.0)
    async with ordered_wait("abc", function, timeout=9.0) as results:
        assert len([result async for result in results]) == 3
    assert function.wait_seconds == 3.0


async def test_a_key_that_waits_does_not_hold_back_the_others(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    function = gated(recorder, PerKey(RateLimit(1.0), key=lambda value: value[0]))
    arrivals = {"a1": 0.0, "a2": 0.25, "a3": 0.5, "b1": 0.75, "b2": 1.0}
    starts = await starts_of(function, recorder, arrivals)
    assert starts == [("a1", 0.0), ("b1", 0.75), ("a2", 1.0), ("b2", 1.75), ("a3", 2.0)]


async def test_a_gate_has_one_limit_for_an_operator_and_a_policy(autojump_clock: MockClock) -> None:
    gate = RateLimit(1.0)
    recorder = Recorder(Scripted())
    async with ordered_wait("ab", gated(recorder, gate), timeout=9.0, gate=gate) as results:
        assert len([result async for result in results]) == 2
    assert sorted(call.started for call in recorder.calls) == [1.0, 3.0]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Step(1.0), "ok"),
        (Step(1.0, error=TimeoutError()), "overload"),
        (Step(1.0, error=ValueError()), "error"),
        (Step(99.0), "cancelled"),
    ],
    ids=["a result", "an overload", "another error", "a deadline"],
)
async def test_the_end_of_a_call_is_reported(step: Step, kind: str, autojump_clock: MockClock) -> None:
    gate = Listener()
    async with ordered_wait("a", gated(Scripted(default=step), gate), timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == (["a"] if kind == "ok" else [])
    seconds = 5.0 if kind == "cancelled" else 1.0
    assert gate.ends == [(kind, seconds, seconds, 1.0)]


async def test_classify_decides_about_an_error(autojump_clock: MockClock) -> None:
    gate = CircuitBreaker(calls=1, open_for=4.0, classify=lambda error: "overload")
    recorder = Recorder(Scripted({"a": Step(error=ValueError())}))
    async with ordered_wait("ab", gated(recorder, gate), capacity=1, timeout=99.0, on_error="skip") as results:
        assert [result async for result in results] == ["b"]
    assert recorder.calls[1].started >= 3.2


async def test_settle_corrects_the_weight_in_the_gates_of_the_policy_and_of_the_operator() -> None:
    async def call(value: int) -> int:
        settle(value + 0.5)
        return value

    inner, outer = Listener(weight=lambda value: value * 10.0), Listener(weight=lambda value: value * 2.0)
    async with ordered_wait([3], gated(call, inner), timeout=9.0, gate=outer) as results:
        assert [result async for result in results] == [3]
    assert inner.settled == [(30.0, 3.5)]
    assert outer.settled == [(6.0, 3.5)]
    assert [weight for *_, weight in inner.ends + outer.ends] == [3.5, 3.5]


async def test_usage_finds_the_gates_of_the_policy_and_then_those_of_the_operator() -> None:
    async def call(value: str) -> tuple[tuple[float, float] | None, ...]:
        settle(2.0, "inner")
        return usage("inner"), usage("outer"), usage(), usage("none")

    inner, outer = RateLimit(1e3, weight=lambda value: 7.0, name="inner"), RateLimit(1e3, weight=len, name="outer")
    async with ordered_wait(["abc"], gated(call, inner), timeout=9.0, gate=outer) as results:
        found = [result async for result in results]
    assert found == [((7.0, 2.0), (3.0, 3.0), (7.0, 2.0), None)]


async def test_a_budget_holds_for_the_calls_that_a_cache_makes() -> None:
    recorder = Recorder(Scripted())
    function = cached(gated(recorder, Budget(2.0)))
    retry = FixedDelay(3, 0.0)
    async with ordered_wait("aabbcca", function, capacity=1, timeout=9.0, retry=retry, on_error="skip") as results:
        assert [result async for result in results] == ["a", "a", "b", "b", "a"]
    assert recorder.values == ["a", "b"]
    assert results.statistics().retried == 0


async def test_settle_corrects_the_weight_of_a_second_call_and_not_of_the_first(autojump_clock: MockClock) -> None:
    gate = Listener(weight=lambda value: 10.0)
    calls: list[int] = []

    async def call(value: str) -> str:
        calls.append(len(calls))
        await trio.sleep(2.0 / len(calls))
        settle(float(len(calls)))
        return value

    async with ordered_wait("a", gated(hedged(call, after=0.5, budget=1.0), gate), timeout=9.0, gate=gate) as results:
        assert [result async for result in results] == ["a"]
    assert calls == [0, 1]
    assert gate.settled == [(10.0, 2.0)]


async def test_a_weight_gets_all_arguments(autojump_clock: MockClock) -> None:
    async def call(host: str, size: int) -> float:
        return trio.current_time()

    function = gated(call, PerKey(RateLimit(1.0, weight=lambda host, size: size), key=lambda host, size: host))
    assert [await function("a", 3), await function("b", 3), await function("a", 1)] == [0.0, 0.0, 3.0]


async def test_a_refused_call_is_never_retried(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    function = gated(recorder, Refusing())
    async with ordered_wait("ab", function, timeout=9.0, retry=FixedDelay(3, 1.0), on_error="skip") as results:
        assert [result async for result in results] == []
    statistics = results.statistics()
    assert (statistics.failed, statistics.retried, recorder.calls) == (2, 0, [])


@pytest.mark.parametrize("wrap", [lambda f: f, single_flight], ids=["alone", "in a shared call"])
@pytest.mark.parametrize("method", ["delay", "started", "ended"])
async def test_a_broken_gate_stops_the_operator(method: str, wrap: Any) -> None:
    function = wrap(gated(Scripted(), Broken(method)))
    with pytest.raises(ZeroDivisionError, match=method):
        await drained("abc", function, timeout=9.0)


@pytest.mark.parametrize("method", ["delay", "started", "ended"])
async def test_without_an_operator_a_call_raises_the_exception_of_a_broken_gate(method: str) -> None:
    with pytest.raises(ZeroDivisionError, match=method):
        await gated(Scripted(), Broken(method))("a")


@pytest.mark.parametrize("gate", [Listener(weight=lambda value: 1 / 0), PerKey(Listener(), key=lambda value: 1 / 0)])
async def test_a_weight_or_a_key_that_raises_stops_the_operator(gate: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        await drained("abc", gated(Scripted(), gate), timeout=9.0)


async def test_a_delay_that_is_not_a_number_stops_the_operator() -> None:
    with pytest.raises(ValueError, match=r"^delay of .* must be seconds, not NaN \(0\.0 admits the call\), got nan"):
        await drained("abc", gated(Scripted(), Broken("nan")), timeout=9.0)


@given(
    callers=st.lists(
        st.tuples(st.sampled_from("ab"), st.floats(0.0, 3.0), st.floats(0.1, 3.0), st.just(math.inf) | st.floats(0, 4)),
        max_size=12,
    )
)
def test_limits_per_key_and_for_all_calls_hold_and_every_patient_call_starts(
    callers: list[tuple[str, float, float, float]],
) -> None:
    """For any arrivals, durations and cancellations."""
    running: list[str] = []
    results: list[int] = []

    async def work(key: str, number: int, seconds: float) -> None:
        running.append(key)
        try:
            assert len(running) <= 3
            assert running.count(key) <= 2
            await trio.sleep(seconds)
            results.append(number)
        finally:
            running.remove(key)

    gates = [AtMost(3), PerKey(AtMost(2), key=lambda key, number, seconds: key)]
    function = gated(work, gates)

    async def call(number: int, key: str, arrival: float, seconds: float, patience: float) -> None:
        await trio.sleep(arrival)
        with trio.move_on_after(patience):
            await function(key, number, seconds)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number, caller in enumerate(callers):
                nursery.start_soon(call, number, *caller)

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert running == []
    assert {number for number, caller in enumerate(callers) if caller[3] == math.inf} <= set(results)


async def test_a_recorded_function_with_gates_of_its_own_settles_in_them(autojump_clock: MockClock) -> None:
    async def call(value: int) -> int:
        await trio.sleep(0.1)
        settle(2.0)
        return value

    budget = Budget(1000.0, weight=lambda value: 3.0)
    sample = await record(range(900), gated(call, budget), 40, loads=(2, 4), timeout=5.0, weight=lambda value: 3.0)
    assert [call.weight for call in sample.calls] == [2.0] * 40
    assert (budget.spent, budget.reserved) == (80.0, 0.0)


class Kept(Gate):
    """Is never forgotten. Counts how often it was asked whether it may be."""

    asked = 0

    def delay(self, now: float, weight: float) -> float:
        return 0.0

    def may_forget(self, now: float) -> bool:
        Kept.asked += 1
        return False


async def test_the_search_for_keys_to_forget_takes_a_few_steps_per_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if each call opens the gates, because no other one runs."""
    monkeypatch.setattr(Kept, "asked", 0)
    function = gated(Scripted(), PerKey(Kept(), key=lambda value: value))
    for number in range(1_000):
        await function(number)
    assert Kept.asked <= 5 * 1_000


async def test_a_gate_of_the_same_name_and_another_configuration_is_refused() -> None:
    function = gated(Scripted(), RateLimit(2.0, name="api"))
    with pytest.raises(ValueError, match="two different gates have the name 'api'"):
        await drained("a", function, timeout=9.0, gate=RateLimit(1.0, name="api"))
