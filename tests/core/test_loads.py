"""The calls at a low and at a high load, among the totals of an operator."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import AsyncWaitOperator, Totals
from trio_asyncio_io.policies import cached


async def totals_of(seconds: list[float], capacity: int, function: Any = trio.sleep) -> Totals:
    async def call(value: float) -> None:
        await function(value)

    async with AsyncWaitOperator(
        call, mode="unordered", timeout=1e9, capacity=capacity, source=seconds, on_error="skip"
    ) as operator:
        async for _ in operator.output:
            pass
    return operator.totals()


def loads(totals: Totals) -> tuple[float, ...]:
    return totals.low_calls, totals.low_latency_seconds, totals.high_calls, totals.high_latency_seconds


async def test_a_call_counts_at_the_higher_load_of_its_start_and_its_end(autojump_clock: MockClock) -> None:
    assert loads(await totals_of([2.0], capacity=4)) == (1, 2.0, 0, 0.0)
    assert loads(await totals_of([4.0, 3.0, 2.0], capacity=4)) == (1, 4.0, 2, 5.0)
    assert loads(await totals_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], capacity=8)) == (0, 0.0, 8, 36.0)


async def test_of_many_calls_a_sample_stands_for_all(autojump_clock: MockClock) -> None:
    _, _, calls, seconds = loads(await totals_of([1.0] * 10_000, capacity=10))
    assert calls > 9_500
    assert seconds == calls


async def test_answers_from_a_cache_and_failed_calls_do_not_count(autojump_clock: MockClock) -> None:
    async def fail(value: float) -> None:
        await trio.sleep(value)
        raise OSError

    assert loads(await totals_of([1.0] * 8, 1, cached(trio.sleep))) == (0, 0.0, 1, 1.0)
    assert loads(await totals_of([1.0] * 8, 8, fail)) == (0, 0.0, 0, 0.0)
