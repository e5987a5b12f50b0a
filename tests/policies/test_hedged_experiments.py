"""hedged in front of simulated services, with the real operator on a virtual clock: short forms of the experiments.

tests/benchmarks runs the long forms.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.policies import hedged
from trio_asyncio_io.testing import Recorder

pytestmark = pytest.mark.slow


class Service:
    """Answers in 20 ms on average, with an exponential distribution. `slow` may decide otherwise."""

    def __init__(self, slow: Callable[[], float]) -> None:
        self.calls = 0
        self._slow = slow

    async def __call__(self, value: int) -> int:
        self.calls += 1
        await trio.sleep(self._slow() or random.expovariate(1 / 0.02))
        return value


def one_backend_in_ten() -> float:
    return random.expovariate(1 / 0.4) if random.random() < 0.1 else 0.0


async def rate_of(function: Callable[[int], Awaitable[int]], rows: int) -> float:
    """Rows per second, without the last tenth, when capacity is idle."""
    began = trio.current_time()
    received = 0
    async with unordered_wait(range(rows), function, capacity=100, timeout=30.0) as results:
        async for _ in results:
            received += 1
            if received == rows * 9 // 10:
                return received / (trio.current_time() - began)
    raise AssertionError


async def test_hedging_raises_the_throughput_of_a_service_with_slow_calls(autojump_clock: MockClock) -> None:
    random.seed(1)
    plain, service = Service(one_backend_in_ten), Service(one_backend_in_ten)
    rate = await rate_of(plain, 3_000)
    hedged_rate = await rate_of(hedged(service), 3_000)
    assert hedged_rate >= 1.3 * rate
    assert service.calls <= 1.1 * plain.calls  # the budget; the percentile of the first rows is that of the fastest


async def test_an_outage_costs_few_extra_calls(autojump_clock: MockClock) -> None:
    async def call(value: int) -> int:
        await trio.sleep(0.02)
        if value >= 1_000:
            raise ConnectionRefusedError
        return value

    recorder = Recorder(call)
    function = hedged(recorder)
    async with unordered_wait(range(3_000), function, capacity=100, timeout=30.0, on_error="skip") as results:
        async for _ in results:
            pass
    extra = sum(value >= 1_000 for value in recorder.values) - 2_000
    assert 0 < extra <= 0.1 * 2_000 + 10
