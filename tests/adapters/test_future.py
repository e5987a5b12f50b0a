"""from_future. The test completes the futures, or an executor whose threads wait for a latch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import pytest
import trio
import trio.testing

from tests.support import PATIENCE, outputs
from trio_asyncio_io import ElementTimeoutError, NotAsyncError, ordered_wait
from trio_asyncio_io.adapters import from_future


class Service:
    """A function that returns futures, which the test completes."""

    def __init__(self) -> None:
        self.pending: dict[Any, Future[Any]] = {}

    def __call__(self, value: Any) -> Future[Any]:
        return self.pending.setdefault(value, Future())


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


async def test_submitting_to_an_executor_becomes_an_async_function(pool: ThreadPoolExecutor) -> None:
    function = from_future(lambda value: pool.submit(str.upper, value))
    assert await function("a") == "A"
    assert await outputs(ordered_wait("abc", function, timeout=30.0)) == ["A", "B", "C"]


async def test_a_future_that_is_done_already_is_accepted() -> None:
    done: Future[str] = Future()
    done.set_result("a")
    assert await from_future(lambda: done)() == "a"


async def test_an_exception_of_the_future_fails_the_element(pool: ThreadPoolExecutor) -> None:
    async def on_error(value: str, error: Exception) -> str:
        return type(error).__name__

    function = from_future(lambda value: pool.submit(int, value))
    assert await outputs(ordered_wait("x", function, timeout=30.0, on_error=on_error)) == ["ValueError"]


async def test_an_exception_of_the_function_itself_is_raised_by_the_call(pool: ThreadPoolExecutor) -> None:
    pool.shutdown()
    with pytest.raises(RuntimeError, match="cannot schedule new futures"):
        await from_future(pool.submit)(len, "a")


async def test_the_future_is_cancelled_at_the_deadline(service: Service, autojump_clock: Any) -> None:
    with pytest.raises(ElementTimeoutError):
        await outputs(ordered_wait("a", from_future(service), timeout=5.0))
    assert trio.current_time() == 5.0
    assert service.pending["a"].cancelled()


async def test_the_operator_does_not_wait_for_a_running_future_and_ignores_its_late_result(
    service: Service, autojump_clock: Any
) -> None:
    service("a").set_running_or_notify_cancel()
    async with ordered_wait("a", from_future(service), timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == []
    assert trio.current_time() == 5.0
    service.pending["a"].set_result("late")
    await trio.testing.wait_all_tasks_blocked()


async def test_leaving_the_block_cancels_work_that_the_executor_has_not_started(pool: ThreadPoolExecutor) -> None:
    is_open = threading.Event()
    ran: list[str] = []
    blockers = [pool.submit(is_open.wait, PATIENCE) for _ in range(4)]
    async with ordered_wait("ab", from_future(lambda value: pool.submit(ran.append, value)), timeout=30.0):
        await trio.testing.wait_all_tasks_blocked()
    is_open.set()
    for blocker in blockers:
        blocker.result(PATIENCE)
    pool.shutdown()
    assert ran == []


async def test_a_future_that_was_cancelled_elsewhere_is_an_ordinary_error(service: Service) -> None:
    service("a").cancel()
    with pytest.raises(RuntimeError, match=r"the future of .*Service.* was cancelled, not by the operator") as caught:
        await from_future(service)("a")
    assert isinstance(caught.value.__cause__, CancelledError)


class Foreign:
    """A future of another library, done from the start."""

    def add_done_callback(self, callback: Any) -> None:
        callback(self)

    def cancel(self) -> None: ...

    def result(self) -> str:
        return "foreign"


async def test_any_object_with_the_three_methods_is_a_future() -> None:
    assert await from_future(Foreign)() == "foreign"


@pytest.mark.parametrize("result", [3, None, "a"])
async def test_a_result_that_is_not_a_future_is_refused_and_the_error_names_in_thread(result: Any) -> None:
    with pytest.raises(NotAsyncError, match=r"from_future needs a Future, but .* returned .*in_thread\(function\)"):
        await from_future(lambda value: result)("a")
