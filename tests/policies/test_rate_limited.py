"""rate_limited: how often calls start, and in which order."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, combinations
from typing import Any

import pytest
import trio
from hypothesis import assume, given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.policies import rate_limited
from trio_asyncio_io.testing import Recorder, Scripted, Step

ROUNDING = 1e-6  # seconds


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


async def test_calls_start_evenly_spaced(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    starts = await starts_of(rate_limited(recorder, 4.0), recorder, dict.fromkeys(range(5), 0.0))
    assert [instant for _, instant in starts] == [0.0, 0.25, 0.5, 0.75, 1.0]


async def test_no_second_has_more_calls_than_the_rate_although_sums_are_rounded(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    starts = await starts_of(rate_limited(recorder, 10.0), recorder, dict.fromkeys(range(50), 0.0))
    assert max(Counter(int(instant) for _, instant in starts).values()) == 10


async def test_an_idle_time_saves_up_to_burst_calls(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    arrivals = dict.fromkeys(range(5), 0.0) | dict.fromkeys(range(10, 14), 100.0)
    starts = await starts_of(rate_limited(recorder, 2.0, burst=3), recorder, arrivals)
    assert [instant for _, instant in starts] == [0.0, 0.0, 0.0, 0.5, 1.0, 100.0, 100.0, 100.0, 100.5]


async def test_calls_start_in_the_order_of_their_arrival(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    arrivals = {"c": 0.3, "a": 0.1, "d": 0.4, "b": 0.2, "now": 0.0}
    assert await starts_of(rate_limited(recorder, 1.0), recorder, arrivals) == [
        ("now", 0.0),
        ("a", 1.0),
        ("b", 2.0),
        ("c", 3.0),
        ("d", 4.0),
    ]


async def test_the_next_call_takes_the_start_of_one_that_is_cancelled(autojump_clock: MockClock) -> None:
    """Both for the first waiting call and for one behind it."""
    recorder = Recorder(Scripted())
    function = rate_limited(recorder, 1.0)

    async def call(value: str, patience: float) -> None:
        with trio.move_on_after(patience):
            await function(value)

    await function("now")
    async with trio.open_nursery() as nursery:
        for value, patience in [("first", 0.5), ("second", 0.7), ("third", math.inf), ("fourth", math.inf)]:
            nursery.start_soon(call, value, patience)
            await wait_all_tasks_blocked()
    assert [(call.value, call.started) for call in recorder.calls] == [("now", 0.0), ("third", 1.0), ("fourth", 2.0)]


async def test_a_slow_call_does_not_delay_the_next_start(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(60.0)))
    starts = await starts_of(rate_limited(recorder, 10.0), recorder, dict.fromkeys(range(3), 0.0))
    assert [instant for _, instant in starts] == pytest.approx([0.0, 0.1, 0.2])


async def test_each_attempt_counts_as_a_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(error=OSError("busy"))))
    retry = FixedDelay(3, 0.0)
    async with ordered_wait(["a"], rate_limited(recorder, 1.0), timeout=10.0, retry=retry, on_error="skip") as results:
        assert [result async for result in results] == []
    assert [call.started for call in recorder.calls] == [0.0, 1.0, 2.0, 3.0]


async def test_waiting_for_a_start_counts_towards_the_timeout(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted())
    async with ordered_wait("abc", rate_limited(recorder, 1.0), timeout=1.5, on_error="skip") as results:
        assert [result async for result in results] == ["a", "b"]
    assert recorder.values == ["a", "b"]


def test_another_run_does_not_wait_for_the_clock_of_the_first() -> None:
    """Each Trio run has a clock of its own, with an arbitrary start."""
    recorder = Recorder(Scripted())
    function = rate_limited(recorder, 1.0)

    async def main(instant: float) -> float:
        await trio.sleep_until(instant)
        await function("a")
        return trio.current_time()

    assert trio.run(main, 10_000.0, clock=MockClock(autojump_threshold=0)) == 10_000.0
    assert trio.run(main, 0.0, clock=MockClock(autojump_threshold=0)) <= 1.0


@pytest.mark.parametrize("later", [0.0, 10_000.0])
def test_the_limit_holds_from_the_end_of_one_run_to_the_start_of_the_next(later: float) -> None:
    """The clock of the second run may be ahead of the first one or behind it."""
    recorder = Recorder(Scripted())
    function = rate_limited(recorder, 1.0, burst=3)

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

    copy = pickle.loads(pickle.dumps(rate_limited(Recorder(Scripted()), 2.0, burst=2)))
    assert repr(copy).startswith("rate_limited(")
    assert trio.run(main, clock=MockClock(autojump_threshold=0)) == [0.0, 0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("rate", "burst", "error", "message"),
    [
        (0.0, 1, ValueError, "rate must be calls per second, above 0 and finite, got 0.0"),
        (-1, 1, ValueError, "rate must be .* got -1"),
        (math.inf, 1, ValueError, "rate must be .* got inf"),
        (math.nan, 1, ValueError, "rate must be .* got nan"),
        ("5", 1, TypeError, "rate must be calls per second as a number, got '5'"),
        (True, 1, TypeError, "rate must be .* got True"),
        (1.0, 0, ValueError, "burst must be at least 1, got 0"),
        (1.0, 1.5, TypeError, "burst must be a whole number, got 1.5"),
        (1.0, True, TypeError, "burst must be a whole number, got True"),
    ],
)
def test_an_illegal_limit_is_refused(rate: Any, burst: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        rate_limited(Scripted(), rate, burst=burst)


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
    function = rate_limited(recorder, rate, burst=burst)

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
