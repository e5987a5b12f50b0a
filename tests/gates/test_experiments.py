"""Limits in front of simulated services, with the real operator on a virtual clock: short forms of the experiments.

Where a service's rate is divided by four, so is the number of tasks. tests/benchmarks runs the long forms.
"""

from __future__ import annotations

from math import inf
from random import uniform
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from benchmarks.resilience._counting import between
from benchmarks.resilience._run import simulate
from benchmarks.resilience._services import RateCappedService
from tests.support import variation_except
from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import Auto, CircuitBreaker, RateLimit, settle
from trio_asyncio_io.testing import Recorder

pytestmark = pytest.mark.slow


def test_tasks_share_the_rate_of_a_service_with_few_refusals() -> None:
    service = RateCappedService(125)
    simulate(20, service, [Auto(most=100) for _ in range(4)])
    assert len(service.admitted) >= 0.96 * 125 * 20
    assert between(service.refused, 10, inf) <= 0.05 * between(service.admitted, 10, inf)


@pytest.mark.variation
def test_the_rate_follows_a_dip_and_comes_back() -> None:
    service = RateCappedService(120)

    async def control() -> None:
        await trio.sleep_until(8.0)
        service.rate = 24.0
        await trio.sleep_until(18.0)
        service.rate = 120.0

    simulate(31.0, service, [Auto(most=100) for _ in range(4)], control=control)
    assert between(service.admitted, 10, 18) >= 0.75 * 24 * 8  # 4 calls/s of a task do not divide well
    assert between(service.admitted, 28, 31) >= 0.9 * 120 * 3


async def test_an_outage_costs_few_calls_and_no_record(autojump_clock: MockClock) -> None:
    began = trio.current_time()

    async def serve(value: int) -> int:
        await trio.sleep(0.1)
        if 20.0 <= trio.current_time() - began < 80.0:
            raise ConnectionRefusedError
        return value

    recorder = Recorder(serve)
    retry = ExponentialBackoff(4, 0.1, 2.0)
    received: list[Any] = []
    options: Any = {"capacity": 20, "timeout": 9.0, "retry": retry, "gate": CircuitBreaker()}
    async with unordered_wait(range(10_000), recorder, **options) as results:
        received.extend([result async for result in results])
    assert sorted(received) == list(range(10_000))
    starts = sorted(call.started - began for call in recorder.calls)
    assert between(starts, 20.1, 80.0) <= 0.01 * 60 * 200
    assert between(starts, 90.0, 95.0) >= 0.9 * 5 * 200


@pytest.mark.parametrize("latency", variation_except([0.5], [0.1, 0.5]))
def test_estimates_that_are_ten_times_too_high_cost_little_and_the_limit_holds(latency: float) -> None:
    rate, tokens, seconds = 1_000.0, 50.0, 25.0
    used: list[tuple[float, float]] = []

    async def ask(value: object) -> object:
        actual = tokens * uniform(0.5, 1.5)
        used.append((trio.current_time(), actual))
        await trio.sleep(latency)
        settle(actual)
        return value

    simulate(seconds, ask, [RateLimit(rate, burst=rate, weight=lambda value: 10 * tokens)])
    most = max(sum(each for at, each in used if start <= at < start + 10) for start, _ in used[::20])
    assert sum(each for at, each in used if at >= 10) >= 0.9 * rate * (seconds - 10)
    assert most <= 1.02 * (rate + 10 * rate)
