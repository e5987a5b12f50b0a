"""Errors that a function's own nursery raises while its call is cancelled: Trio makes a group of both."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost
from tests.support import outputs
from trio_asyncio_io import AttemptTimeoutError, ElementTimeoutError, FixedDelay

CLEANUP = ConnectionResetError("while closing")


async def raise_when_cancelled(error: BaseException) -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise error


async def fail_to_clean_up(error: BaseException) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raise_when_cancelled, error)
        await trio.sleep_forever()


def function_of(group: int | None, error: BaseException = CLEANUP) -> Any:
    """Never ends for an "x", and raises the error when it is cancelled. Any other value is its result."""

    async def single(value: str) -> str:
        if value == "x":
            await fail_to_clean_up(error)
        await trio.sleep(0.1)
        return value

    async def many(values: list[str]) -> list[str]:
        return [await single(value) for value in values]

    return single if group is None else many


@pytest.fixture(params=[None, 1])
def group(request: pytest.FixtureRequest) -> Any:
    return request.param


async def test_an_error_at_a_deadline_is_a_timeout_of_its_record(
    async_wait: Any, group: Any, autojump_clock: MockClock
) -> None:
    gate = AtMost(1)
    options = {"capacity": 4, "on_error": "dead_letter", "group": group, "gate": gate, "timeout": 2.0}
    async with async_wait("abxcd", function_of(group), retry=FixedDelay(3, 0.1), **options) as results:
        assert sorted([result async for result in results]) == ["a", "b", "c", "d"]
        letter = await results.dead_letters.receive()
    assert isinstance(letter.error, ElementTimeoutError)
    assert isinstance(letter.error.__cause__, ExceptionGroup)
    assert letter.error.__cause__.exceptions == (CLEANUP,)
    statistics = results.statistics()
    assert (statistics.timed_out, statistics.failed, statistics.cancelled, statistics.retried) == (1, 0, 0, 0)


async def test_on_timeout_replaces_the_result_although_the_function_failed_to_clean_up(
    async_wait: Any, group: Any, autojump_clock: MockClock
) -> None:
    async def late(value: str) -> str:
        return f"late {value}"

    results = await outputs(async_wait("axb", function_of(group), timeout=1.0, on_timeout=late, group=group))
    assert sorted(results) == ["a", "b", "late x"]


async def test_an_error_at_the_end_of_an_attempt_is_its_timeout_and_is_retried(
    async_wait: Any, group: Any, autojump_clock: MockClock
) -> None:
    retry = FixedDelay(1, 1.0, attempt_timeout=2.0, retry_on=ValueError)
    options = {"timeout": inf, "retry": retry, "on_error": "dead_letter", "group": group}
    async with async_wait("x", function_of(group), **options) as results:
        letter = await results.dead_letters.receive()
    assert trio.current_time() == 5.0
    assert isinstance(letter.error, AttemptTimeoutError)
    assert isinstance(letter.error.__cause__, ExceptionGroup)


async def test_an_error_at_the_timeout_of_a_handler_is_a_timeout(async_wait: Any, autojump_clock: MockClock) -> None:
    async def handle(value: str, error: Exception) -> None:
        await fail_to_clean_up(CLEANUP)

    async def fail(value: str) -> None:
        raise ValueError(value)

    with pytest.raises(ElementTimeoutError, match="on_error") as caught:
        await outputs(async_wait("a", fail, timeout=1.0, on_error=handle))
    assert isinstance(caught.value.__cause__, ExceptionGroup)


async def test_an_error_while_the_operator_stops_is_a_failure_of_its_record(
    raised_by: Any, async_wait: Any, group: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    async def leave(results: Any) -> None:
        await trio.sleep(1.0)

    gate = AtMost(1)
    options = {"timeout": 5.0, "capacity": 4, "group": group, "gate": gate}
    with nothing_left():
        assert await raised_by(async_wait("x", function_of(group), on_error="skip", **options), leave) is None
        error = await raised_by(async_wait("x", function_of(group), **options), leave)
    assert isinstance(error, ExceptionGroup)
    assert error.exceptions == (CLEANUP,)
    assert error.__notes__ == ["element 0, 'x', attempt 1"]


async def test_a_cancellation_from_outside_goes_on(
    async_wait: Any, group: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    with nothing_left(), trio.move_on_after(1.0) as scope:
        async with async_wait("x", function_of(group), timeout=5.0, on_error="skip", group=group) as results:
            await results.receive()
    assert scope.cancelled_caught
    assert trio.current_time() == 1.0
    assert [each.element for each in results.snapshot().elements] == ["x"]


async def test_an_interrupt_at_a_deadline_stops_the_operator(
    raised_by: Any, async_wait: Any, group: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    interrupt = KeyboardInterrupt()
    operator = async_wait("x", function_of(group, interrupt), timeout=1.0, on_error="skip", group=group)
    with nothing_left():
        error = await raised_by(operator)
    assert isinstance(error, KeyboardInterrupt | BaseExceptionGroup)
    assert interrupt in (error, *getattr(error, "exceptions", ()))
