"""hedged in front of simulated services, with the real operator on a virtual clock. The long form is `thorough`."""

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


def one_call_in_a_hundred() -> float:
    return 1.0 if random.random() < 0.01 else 0.0


def one_backend_in_ten() -> float:
    return random.expovariate(1 / 0.4) if random.random() < 0.1 else 0.0


def none() -> float:
    return 0.0


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


@pytest.mark.parametrize(
    ("slow", "rows", "gain", "calls"),  # the percentile of the first rows is that of the fastest calls
    [
        pytest.param(one_call_in_a_hundred, 8_000, 1.3, 1.07, marks=pytest.mark.thorough, id="one call in a hundred"),
        pytest.param(one_backend_in_ten, 3_000, 1.3, 1.1, id="one backend in ten"),
        pytest.param(one_backend_in_ten, 20_000, 1.3, 1.07, marks=pytest.mark.thorough, id="the same for longer"),
        pytest.param(none, 3_000, 0.99, 1.1, marks=pytest.mark.thorough, id="none"),
    ],
)
async def test_hedging_raises_the_throughput_of_a_service_with_slow_calls(
    slow: Callable[[], float], rows: int, gain: float, calls: float, autojump_clock: MockClock
) -> None:
    random.seed(1)
    plain, service = Service(slow), Service(slow)
    rate = await rate_of(plain, rows)
    hedged_rate = await rate_of(hedged(service), rows)
    assert hedged_rate >= gain * rate
    assert service.calls <= calls * plain.calls


async def test_an_outage_costs_few_further_calls(autojump_clock: MockClock) -> None:
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
