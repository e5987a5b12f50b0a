"""Several operators use one policy: the first opens its function, and the last closes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import AsyncFunction, ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, persistent, single_flight

POLICIES: dict[str, Callable[[Any], Any]] = {
    "cached": cached,
    "single_flight": single_flight,
    "hedged": hedged,
    "gated": lambda function: gated(function, RateLimit(1000.0, burst=100)),
    "three policies": lambda function: single_flight(cached(gated(function, RateLimit(1000.0, burst=100)))),
}


class Client(AsyncFunction[Any, Any]):
    """Records when it is opened and closed, which takes `seconds` each. Raises while it is closed."""

    def __init__(self, seconds: float = 0.0, failures: int = 0) -> None:
        self.lines: list[Any] = []
        self.seconds = seconds
        self.failures = failures
        self.is_open = False

    async def open(self) -> None:
        self.lines.append("opening")
        await trio.sleep(self.seconds)
        if self.failures:
            self.failures -= 1
            raise OSError("no service")
        self.is_open = True
        self.lines.append("open")

    async def invoke(self, value: Any) -> Any:
        await trio.sleep(value[0] if isinstance(value, list) else value)
        if not self.is_open:
            raise RuntimeError("the client was closed")
        return value

    async def close(self) -> None:
        self.is_open = False
        self.lines.append("closing")
        await trio.sleep(self.seconds)
        self.lines.append("closed")


ONCE = ["opening", "open", "closing", "closed"]


async def operate(function: Any, *values: float) -> None:
    async with ordered_wait(values, function, capacity=1, timeout=math.inf) as results:
        assert [result async for result in results] == list(values)


@pytest.mark.parametrize("wrap", POLICIES.values(), ids=list(POLICIES))
async def test_operators_that_share_a_policy_open_and_close_its_function_once(
    wrap: Any, autojump_clock: MockClock
) -> None:
    client = Client(seconds=1.0)
    function = wrap(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(operate, function, 1.0)
        nursery.start_soon(operate, function, 3.0, 4.0, 5.0)
        nursery.start_soon(operate, function, 2.0)
    assert client.lines == ONCE
    assert trio.current_time() == 14.0


async def test_operators_share_a_persistent_cache(tmp_path: Path) -> None:
    client = Client()
    function = persistent(client, tmp_path / "cache.sqlite", name="n")
    async with ordered_wait([0.001], function, timeout=math.inf) as results:
        await operate(function, 0.002)
        assert function._store._database._connection is not None
        assert [result async for result in results] == [0.001]
    assert function._store._database._connection is None
    assert client.lines == ONCE


async def test_a_second_user_waits_while_the_first_one_opens(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function.open)
        await wait_all_tasks_blocked()
        await function.open()
        assert trio.current_time() == 2.0
    assert client.lines == ["opening", "open"]


async def test_a_user_that_arrives_while_it_is_being_closed_opens_it_again(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)
    await function.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function.close)
        await wait_all_tasks_blocked()
        await function.open()
    assert client.lines == [*ONCE, "opening", "open"]
    assert trio.current_time() == 6.0


async def test_the_next_user_tries_again_if_opening_fails(autojump_clock: MockClock) -> None:
    client = Client(seconds=1.0, failures=1)
    function = cached(client)
    outcomes = []

    async def try_to_open() -> None:
        try:
            await function.open()
        except OSError as error:
            outcomes.append(str(error))
        else:
            outcomes.append("open")

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(try_to_open)
    assert outcomes == ["no service", "open", "open"]
    assert client.lines == ["opening", "opening", "open"]


async def test_the_next_user_tries_again_if_opening_is_cancelled(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)

    async def open_for_a_second() -> None:
        with trio.move_on_after(1.0):
            await function.open()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(open_for_a_second)
        await wait_all_tasks_blocked()
        await function.open()
    assert trio.current_time() == 3.0
    await function.close()
    assert client.lines == ["opening", *ONCE]


async def test_a_user_that_is_cancelled_while_it_waits_does_not_count(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function.open)
        await wait_all_tasks_blocked()
        with trio.move_on_after(1.0):
            await function.open()
    await function.close()
    assert client.lines == ONCE


async def test_a_cancelled_close_removes_the_user() -> None:
    client = Client()
    function = cached(client)
    await function.open()
    await function.open()
    for lines in (
        ["opening", "open"],
        ["opening", "open", "closing"],
    ):  # the last `close` begins, and is then cancelled
        with trio.CancelScope() as scope:
            scope.cancel()
            await function.close()
        assert client.lines == lines
    await operate(function, 0.0)
    assert client.lines == ["opening", "open", "closing", *ONCE]


def test_a_policy_that_an_earlier_trio_run_left_open_is_opened_again(tmp_path: Path) -> None:
    client = Client()
    function = cached(persistent(client, tmp_path / "cache.sqlite", name="n"))
    trio.run(function.open)
    for _ in range(2):
        trio.run(operate, function, 0.0)
    assert client.lines == ["opening", "open", *ONCE, *ONCE]


async def test_a_policy_inside_two_others_is_opened_once() -> None:
    client = Client()
    shared = gated(client, RateLimit(1000.0, burst=100))
    one, other = cached(shared), single_flight(shared)
    await one.open()
    await other.open()
    await one.close()
    assert client.lines == ["opening", "open"]
    await other.close()
    assert client.lines == ONCE


async def test_the_outer_function_opens_last_and_closes_first() -> None:
    lines: list[str] = []

    class Layer(Client):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        async def open(self) -> None:
            await self.inner.open()
            lines.append("outer")

        async def close(self) -> None:
            lines.append("outer")
            await self.inner.close()

    class Bottom(Client):
        async def open(self) -> None:
            lines.append("inner")

        async def close(self) -> None:
            lines.append("inner")

    function = cached(Layer(cached(Bottom())))
    await function.open()
    await function.close()
    assert lines == ["inner", "outer", "outer", "inner"]
