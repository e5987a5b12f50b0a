"""The exceptions of elements are freed at once: none is in a reference cycle that waits for the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any
from weakref import WeakSet

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.adapters import ResultFuture, from_asyncio, from_callback, from_future
from trio_asyncio_io.gates import Budget, CircuitBreaker
from trio_asyncio_io.policies import hedged, single_flight

ERRORS: WeakSet[Exception] = WeakSet()


class BusyError(Exception):
    """Can be referred to weakly."""


@pytest.fixture(autouse=True)
def _without_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    ERRORS.clear()
    yield
    gc.enable()


def busy(value: str) -> BusyError:
    error = BusyError(value)
    ERRORS.add(error)
    return error


async def fail(value: str) -> None:
    await trio.sleep(1.0)
    raise busy(value)


async def fail_immediately(value: str) -> None:
    raise busy(value)


def future_of(value: str) -> Future[None]:
    future: Future[None] = Future()
    future.set_exception(busy(value))
    return future


def call_back(value: str, result_future: ResultFuture[None]) -> None:
    result_future.complete_exceptionally(busy(value))


async def answer_later(value: str, error: Exception) -> str:
    ERRORS.add(error)
    await trio.sleep(1.0)
    return value


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (fail, {}),
        (fail, {"retry": FixedDelay(2, 0.5)}),
        (fail, {"retry": FixedDelay(2, 9.0)}),  # it times out now, with the error as the cause
        (fail, {"on_error": answer_later}),
        (fail, {"on_error": answer_later, "retry": FixedDelay(2, 0.5, attempt_timeout=0.5)}),
        (fail, {"retry": FixedDelay(2, 0.5), "gate": Budget(3)}),  # the error is the cause of the refusal
        (fail, {"retry": FixedDelay(2, 0.5), "gate": CircuitBreaker("fail", calls=1, classify=lambda _: "overload")}),
        (single_flight(fail), {}),
        (hedged(single_flight(fail), after=0.5, budget=1.0), {}),
    ],
    ids=[
        "alone",
        "retried",
        "no time for a retry",
        "handled",
        "attempts time out",
        "no budget",
        "open circuit",
        "single_flight",
        "hedged",
    ],
)
async def test_the_error_of_an_element_is_in_no_cycle(
    async_wait: Any, function: Any, options: dict[str, Any], autojump_clock: MockClock
) -> None:
    await outputs(async_wait("aab", function, timeout=5.0, **{"on_error": "skip", **options}))
    assert list(ERRORS) == []


def failing_source() -> Iterator[str]:
    yield "a"
    raise busy("b")


async def wait_for_ever(value: str) -> None:
    await trio.sleep_forever()


async def fail_instead(value: str) -> None:
    raise busy(value)


async def fail_after(value: str, error: Exception) -> None:
    raise busy(f"{value} after {error}")


def fail_to_weigh(value: str) -> float:
    raise busy(value)


@pytest.mark.parametrize(
    ("source", "function", "options"),
    [
        ("abc", fail, {}),
        ("abc", fail, {"retry": FixedDelay(2, 0.5)}),
        ("abc", fail, {"retry": FixedDelay(2, 9.0)}),
        ("abc", fail, {"group": 2}),
        ("abc", fail, {"gate": CircuitBreaker()}),
        ("abc", wait_for_ever, {"on_timeout": fail_instead}),
        ("abc", wait_for_ever, {"on_timeout": fail_instead, "on_error": fail_after}),
        ("abc", fail, {"on_error": fail_after}),
        ("abc", wait_for_ever, {"gate": Budget(3, weight=fail_to_weigh)}),
        (failing_source, wait_for_ever, {}),
    ],
    ids=[
        "alone",
        "retried",
        "no time for a retry",
        "group",
        "gate",
        "on_timeout",
        "both handlers",
        "on_error",
        "weight",
        "source",
    ],
)
async def test_the_error_that_stops_an_operator_is_in_no_cycle(
    async_wait: Any, source: Any, function: Any, options: dict[str, Any], autojump_clock: MockClock
) -> None:
    elements = source() if callable(source) else source
    with pytest.raises((BusyError, trio.TooSlowError)):
        await outputs(async_wait(elements, function, timeout=5.0, capacity=2, buffer=2, **options))
    assert list(ERRORS) == []


@pytest.mark.parametrize(
    "function",
    [from_asyncio(fail_immediately), from_callback(call_back), from_future(future_of)],
    ids=["from_asyncio", "from_callback", "from_future"],
)
async def test_the_error_of_an_adapter_is_in_no_cycle(function: Any) -> None:
    await outputs(ordered_wait("ab", function, timeout=5.0, on_error="skip"))
    assert list(ERRORS) == []


async def test_a_result_of_a_future_is_in_no_cycle() -> None:
    class Result:
        """Can be referred to weakly."""

    results: WeakSet[Result] = WeakSet()

    def call() -> Future[Result]:
        future: Future[Result] = Future()
        trio.lowlevel.current_trio_token().run_sync_soon(lambda: future.set_result(Result()))
        return future

    results.add(await from_future(call)())
    assert list(results) == []
