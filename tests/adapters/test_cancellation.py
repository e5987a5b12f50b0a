"""An `asyncio.CancelledError` that Trio did not cause is an ordinary error of its element."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import trio

from tests.support import PATIENCE
from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.adapters import from_asyncio, in_thread


def raises(value: str) -> str:
    if value == "bad":
        raise asyncio.CancelledError("cancelled elsewhere")
    return value


async def coroutine_function(value: str) -> str:
    return raises(value)


async def awaits_a_task(value: str) -> str:
    return await asyncio.create_task(coroutine_function(value))


async def awaits_gather(value: str) -> str:
    return (await asyncio.gather(coroutine_function(value), coroutine_function("b")))[0]


async def cancels_itself(value: str) -> str:
    task = asyncio.current_task()
    if task is not None and value == "bad":
        task.cancel()
    await asyncio.sleep(0)
    return value


FUNCTIONS: dict[str, Any] = {
    "from_asyncio": from_asyncio(coroutine_function),
    "from_asyncio, task": from_asyncio(awaits_a_task),
    "from_asyncio, gather": from_asyncio(awaits_gather),
    "from_asyncio, itself": from_asyncio(cancels_itself),
}

every_adapter = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))


@every_adapter
async def test_it_fails_its_element_with_a_runtime_error_that_it_caused(function: Any) -> None:
    errors: list[Exception] = []

    async def on_error(value: str, error: Exception) -> str:
        errors.append(error)
        return "failed"

    async with ordered_wait(["a", "bad", "b"], function, timeout=60.0, on_error=on_error) as results:
        assert [result async for result in results] == ["a", "failed", "b"]
    [error] = errors
    assert type(error) is RuntimeError
    assert str(error).endswith("was cancelled inside asyncio, not by the operator")
    assert isinstance(error.__cause__, asyncio.CancelledError)


@every_adapter
async def test_it_is_retried_and_skipped_like_any_other_error(function: Any) -> None:
    retry = FixedDelay(1, 0.0)
    async with ordered_wait(["bad", "a"], function, timeout=60.0, retry=retry, on_error="skip") as results:
        assert [result async for result in results] == ["a"]
    statistics = results.statistics()
    assert (statistics.retried, statistics.skipped) == (1, 1)


async def test_a_cancellation_by_trio_is_not_translated() -> None:
    release, entered = threading.Event(), threading.Event()

    def waits(value: str) -> None:
        entered.set()
        release.wait(PATIENCE)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_thread(waits), "a")
            await trio.to_thread.run_sync(entered.wait, PATIENCE)
            nursery.cancel_scope.cancel()
    finally:
        release.set()
    assert nursery.cancel_scope.cancelled_caught
