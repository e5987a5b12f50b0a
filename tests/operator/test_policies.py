"""Policies: what is shared, what is remembered, and that the wrapped function lives as without them."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import AsyncFunction, FixedDelay, unordered_wait
from trio_asyncio_io.policies import cached, single_flight
from trio_asyncio_io.testing import Recorder, Scripted, Step


async def outputs(operator: Any) -> list[Any]:
    async with operator as results:
        return [result async for result in results]


async def upper(value: str) -> str:
    return value.upper()


# Both.


@pytest.fixture(params=[cached, single_flight])
def policy(request: pytest.FixtureRequest) -> Any:
    return request.param


class Client(AsyncFunction[str, str]):
    def __init__(self) -> None:
        self.lines: list[str] = []

    async def open(self) -> None:
        self.lines.append("open")

    async def invoke(self, value: str) -> str:
        self.lines.append(value)
        if value == "slow":
            await trio.sleep_forever()
        return value.upper()

    async def timeout(self, value: str) -> str:
        return f"late {value}"

    async def close(self) -> None:
        self.lines.append("close")


async def test_the_wrapped_function_is_opened_and_closed_with_the_policy(policy: Any) -> None:
    client = Client()
    assert await outputs(unordered_wait(["a"], policy(policy(client)), timeout=5.0)) == ["A"]
    assert client.lines == ["open", "a", "close"]


async def test_the_wrapped_functions_timeout_is_still_asked(policy: Any, autojump_clock: MockClock) -> None:
    assert await outputs(unordered_wait(["slow"], policy(policy(Client())), timeout=2.0)) == ["late slow"]


async def test_a_policy_around_a_function_without_a_timeout_has_none(policy: Any, autojump_clock: MockClock) -> None:
    function = policy(Scripted(default=Step(math.inf)))
    assert await outputs(unordered_wait(["a"], function, timeout=2.0, on_error="skip")) == []


async def test_an_object_with_nothing_but_invoke_will_do(policy: Any) -> None:
    class Bare:
        async def invoke(self, value: str) -> str:
            return value.upper()

    assert await outputs(unordered_wait(["a"], policy(Bare()), timeout=5.0)) == ["A"]


async def test_a_policy_is_a_callable_too(policy: Any) -> None:
    assert await policy(upper)("a") == "A"


async def test_the_key_says_which_calls_are_the_same(policy: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, result="A")))
    out = await outputs(unordered_wait(["a", "A", "b"], policy(recorder, key=str.lower), timeout=5.0, capacity=1))
    assert out == ["A"] * 3
    if policy is cached:
        assert recorder.values == ["a", "b"]


async def test_arguments_that_cannot_be_hashed_are_refused_with_a_hint(policy: Any) -> None:
    with pytest.raises(TypeError, match=rf"{policy.__name__} needs a hashable key.*give {policy.__name__} key="):
        await policy(upper)(["a"])


def test_a_policy_pickles_as_what_it_was_made_of(policy: Any) -> None:
    copy = pickle.loads(pickle.dumps(policy(upper, key=str.lower)))
    assert type(copy) is policy
    assert copy.function is upper
    assert repr(copy).startswith(f"{policy.__name__}(<function upper")


@pytest.mark.parametrize("function", [None, 3, Client])
def test_what_cannot_be_called_is_refused(policy: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="must be an async callable or an AsyncFunction"):
        policy(function)


# cached.


async def test_a_result_is_remembered_for_as_long_as_it_is_good(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    function = cached(recorder, ttl=10.0)
    for instant, calls in [(0.0, 1), (5.0, 1), (10.75, 1), (11.0, 2), (21.5, 2)]:
        await trio.sleep_until(instant)
        assert await function("a") == "a"
        assert len(recorder.calls) == calls
    assert (function.hits, function.misses) == (3, 2)


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
    ("keywords", "message"),
    [
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"ttl": 0.0}, "ttl must be seconds above 0, got 0.0"),
        ({"ttl": -1.0}, "ttl must be seconds above 0"),
        ({"ttl": math.nan}, "ttl must be seconds above 0"),
    ],
)
def test_wrong_limits_are_refused(keywords: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cached(upper, **keywords)


# single_flight.


async def test_concurrent_calls_with_one_key_are_one_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(2.0)))
    function = single_flight(recorder)
    out = await outputs(unordered_wait("aaabba", function, timeout=5.0, capacity=6))
    assert sorted(out) == list("aaaabb")
    assert trio.current_time() == 2.0
    assert recorder.values == ["a", "b"]
    assert (function.calls, function.shared) == (2, 4)


async def test_nothing_is_kept_after_the_flight(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(2.0)))
    await outputs(unordered_wait("aa", single_flight(recorder), timeout=5.0, capacity=1))
    assert recorder.values == ["a", "a"]


async def test_an_exception_is_shared(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(2.0, error=OSError("busy"))))
    async with unordered_wait("aaa", single_flight(recorder), timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == []
    assert len(recorder.calls) == 1
    assert results.statistics().failed == 3


async def test_a_shared_exception_can_be_retried(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(1.0, error=OSError), Step(1.0)]}))
    function = single_flight(recorder)
    assert await outputs(unordered_wait("aaa", function, timeout=5.0, retry=FixedDelay(1, 1.0))) == ["a"] * 3
    assert len(recorder.calls) == 2


async def test_when_the_caller_that_flies_is_cancelled_the_next_one_makes_the_call_anew(
    autojump_clock: MockClock,
) -> None:
    recorder = Recorder(Scripted(default=Step(5.0)))
    function = single_flight(recorder)
    landed = []

    async def call(deadline: float) -> None:
        with trio.move_on_after(deadline):
            landed.append((await function("a"), trio.current_time()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, 3.0)
        await wait_all_tasks_blocked()
        nursery.start_soon(call, math.inf)
        nursery.start_soon(call, math.inf)
    assert landed == [("a", 8.0), ("a", 8.0)]
    assert [(each.started, each.cancelled) for each in recorder.calls] == [(0.0, True), (3.0, False)]


async def test_a_waiting_caller_just_leaves(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(5.0)))
    function = single_flight(recorder)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function, "a")
        await wait_all_tasks_blocked()
        with trio.move_on_after(1.0) as scope:
            await function("a")
    assert scope.cancelled_caught
    assert (len(recorder.calls), recorder.cancelled) == (1, 0)


async def test_the_order_of_composition_is_the_meaning(autojump_clock: MockClock) -> None:
    """A cache around a shared flight makes one call for each key, however many ask and whenever."""
    recorder = Recorder(Scripted(default=Step(1.0)))
    await outputs(unordered_wait("abab" * 10, cached(single_flight(recorder)), timeout=5.0, capacity=7))
    assert sorted(recorder.values) == ["a", "b"]
