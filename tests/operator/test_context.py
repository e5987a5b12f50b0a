"""Each invocation starts with the context variables of the operator's block."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar, copy_context
from typing import Any

import pytest
import sniffio
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncFunction, FixedDelay, Observer, ordered_wait
from trio_asyncio_io._operator.tasks import BlockContext

tenant: ContextVar[Any] = ContextVar("tenant", default="nobody")


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("of_block", [None, "the block's"])
@pytest.mark.parametrize("capacity", [1, 3])
async def test_a_variable_set_by_one_invocation_is_not_visible_to_the_next(
    async_wait: Any, autojump_clock: MockClock, suspends: bool, of_block: str | None, capacity: int
) -> None:
    async def function(value: int) -> Any:
        found = tenant.get()
        tenant.set(value)
        if suspends:
            await trio.sleep(1.0)
        assert tenant.get() == value
        return found

    if of_block is not None:
        tenant.set(of_block)
    expected = of_block or "nobody"
    assert await outputs(async_wait(range(10), function, timeout=5.0, capacity=capacity)) == [expected] * 10


async def test_a_variable_set_to_an_equal_value_is_restored(autojump_clock: MockClock) -> None:
    async def function(value: int) -> bool:
        is_of_block = tenant.get() is of_block
        tenant.set([])
        return is_of_block

    of_block: list[int] = []
    tenant.set(of_block)
    assert await outputs(ordered_wait(range(5), function, timeout=5.0, capacity=1)) == [True] * 5


async def test_variables_are_restored_after_a_failure_and_a_timeout(autojump_clock: MockClock) -> None:
    async def function(value: int) -> Any:
        found = tenant.get()
        tenant.set(value)
        if value == 0:
            raise OSError
        if value == 1:
            await trio.sleep_forever()
        return found

    operator = ordered_wait(range(4), function, timeout=5.0, capacity=1, on_error="skip")
    assert await outputs(operator) == ["nobody", "nobody"]


async def test_all_attempts_and_handlers_of_an_element_share_one_context(autojump_clock: MockClock) -> None:
    async def function(value: int) -> None:
        tenant.set((tenant.get(), value))
        raise OSError

    async def handled(value: int, error: Exception) -> Any:
        return tenant.get()

    operator = ordered_wait([1, 2], function, timeout=5.0, capacity=1, retry=FixedDelay(1, 0.1), on_error=handled)
    assert await outputs(operator) == [(("nobody", 1), 1), (("nobody", 2), 2)]


async def test_on_timeout_sees_the_variables_set_by_its_invocation(autojump_clock: MockClock) -> None:
    async def function(value: int) -> None:
        tenant.set(value)
        await trio.sleep_forever()

    async def late(value: int) -> Any:
        return tenant.get()

    assert await outputs(ordered_wait([1, 2], function, timeout=1.0, capacity=1, on_timeout=late)) == [1, 2]


async def test_open_and_close_run_in_the_context_of_the_block() -> None:
    seen: list[Any] = []

    class Client(AsyncFunction[int, Any]):
        async def open(self) -> None:
            tenant.set("opened")

        async def invoke(self, value: int) -> Any:
            found = tenant.get()
            tenant.set(value)
            return found

        async def close(self) -> None:
            seen.append(tenant.get())

    assert await outputs(ordered_wait([1, 2], Client(), timeout=5.0)) == ["opened", "opened"]
    assert seen == ["opened"]


async def test_the_hooks_of_an_observer_share_the_context_of_the_invocation(autojump_clock: MockClock) -> None:
    seen: list[Any] = []

    class Sets(Observer):
        def started(self, sequence: int, element: Any) -> None:
            seen.append(tenant.get())
            tenant.set(sequence)

        def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
            seen.append(tenant.get())

    async def function(value: str) -> Any:
        return tenant.get()

    assert await outputs(ordered_wait("ab", function, timeout=5.0, capacity=1, observer=Sets())) == [0, 1]
    assert seen == ["nobody", 0, "nobody", 1]


async def test_the_function_may_use_scopes_nurseries_threads_and_async_generators(async_wait: Any) -> None:
    async def numbers() -> AsyncIterator[Any]:
        yield tenant.get()
        await trio.lowlevel.checkpoint()
        yield sniffio.current_async_library()

    async def child(found: list[Any]) -> None:
        found.append(tenant.get())

    async def function(value: int) -> Any:
        tenant.set(value)
        found: list[Any] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, found)
        found.append(await trio.to_thread.run_sync(tenant.get))
        with trio.move_on_after(0):
            await trio.sleep(math.inf)
        async with aclosing(numbers()) as each:
            found += [one async for one in each]
        return found

    expected = [[value, value, value, "trio"] for value in range(6)]
    assert sorted(await outputs(async_wait(range(6), function, timeout=60.0, capacity=2))) == expected


def test_variables_that_were_not_set_cost_nothing() -> None:
    """The number of steps that the comparison takes in C cannot be seen, but the values that it looks at can."""

    def set_all() -> None:
        for number in range(50):
            ContextVar(f"variable {number}").set(object())
        block = BlockContext()
        block._values = ()  # so a comparison of values would find a difference
        assert not block.is_changed_in(copy_context())

    copy_context().run(set_all)


def test_a_context_whose_variable_was_reset_counts_as_unchanged() -> None:
    def use() -> None:
        token = tenant.set("used")
        assert block.is_changed_in(context)
        tenant.reset(token)

    tenant.set("of the block")
    block = BlockContext()
    context = copy_context()
    assert not block.is_changed_in(context)
    context.run(use)
    assert not block.is_changed_in(context)
