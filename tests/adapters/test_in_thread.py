"""in_thread. Threads are ordered by latches, without sleeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.support import PATIENCE, outputs
from trio_asyncio_io import ElementTimeoutError, ordered_wait, unordered_wait
from trio_asyncio_io.adapters import in_thread


class Gate:
    """A blocking function that returns once the gate is open."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.threads: set[int] = set()

    def __call__(self, value: Any) -> Any:
        self.threads.add(threading.get_ident())
        self.entered.release()
        assert self.is_open.wait(PATIENCE)
        self.ended.release()
        return value

    async def wait_for(self, semaphore: threading.Semaphore, number: int) -> None:
        """Wait until as many calls have entered or ended."""
        for _ in range(number):
            assert await trio.to_thread.run_sync(semaphore.acquire, True, PATIENCE)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is opened after the test, so that no thread is left waiting."""
    gate = Gate()
    yield gate
    gate.is_open.set()


async def test_a_blocking_function_becomes_an_async_function() -> None:
    assert await in_thread(str.upper)("a") == "A"
    assert await outputs(ordered_wait("abc", in_thread(str.upper), timeout=30.0)) == ["A", "B", "C"]


async def test_a_function_that_returns_a_coroutine_is_refused_at_its_first_call() -> None:
    async def upper(value: str) -> str:
        return value.upper()

    with pytest.raises(
        TypeError, match=r"is async already: in_thread takes a blocking callable\. Use a function for Trio"
    ):
        await in_thread(upper)("a")


async def test_calls_run_concurrently_in_threads_of_their_own(gate: Gate) -> None:
    """The capacity is the limit, and not Trio's default of 40 threads."""
    async with unordered_wait(range(60), in_thread(gate), timeout=30.0, capacity=50) as results:
        await gate.wait_for(gate.entered, 50)
        assert results.statistics().running == 50
        assert threading.get_ident() not in gate.threads
        gate.is_open.set()
        assert sorted([result async for result in results]) == list(range(60))
    assert len(gate.threads) >= 50


async def test_an_exception_of_the_function_fails_the_element() -> None:
    async def on_error(value: str, error: Exception) -> str:
        return type(error).__name__

    assert await outputs(ordered_wait(["x"], in_thread(int), timeout=30.0, on_error=on_error)) == ["ValueError"]


async def test_the_slot_is_free_at_the_deadline_although_the_thread_goes_on(gate: Gate) -> None:
    with pytest.raises(ElementTimeoutError):
        await outputs(ordered_wait(["a"], in_thread(gate), timeout=0.0))
    await gate.wait_for(gate.entered, 1)
    gate.is_open.set()
    await gate.wait_for(gate.ended, 1)


async def test_leaving_the_block_does_not_wait_for_the_thread(gate: Gate) -> None:
    async with ordered_wait(["a"], in_thread(gate), timeout=30.0):
        await gate.wait_for(gate.entered, 1)
    assert not gate.is_open.is_set()
