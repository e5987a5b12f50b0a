"""Every policy: opening, closing, timeout and pickling of the inner function."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncFunction, NotAsyncError, unordered_wait
from trio_asyncio_io.policies import cached, single_flight
from trio_asyncio_io.testing import Recorder, Scripted, Step


async def upper(value: str) -> str:
    return value.upper()


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


async def test_the_inner_function_is_opened_and_closed_with_the_policy(policy: Any) -> None:
    client = Client()
    assert await outputs(unordered_wait(["a"], policy(policy(client)), timeout=5.0)) == ["A"]
    assert client.lines == ["open", "a", "close"]


async def test_the_timeout_method_of_the_inner_function_is_called(policy: Any, autojump_clock: MockClock) -> None:
    assert await outputs(unordered_wait(["slow"], policy(policy(Client())), timeout=2.0)) == ["late slow"]


async def test_a_policy_has_no_timeout_method_if_the_inner_function_has_none(
    policy: Any, autojump_clock: MockClock
) -> None:
    function = policy(Scripted(default=Step(math.inf)))
    assert await outputs(unordered_wait(["a"], function, timeout=2.0, on_error="skip")) == []


async def test_an_object_that_has_only_invoke_is_accepted(policy: Any) -> None:
    class Bare:
        async def invoke(self, value: str) -> str:
            return value.upper()

    assert await outputs(unordered_wait(["a"], policy(Bare()), timeout=5.0)) == ["A"]


async def test_a_policy_is_a_callable_too(policy: Any) -> None:
    assert await policy(upper)("a") == "A"


async def test_the_key_decides_which_calls_are_the_same(policy: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, result="A")))
    out = await outputs(unordered_wait(["a", "A", "b"], policy(recorder, key=str.lower), timeout=5.0, capacity=1))
    assert out == ["A"] * 3
    if policy is cached:
        assert recorder.values == ["a", "b"]


async def test_arguments_that_are_not_hashable_are_refused_and_the_error_names_key(policy: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{policy.__name__} needs a hashable key, got .*: give it key=, a"):
        await policy(upper)(["a"])


def test_a_policy_pickles_as_its_function_and_options(policy: Any) -> None:
    copy = pickle.loads(pickle.dumps(policy(upper, key=str.lower)))
    assert type(copy) is policy
    assert copy.function is upper
    assert repr(copy).startswith(f"{policy.__name__}(<function upper")


@pytest.mark.parametrize(
    "options",
    [
        {"size": 3, "ttl": 2.0, "negative_ttl": 1.0, "is_negative": str.isupper},
        {"key": str.lower, "size": 4},
    ],
)
def test_a_policy_pickles_with_all_its_options(options: dict[str, Any]) -> None:
    copy = pickle.loads(pickle.dumps(cached(upper, **options)))
    assert options.items() <= copy._options.items()


async def test_a_function_that_is_not_async_is_refused(policy: Any) -> None:
    with pytest.raises(NotAsyncError, match=r"must be async, but .* returned 'A'"):
        await policy(str.upper)("a")


async def test_a_call_by_keyword_shares_the_key_of_the_same_call_by_position(policy: Any) -> None:
    calls: list[tuple[str, int, str]] = []

    async def weather(origin: str, hour: int, unit: str = "F") -> str:
        calls.append((origin, hour, unit))
        return f"{origin} {hour} {unit}"

    lookup = cached(policy(weather))
    assert await lookup("EWR", 3, "F") == "EWR 3 F"
    assert await lookup("EWR", hour=3) == await lookup.invoke(hour=3, origin="EWR") == "EWR 3 F"
    assert calls == [("EWR", 3, "F")]


async def test_a_parameter_that_is_only_for_keywords_is_refused(policy: Any) -> None:
    async def weather(origin: str, *, unit: str = "F") -> str:
        return f"{origin} {unit}"

    assert await policy(weather)("EWR") == "EWR F"
    with pytest.raises(TypeError, match="calls its function by position, and unit can be given only by keyword"):
        await policy(weather)("EWR", unit="C")


@pytest.mark.parametrize("function", [None, 3, Client])
def test_a_function_that_is_not_callable_is_refused(policy: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="must be an async callable or an AsyncFunction"):
        policy(function)
