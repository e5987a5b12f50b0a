"""cached: which results are cached, and for how long."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io.policies import cached
from trio_asyncio_io.testing import Recorder, Scripted, Step


async def upper(value: str) -> str:
    return value.upper()


async def test_a_result_is_cached_for_its_ttl(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    function = cached(recorder, ttl=10.0)
    for instant, calls in [(0.0, 1), (5.0, 1), (10.75, 1), (11.0, 2), (21.5, 2)]:
        await trio.sleep_until(instant)
        assert await function("a") == "a"
        assert len(recorder.calls) == calls
    assert (function.hits, function.misses) == (3, 2)


def calls_in_runs(ttl: float, *spans: tuple[float, float]) -> list[int]:
    """The number of calls made so far, after lookups at both ends of each Trio run."""
    recorder = Recorder(Scripted())
    function = cached(recorder, ttl=ttl)
    return [
        count
        for span in spans
        for count in trio.run(calls_at, function, recorder, *span, clock=MockClock(autojump_threshold=0))
    ]


@pytest.mark.parametrize("second", [0.0, 20_000.0])
def test_a_result_that_expires_does_not_outlive_its_trio_run(second: float) -> None:
    """The clock of a later run may be far behind or far ahead of the first one."""
    assert calls_in_runs(10.0, (10_000.0, 10_009.0), (second, second + 9.0)) == [1, 1, 2, 2]


def test_a_result_without_an_expiry_outlives_its_trio_run() -> None:
    assert calls_in_runs(math.inf, (0.0, 5.0), (10_000.0, 10_005.0)) == [1, 1, 1, 1]


def test_a_call_that_spans_another_run_expires_on_the_clock_of_its_own() -> None:
    """The other run is in another thread, and its clock is behind."""

    async def fetch(value: str) -> str:
        if value == "outer":
            await trio.to_thread.run_sync(partial(trio.run, function, "inner", clock=MockClock()))
        return value

    async def main(instant: float) -> None:
        await trio.sleep_until(instant)
        await function("outer")

    function = cached(fetch, ttl=10.0)
    for instant, misses in ((10_000.0, 2), (0.0, 4)):
        trio.run(main, instant, clock=MockClock(autojump_threshold=0))
        assert (function.hits, function.misses) == (0, misses)


async def test_none_is_cached_and_an_exception_is_not() -> None:
    recorder = Recorder(Scripted({"a": Step(result=None), "b": [Step(error=OSError("busy")), Step(result="b")]}))
    function = cached(recorder)
    assert [await function("a") for _ in range(2)] == [None, None]
    with pytest.raises(OSError, match="busy"):
        await function("b")
    assert await function("b") == "b"
    assert recorder.values == ["a", "b", "b"]


async def test_the_least_recently_used_result_is_evicted() -> None:
    recorder = Recorder(Scripted())
    function = cached(recorder, size=2)
    for value in "abacab":
        await function(value)
    assert recorder.values == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"size": 0}, ValueError, "size must be at least 1, got 0"),
        ({"ttl": 0.0}, ValueError, "ttl must be seconds above 0, got 0.0"),
        ({"negative_ttl": -1.0}, ValueError, "negative_ttl must be seconds, not negative and not NaN, got -1.0"),
        ({"is_negative": None}, TypeError, "is_negative must be callable, got None"),
    ],
)
def test_an_illegal_option_is_refused(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cached(upper, **keywords)


async def calls_at(function: Any, recorder: Any, *instants: float) -> list[int]:
    """The number of calls made so far, after a lookup at each instant."""
    counts = []
    for instant in instants:
        await trio.sleep_until(instant)
        try:
            await function("a")
        except LookupError:
            pass
        counts.append(len(recorder.calls))
    return counts


async def test_a_negative_result_expires_after_its_own_ttl(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(result=None), Step(result="found")]}))
    function = cached(recorder, ttl=10.0, negative_ttl=2.0)
    assert await calls_at(function, recorder, 0.0, 1.5, 2.0, 11.5, 12.0) == [1, 1, 2, 2, 3]


async def test_is_negative_decides_which_results_are_negative(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(result=404)))
    function = cached(recorder, negative_ttl=2.0, is_negative=lambda result: result == 404)
    assert await calls_at(function, recorder, 0.0, 1.5, 2.0) == [1, 1, 2]


async def test_with_a_negative_ttl_of_zero_negative_results_are_not_cached(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(result=None)))
    assert await calls_at(cached(recorder, negative_ttl=0.0), recorder, 0.0, 0.0) == [1, 2]


async def test_a_result_that_is_not_cached_evicts_nothing() -> None:
    recorder = Recorder(Scripted({"nothing": Step(result=None)}))
    function = cached(recorder, size=1, negative_ttl=0.0)
    for value in ("something", "nothing", "something"):
        await function(value)
    assert recorder.values == ["something", "nothing"]
