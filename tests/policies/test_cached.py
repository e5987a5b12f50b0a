"""The cache: what is remembered, for how long, and what never is."""

from __future__ import annotations

import gc
import math
import weakref
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io.policies import cached
from trio_asyncio_io.testing import Recorder, Scripted, Step


async def upper(value: str) -> str:
    return value.upper()


async def test_a_result_is_remembered_for_as_long_as_it_is_good(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    function = cached(recorder, ttl=10.0)
    for instant, calls in [(0.0, 1), (5.0, 1), (10.75, 1), (11.0, 2), (21.5, 2)]:
        await trio.sleep_until(instant)
        assert await function("a") == "a"
        assert len(recorder.calls) == calls
    assert (function.hits, function.misses) == (3, 2)


def calls_in_runs(ttl: float, *spans: tuple[float, float]) -> list[int]:
    """How many calls had been made at both ends of each run, of which the first and last lookup are these instants."""
    recorder = Recorder(Scripted())
    function = cached(recorder, ttl=ttl)
    return [
        made
        for span in spans
        for made in trio.run(calls_at, function, recorder, *span, clock=MockClock(autojump_threshold=0))
    ]


@pytest.mark.parametrize("second", [0.0, 20_000.0])
def test_an_answer_that_expires_does_not_outlive_its_trio_run(second: float) -> None:
    """The clock of a later run may be behind that of the first for days, or ahead of it."""
    assert calls_in_runs(10.0, (10_000.0, 10_009.0), (second, second + 9.0)) == [1, 1, 2, 2]


def test_an_answer_without_an_expiry_outlives_its_trio_run() -> None:
    assert calls_in_runs(math.inf, (0.0, 5.0), (10_000.0, 10_005.0)) == [1, 1, 1, 1]


def test_a_call_that_ends_after_another_run_has_begun_expires_in_its_own_run() -> None:
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


async def test_none_is_a_result_and_an_exception_is_none() -> None:
    recorder = Recorder(Scripted({"a": Step(result=None), "b": [Step(error=OSError("busy")), Step(result="b")]}))
    function = cached(recorder)
    assert [await function("a") for _ in range(2)] == [None, None]
    with pytest.raises(OSError, match="busy"):
        await function("b")
    assert await function("b") == "b"
    assert recorder.values == ["a", "b", "b"]


async def test_the_one_unused_for_longest_goes_first() -> None:
    recorder = Recorder(Scripted())
    function = cached(recorder, size=2)
    for value in "abacab":
        await function(value)
    assert recorder.values == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"size": 0}, ValueError, "size must be at least 1, got 0"),
        ({"size": 1.5}, TypeError, "size must be a whole number, got 1.5"),
        ({"size": True}, TypeError, "size must be a whole number, got True"),
        ({"ttl": 0.0}, ValueError, "ttl must be seconds above 0, got 0.0"),
        ({"ttl": -1.0}, ValueError, "^ttl must be seconds above 0, got -1.0"),
        ({"ttl": math.nan}, ValueError, "^ttl must be seconds above 0, got nan"),
        ({"ttl": "1 h"}, TypeError, "^ttl must be seconds as a number, got '1 h'"),
        ({"negative_ttl": -1.0}, ValueError, "negative_ttl must be seconds, not negative and not NaN, got -1.0"),
        ({"negative_ttl": math.nan}, ValueError, "negative_ttl must be seconds, not negative and not NaN, got nan"),
        ({"is_negative": None}, TypeError, "is_negative must be callable, got None"),
        ({"errors": KeyError()}, TypeError, r"errors must be an exception type or a tuple of them, got KeyError\(\)"),
        ({"errors": (KeyError, trio.Cancelled)}, TypeError, "errors must be an exception type or a tuple of them"),
    ],
)
def test_wrong_limits_are_refused(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        cached(upper, **keywords)


async def calls_at(function: Any, recorder: Any, *instants: float) -> list[int]:
    """How many calls had been made after asking at each of these instants."""
    made = []
    for instant in instants:
        await trio.sleep_until(instant)
        try:
            await function("a")
        except LookupError:
            pass
        made.append(len(recorder.calls))
    return made


async def test_a_negative_result_has_a_lifetime_of_its_own(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(result=None), Step(result="found")]}))
    function = cached(recorder, ttl=10.0, negative_ttl=2.0)
    assert await calls_at(function, recorder, 0.0, 1.5, 2.0, 11.5, 12.0) == [1, 1, 2, 2, 3]


async def test_one_may_say_what_is_negative(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(result=404)))
    function = cached(recorder, negative_ttl=2.0, is_negative=lambda result: result == 404)
    assert await calls_at(function, recorder, 0.0, 1.5, 2.0) == [1, 1, 2]


async def test_a_negative_lifetime_of_zero_keeps_no_negative_result(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(result=None)))
    assert await calls_at(cached(recorder, negative_ttl=0.0), recorder, 0.0, 0.0) == [1, 2]


async def test_what_is_not_kept_takes_no_place_of_what_is() -> None:
    recorder = Recorder(Scripted({"nothing": Step(result=None)}))
    function = cached(recorder, size=1, negative_ttl=0.0)
    for value in ("something", "nothing", "something"):
        await function(value)
    assert recorder.values == ["something", "nothing"]


@pytest.mark.parametrize(("lifetimes", "calls"), [({"ttl": 3.0}, [1, 1, 1, 2]), ({"negative_ttl": 1.0}, [1, 1, 2, 3])])
async def test_an_error_that_is_an_answer_is_remembered_as_a_negative_one(
    lifetimes: dict[str, float], calls: list[int], autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted(default=Step(error=KeyError("no such code"))))
    function = cached(recorder, errors=LookupError, **lifetimes)
    assert await calls_at(function, recorder, 0.0, 0.5, 1.5, 3.0) == calls


async def test_other_errors_are_not_remembered() -> None:
    recorder = Recorder(Scripted(default=Step(error=OSError("busy"))))
    function = cached(recorder, errors=LookupError)
    for calls in (1, 2):
        with pytest.raises(OSError, match="busy"):
            await function("a")
        assert len(recorder.calls) == calls


async def test_each_raises_a_fresh_copy_of_a_remembered_error() -> None:
    function = cached(Scripted(default=Step(error=KeyError("no such code"))), errors=(KeyError,))
    raised = []
    for number in range(3):
        with pytest.raises(KeyError, match="no such code") as caught:
            await function("a")
        caught.value.add_note(f"element {number}")
        raised.append(caught.value)
    assert [error.__notes__ for error in raised] == [["element 0"], ["element 1"], ["element 2"]]


async def test_a_remembered_error_keeps_nothing_of_its_call_alive() -> None:
    class Page:
        pass

    pages = []

    async def fetch(code: str) -> str:
        page = Page()
        pages.append(weakref.ref(page))
        try:
            int(code)
        except ValueError as error:
            raise KeyError(code) from error

    function = cached(fetch, errors=KeyError)
    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            await function("a")
        del caught
    gc.collect()
    assert [page() for page in pages] == [None]
