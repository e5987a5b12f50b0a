"""Limits in front of simulated services, with the real operator on a virtual clock: short forms of the experiments.

Where a service's rate is divided by four, so is the number of tasks. tests/benchmarks runs the long forms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from math import inf
from random import uniform
from statistics import median
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from benchmarks.resilience._counting import between
from benchmarks.resilience._run import GatesOfTask, simulate
from benchmarks.resilience._services import RateCappedService, StatusError
from tests.support import thorough_except, variation_except
from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import Auto, CircuitBreaker, RateLimit, settle
from trio_asyncio_io.testing import Recorder

pytestmark = pytest.mark.slow


class StormService(RateCappedService):
    """Answers calls above its rate with `status`, and refuses connections while `is_down`.

    Attributes:
        failed: The instants of the calls while it was down.
    """

    def __init__(self, rate: float, status: int) -> None:
        super().__init__(rate)
        self.is_down = False
        self.failed: list[float] = []
        self._status = status

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        if self.is_down:
            self.failed.append(trio.current_time())
            await trio.sleep(self.latency / 10)
            raise ConnectionRefusedError
        try:
            return await super().__call__(value)
        except StatusError:
            raise StatusError(self._status) from None


def test_tasks_share_the_rate_of_a_service_with_few_refusals() -> None:
    service = RateCappedService(125)
    simulate(20, service, [Auto(most=100) for _ in range(4)])
    assert len(service.admitted) >= 0.96 * 125 * 20
    assert between(service.refused, 10, inf) <= 0.05 * between(service.admitted, 10, inf)


@pytest.mark.thorough
def test_a_task_with_most_of_the_rows_takes_over_the_rate_of_the_others() -> None:
    rate, seconds = 120, 40
    rows = [3 * rate * seconds // 4, *[rate * seconds // 12] * 3]

    def share_of_perfect(gates: list[GatesOfTask], seed: int = 1) -> float:
        return seconds / simulate(10 * seconds, RateCappedService(rate), gates, rows=rows, seed=seed)

    assert median(share_of_perfect([Auto(most=100) for _ in rows], seed) for seed in range(1, 6)) >= 0.8
    assert share_of_perfect([RateLimit(rate / 4) for _ in rows]) == pytest.approx(0.33, abs=0.02)


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


async def test_no_call_starts_during_a_retry_after(autojump_clock: MockClock) -> None:
    async def serve(value: int) -> int:
        await trio.sleep(0.1)
        if value == 50:
            raise StatusError(429, retry_after=30.0)
        return value

    recorder = Recorder(serve)
    gate = Auto(most=4)

    async def run(values: range) -> None:
        async with unordered_wait(values, recorder, capacity=4, timeout=99.0, gate=gate, on_error="skip") as results:
            async for _ in results:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, range(200))
        nursery.start_soon(run, range(200, 400))
    answered = next(call.ended for call in recorder.calls if call.value == 50)
    assert answered is not None
    later = [call.started for call in recorder.calls if call.started > answered]
    assert answered + 30.0 <= min(later) <= answered + 33.0


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


@pytest.mark.variation
@pytest.mark.parametrize(("status", "most_refused"), thorough_except([(503, 0.17)], [(429, 0.04), (503, 0.17)]))
def test_one_gate_stands_a_storm_of_refusals_and_an_outage(status: int, most_refused: float) -> None:
    """A rate that is answered with 503 looks like calls that fail by chance, of which up to a fifth is accepted."""
    service = StormService(125, status)

    async def control() -> None:
        await trio.sleep_until(12)
        service.is_down = True
        await trio.sleep_until(20)
        service.is_down = False

    simulate(40, service, [Auto(most=100) for _ in range(4)], control=control)
    assert len(service.refused) <= most_refused * len(service.admitted)
    assert len(service.failed) <= 4 * (100 + 8)  # those that run when the outage begins, and probes
    assert between(service.admitted, 30, 40) >= 0.85 * 125 * 10


@pytest.mark.variation
async def test_a_stream_goes_on_during_an_outage_if_the_breaker_fails_its_rows(autojump_clock: MockClock) -> None:
    began = trio.current_time()

    async def serve(arrival: float) -> float:
        await trio.sleep(0.1)
        if 20.0 <= trio.current_time() - began < 80.0:
            raise ConnectionRefusedError
        return arrival

    async def rows() -> AsyncIterator[float]:
        for number in range(2_500):
            await trio.sleep_until(began + number / 25)
            yield began + number / 25

    delays: list[float] = []
    options: Any = {"capacity": 20, "timeout": 9.0, "retry": ExponentialBackoff(4, 0.1, 2.0)}
    async with unordered_wait(rows(), serve, gate=CircuitBreaker("fail"), on_error="skip", **options) as results:
        delays.extend([trio.current_time() - arrival async for arrival in results])
        failed = results.statistics().failed
    assert 0.9 * 60 * 25 <= failed <= 1.2 * 60 * 25
    assert max(delays) < 9.0


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
