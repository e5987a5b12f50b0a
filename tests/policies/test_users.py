"""The users of a policy: the first operator opens the function, the last one closes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import AsyncFunction, ordered_wait
from trio_asyncio_io.policies import cached, grouped, persistent, rate_limited, single_flight

POLICIES: dict[str, Callable[[Any], Any]] = {
    "cached": cached,
    "single_flight": single_flight,
    "grouped": lambda function: grouped(function, size=1),
    "rate_limited": lambda function: rate_limited(function, 1000.0, burst=100),
    "several": lambda function: single_flight(cached(rate_limited(function, 1000.0, burst=100))),
}


class Client(AsyncFunction[Any, Any]):
    """Writes down when it is opened and closed, and answers only in between. Takes `seconds` for each of these."""

    def __init__(self, seconds: float = 0.0, troubles: int = 0) -> None:
        self.lines: list[Any] = []
        self.seconds = seconds
        self.troubles = troubles
        self.is_open = False

    async def open(self) -> None:
        self.lines.append("opening")
        await trio.sleep(self.seconds)
        if self.troubles:
            self.troubles -= 1
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
async def test_operators_that_share_a_policy_open_its_function_once_and_close_it_after_the_last(
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
        assert function._store.is_open
        assert [result async for result in results] == [0.001]
    assert not function._store.is_open
    assert client.lines == ONCE


async def test_whoever_comes_while_it_is_being_opened_waits_for_that(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function.open)
        await wait_all_tasks_blocked()
        await function.open()
        assert trio.current_time() == 2.0
    assert client.lines == ["opening", "open"]


async def test_whoever_comes_while_it_is_being_closed_opens_it_again(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)
    await function.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function.close)
        await wait_all_tasks_blocked()
        await function.open()
    assert client.lines == [*ONCE, "opening", "open"]
    assert trio.current_time() == 6.0


async def test_it_can_be_opened_again_after_the_last_close() -> None:
    client = Client()
    function = cached(client)
    for _ in range(2):
        await operate(function, 0.0)
    assert client.lines == ONCE * 2


async def test_a_user_whose_open_failed_does_not_count() -> None:
    client = Client(troubles=1)
    function = cached(client)
    with pytest.raises(OSError, match="no service"):
        await operate(function, 0.0)
    await operate(function, 0.0)
    assert client.lines == ["opening", *ONCE]


async def test_when_opening_fails_the_next_in_line_tries_it(autojump_clock: MockClock) -> None:
    client = Client(seconds=1.0, troubles=1)
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


async def test_when_opening_is_cancelled_the_next_in_line_opens_it(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)

    async def give_up() -> None:
        with trio.move_on_after(1.0):
            await function.open()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await wait_all_tasks_blocked()
        await function.open()
    assert trio.current_time() == 3.0
    await function.close()
    assert client.lines == ["opening", *ONCE]


async def test_whoever_leaves_while_waiting_for_the_opening_does_not_count(autojump_clock: MockClock) -> None:
    client = Client(seconds=2.0)
    function = cached(client)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function.open)
        await wait_all_tasks_blocked()
        with trio.move_on_after(1.0):
            await function.open()
    await function.close()
    assert client.lines == ONCE


async def test_a_cancelled_user_leaves_it_open_for_the_others_and_the_last_one_closes_it() -> None:
    client = Client()
    function = cached(client)
    await function.open()
    await function.open()
    for lines in (["opening", "open"], ["opening", "open", "closing"]):  # `close` begins, and meets the cancellation
        with trio.CancelScope() as scope:
            scope.cancel()
            await function.close()
        assert client.lines == lines
    await operate(function, 0.0)
    assert client.lines == ["opening", "open", "closing", *ONCE]


def test_another_trio_run_opens_what_an_earlier_one_has_left_open(tmp_path: Path) -> None:
    client = Client()
    function = cached(persistent(client, tmp_path / "cache.sqlite", name="n"))
    trio.run(function.open)
    for _ in range(2):
        trio.run(operate, function, 0.0)
    assert client.lines == ["opening", "open", *ONCE, *ONCE]


async def test_a_policy_inside_of_two_others_is_opened_once() -> None:
    client = Client()
    shared = rate_limited(client, 1000.0, burst=100)
    one, other = cached(shared), single_flight(shared)
    await one.open()
    await other.open()
    await one.close()
    assert client.lines == ["opening", "open"]
    await other.close()
    assert client.lines == ONCE


async def test_what_is_opened_last_is_closed_first() -> None:
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
