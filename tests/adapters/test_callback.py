"""from_callback and ResultFuture. Threads are ordered by latches, and Trio runs on virtual time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from tests.support import PATIENCE, outputs
from trio_asyncio_io import ElementTimeoutError, FixedDelay, ordered_wait, unordered_wait
from trio_asyncio_io.adapters import ResultFuture, from_callback


class Service:
    """A callback function that stores its result futures, which the test completes."""

    def __init__(self) -> None:
        self.pending: dict[Any, ResultFuture[Any]] = {}

    def __call__(self, value: Any, result_future: ResultFuture[Any]) -> None:
        self.pending[value] = result_future


@pytest.fixture
def service() -> Service:
    return Service()


async def run_in_thread(function: Callable[[], Any]) -> Any:
    return await trio.to_thread.run_sync(function)


def upper(value: str, result_future: ResultFuture[str]) -> None:
    result_future.complete(value.upper())


def upper_in_a_thread(value: str, result_future: ResultFuture[str]) -> None:
    threading.Thread(target=upper, args=(value, result_future)).start()


@pytest.mark.parametrize("function", [upper, upper_in_a_thread])
async def test_a_callback_function_becomes_an_async_function(function: Any) -> None:
    assert await from_callback(function)("a") == "A"
    assert await outputs(ordered_wait("abc", from_callback(function), timeout=30.0)) == ["A", "B", "C"]


async def test_the_values_come_first_and_the_result_future_last() -> None:
    def add(left: int, right: int, result_future: ResultFuture[int]) -> None:
        result_future.complete(left + right)

    assert await from_callback(add)(1, 2) == 3


async def test_none_is_a_result(service: Service) -> None:
    async with ordered_wait(["a"], from_callback(service), timeout=30.0) as results:
        await trio.testing.wait_all_tasks_blocked()
        service.pending["a"].complete(None)
        assert [result async for result in results] == [None]


async def test_calls_are_completed_in_any_order(service: Service) -> None:
    async with unordered_wait("abc", from_callback(service), timeout=30.0) as results:
        await trio.testing.wait_all_tasks_blocked()
        for value in "cab":
            service.pending[value].complete(value)
            assert await results.receive() == value


async def test_complete_exceptionally_fails_the_element(service: Service) -> None:
    async with ordered_wait(["a"], from_callback(service), timeout=30.0, on_error=failed) as results:
        await trio.testing.wait_all_tasks_blocked()
        assert service.pending["a"].complete_exceptionally(OSError("gone"))
        assert [result async for result in results] == ["a: gone"]


async def failed(value: str, error: Exception) -> str:
    return f"{value}: {error}"


async def test_an_exception_from_complete_exceptionally_is_retried_like_any_other() -> None:
    calls = 0

    def flaky(value: str, result_future: ResultFuture[str]) -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            result_future.complete_exceptionally(OSError("busy"))
        else:
            result_future.complete(value)

    assert await outputs(ordered_wait(["a"], from_callback(flaky), timeout=30.0, retry=FixedDelay(3, 0.0))) == ["a"]
    assert calls == 3


async def test_an_exception_of_the_function_itself_is_raised_by_the_call() -> None:
    result_futures = []

    def raises(value: str, result_future: ResultFuture[str]) -> None:
        result_futures.append(result_future)
        raise OSError(value)

    with pytest.raises(OSError, match="a"):
        await from_callback(raises)("a")
    assert result_futures[0].complete("late") is False


async def test_an_exception_of_the_function_wins_over_its_result() -> None:
    def completes_and_raises(value: str, result_future: ResultFuture[str]) -> None:
        result_future.complete(value)
        raise OSError(value)

    with pytest.raises(OSError, match="a"):
        await from_callback(completes_and_raises)("a")
    await trio.testing.wait_all_tasks_blocked()


async def test_the_first_completion_wins(service: Service) -> None:
    async with ordered_wait(["a"], from_callback(service), timeout=30.0) as results:
        await trio.testing.wait_all_tasks_blocked()
        result_future = service.pending["a"]
        assert result_future.complete(1) is True
        assert result_future.complete(2) is False
        assert result_future.complete_exceptionally(OSError()) is False
        assert [result async for result in results] == [1]
    assert result_future.complete(3) is False


async def test_an_exception_wins_over_a_later_result(service: Service, raised_by: Any) -> None:
    async def body(results: Any) -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert service.pending["a"].complete_exceptionally(OSError("first")) is True
        assert service.pending["a"].complete("second") is False
        await results.receive()

    error = await raised_by(ordered_wait(["a"], from_callback(service), timeout=30.0), body)
    assert (type(error), str(error)) == (OSError, "first")


async def test_exactly_one_of_many_threads_wins(service: Service) -> None:
    threads = 32
    start = threading.Barrier(threads)
    won: list[int] = []

    def race(number: int) -> None:
        start.wait(PATIENCE)
        if service.pending["a"].complete(number):
            won.append(number)

    async with ordered_wait(["a"], from_callback(service), timeout=30.0) as results, trio.open_nursery() as nursery:
        await trio.testing.wait_all_tasks_blocked()
        for number in range(threads):
            nursery.start_soon(partial(run_in_thread, partial(race, number)))
        result = await results.receive()
    assert won == [result]


async def test_a_call_without_a_callback_ends_at_its_deadline(service: Service, autojump_clock: Any) -> None:
    with pytest.raises(ElementTimeoutError):
        await outputs(ordered_wait(["a"], from_callback(service), timeout=5.0))
    assert trio.current_time() == 5.0


async def test_a_completion_after_the_deadline_is_ignored(service: Service, autojump_clock: Any) -> None:
    async with ordered_wait(["a"], from_callback(service), timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == []
        assert service.pending["a"].complete("late") is False
        assert service.pending["a"].complete_exceptionally(OSError("late")) is False


async def test_a_result_wins_over_a_later_cancellation(service: Service) -> None:
    result = None

    async def call() -> None:
        nonlocal result
        with scope:
            result = await from_callback(service)("a")

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        assert service.pending["a"].complete("first")
        scope.cancel()
    assert (result, scope.cancelled_caught) == ("first", False)


def test_a_completion_after_the_trio_run_is_ignored(service: Service) -> None:
    async def main() -> ResultFuture[str]:
        with trio.move_on_after(0.0):
            await from_callback(service)("a")
        return ResultFuture()

    not_awaited = trio.run(main)
    assert service.pending["a"].complete("late") is False
    assert not_awaited.complete("late") is False


@pytest.mark.parametrize("error", [None, "gone", OSError, KeyboardInterrupt(), trio.Cancelled])
async def test_complete_exceptionally_takes_only_instances_of_exception(service: Service, error: Any) -> None:
    result_future: ResultFuture[str] = ResultFuture()
    with pytest.raises(TypeError, match="complete_exceptionally takes an instance of Exception, got"):
        result_future.complete_exceptionally(error)
    assert result_future.complete("still open") is True


async def test_a_result_future_may_be_completed_before_anybody_waits_for_it() -> None:
    result_future: ResultFuture[str] = ResultFuture()
    result_future.complete("early")
    await trio.testing.wait_all_tasks_blocked()
    assert await result_future.wait() == "early"
