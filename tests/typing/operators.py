"""The operators, as their users call them."""

import math
from collections.abc import AsyncIterator
from typing import assert_type

from trio_asyncio_io import (
    AsyncWaitOperator,
    ExponentialBackoff,
    FixedDelay,
    Histogram,
    Results,
    Snapshot,
    Statistics,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.gates import Auto, CircuitBreaker, RateLimit


async def length(text: str) -> int:
    return len(text)


async def words() -> AsyncIterator[str]:
    yield "a"


async def bare_values() -> None:
    async with ordered_wait(["a", "bc"], length, timeout=5.0) as results:
        assert_type(results, Results[int, str])
        async for result in results:
            assert_type(result, int)
    async with unordered_wait(words(), length, capacity=10, buffer=100, timeout=math.inf) as results:
        assert_type(await results.receive(), int)
        assert_type(results.receive_nowait(), int)
        await results.aclose()
    async with keyed_wait({"a": 1}, length, key=str.upper, timeout=5) as results:
        assert_type([result async for result in results], list[int])


async def error_policies() -> None:
    async def minus_one(text: str, exception: Exception) -> int:
        return -1

    async def zero(text: str) -> int:
        return 0

    async with ordered_wait(["a"], length, timeout=5.0, on_error="raise") as results:
        assert_type(results, Results[int, str])
    async with ordered_wait(["a"], length, timeout=5.0, on_error="skip") as results:
        assert_type(results, Results[int, str])
    async with ordered_wait(["a"], length, timeout=5.0, on_error=minus_one, on_timeout=zero) as results:
        assert_type(results, Results[int, str])
    ordered_wait(["a"], length, timeout=5.0, on_error="ignore")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(["a"], length)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def gates() -> None:
    tokens = RateLimit(100.0, burst=10, weight=len)
    for gate in (tokens, [tokens, Auto(most=9)], (CircuitBreaker("fail"),), None):
        async with ordered_wait(["a"], length, timeout=5.0, gate=gate) as results:
            assert_type(results, Results[int, str])
    assert_type(tokens.delay(0.0, 1.0), float)
    CircuitBreaker("stop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ordered_wait(["a"], length, timeout=5.0, gate=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ordered_wait(["a"], length, timeout=5.0, capacity="all")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def retries() -> None:
    fixed = FixedDelay(3, 0.5, retry_on=(OSError, TimeoutError))
    growing = ExponentialBackoff(
        3,
        initial=0.1,
        maximum=2.0,
        retry_on=lambda error: "busy" in str(error),
        retry_on_result=lambda result: result is None,
    )
    assert_type(growing.backoff(1, random=0.5), float)
    for strategy in (fixed, growing):
        async with ordered_wait(["a"], length, timeout=5.0, retry=strategy) as results:
            assert_type(results, Results[int, str])
    FixedDelay(3, 0.5, retry_on=BaseException)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def statistics() -> None:
    async with ordered_wait(["a"], length, timeout=5.0) as results:
        assert_type(results.statistics(), Statistics)
        assert_type(results.statistics().emitted, int)
        assert_type(results.statistics().slot_wait_seconds, float)
        assert_type(results.statistics().latency, Histogram)
        assert_type(results.statistics().latency.p99, float)
        assert_type([each.sequence for each in results.snapshot().elements], list[int])


async def an_operator_to_put_into() -> None:
    async with AsyncWaitOperator(length, mode="unordered", timeout=5.0, capacity=10) as operator:
        assert_type(operator, AsyncWaitOperator[str, int])
        await operator.put("a")
        operator.put_nowait("b")
        operator.end_input()
        assert_type(await operator.output.receive(), int)
    assert_type(operator.snapshot(), Snapshot[str, int])
    assert_type(operator.statistics(), Statistics)
    AsyncWaitOperator(length, mode="keyed", key=str.upper, timeout=5.0)
    AsyncWaitOperator(length, mode="sorted", timeout=5.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
