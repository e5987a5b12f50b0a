"""An asyncio cancellation that is not Trio's: an ordinary error of its element."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

import pytest
import trio

from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.adapters import ResultFuture, from_asyncio, from_callback, from_future, in_thread


def raises(value: str) -> str:
    if value == "bad":
        raise asyncio.CancelledError("not ours")
    return value


def runs_asyncio(value: str) -> str:
    async def main() -> str:
        if value == "bad":
            task = asyncio.current_task()
            assert task is not None
            task.cancel("not ours")
            await asyncio.sleep(0)
        return value

    return asyncio.run(main())


def future_that_raises(value: str) -> Future[str]:
    future: Future[str] = Future()
    if value == "bad":
        future.set_exception(asyncio.CancelledError("not ours"))
    else:
        future.set_result(value)
    return future


def no_future(value: str) -> Future[str]:
    raises(value)
    return future_that_raises(value)


def completes(value: str, result_future: ResultFuture[str]) -> None:
    if value == "bad":
        result_future.complete_exceptionally(asyncio.CancelledError("not ours"))
    else:
        result_future.complete(value)


def completes_from_a_thread(value: str, result_future: ResultFuture[str]) -> None:
    threading.Thread(target=completes, args=(value, result_future)).start()


def raises_before_it_completes(value: str, result_future: ResultFuture[str]) -> None:
    raises(value)
    result_future.complete(value)


async def of_asyncio(value: str) -> str:
    return raises(value)


async def of_a_task(value: str) -> str:
    return await asyncio.create_task(of_asyncio(value))


async def of_a_gathering(value: str) -> str:
    return (await asyncio.gather(of_asyncio(value), of_asyncio("b")))[0]


FUNCTIONS: dict[str, Any] = {
    "in_thread": in_thread(raises),
    "in_thread, with asyncio inside": in_thread(runs_asyncio),
    "from_future": from_future(future_that_raises),
    "from_future, before the future": from_future(no_future),
    "from_callback": from_callback(completes),
    "from_callback, from a thread": from_callback(completes_from_a_thread),
    "from_callback, before the callback": from_callback(raises_before_it_completes),
    "from_asyncio": from_asyncio(of_asyncio),
    "from_asyncio, of a task": from_asyncio(of_a_task),
    "from_asyncio, of a gathering": from_asyncio(of_a_gathering),
}

every_adapter = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=list(FUNCTIONS))


@every_adapter
async def test_it_is_an_error_of_its_element_with_the_original_as_the_cause(function: Any) -> None:
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
async def test_it_is_skipped_and_retried_as_any_other_error(function: Any) -> None:
    retry = FixedDelay(1, 0.0)
    async with ordered_wait(["bad", "a"], function, timeout=60.0, retry=retry, on_error="skip") as results:
        assert [result async for result in results] == ["a"]
    statistics = results.statistics()
    assert (statistics.retried, statistics.skipped) == (1, 1)


async def test_a_cancellation_by_trio_remains_one() -> None:
    release, entered = threading.Event(), threading.Event()

    def waits(value: str) -> None:
        entered.set()
        release.wait(60.0)

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_thread(waits), "a")
            await trio.to_thread.run_sync(entered.wait, 60.0)
            nursery.cancel_scope.cancel()
    finally:
        release.set()
    assert nursery.cancel_scope.cancelled_caught
