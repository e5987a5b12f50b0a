"""Gates in front of simulated services, with the real operator on a virtual clock.

The long forms are `thorough`. Where a service's rate is divided by four, so is the number of tasks.
"""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from benchmarks.resilience._run import simulate
from benchmarks.resilience._services import KneeService, RateCappedService, StatusError
from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import AdaptiveCapacity, AdaptiveRate, CircuitBreaker, Gate, RateLimit
from trio_asyncio_io.testing import Recorder

pytestmark = pytest.mark.slow


def between(instants: list[float], start: float, end: float) -> int:
    return sum(start <= instant < end for instant in instants)


@pytest.mark.parametrize(
    ("tasks", "rate", "seconds"), [(4, 125, 20), pytest.param(16, 500, 180, marks=pytest.mark.thorough)]
)
def test_tasks_share_the_rate_of_a_service_with_few_refusals(tasks: int, rate: float, seconds: float) -> None:
    service = RateCappedService(rate)
    simulate(seconds, service, [AdaptiveRate(growth=1.0) for _ in range(tasks)])
    assert len(service.admitted) >= 0.96 * rate * seconds
    assert between(service.refused, 10, inf) <= 0.05 * between(service.admitted, 10, inf)


@pytest.mark.thorough
def test_many_tasks_share_the_rate_of_a_service() -> None:
    service = RateCappedService(500)
    simulate(180, service, [AdaptiveRate() for _ in range(64)])
    assert between(service.refused, 10, inf) <= 0.10 * between(service.admitted, 10, inf)
    assert len(service.refused) <= 0.15 * len(service.admitted)


@pytest.mark.thorough
@pytest.mark.parametrize(("large", "small", "seconds"), [(1, 3, 40), (4, 12, 60)])
def test_few_tasks_with_most_of_the_rows_take_over_the_rate_of_the_others(large: int, small: int, seconds: int) -> None:
    rate, tasks = 30 * (large + small), large + small
    rows = [3 * rate * seconds // (4 * large)] * large + [rate * seconds // (4 * small)] * small

    def share_of_perfect(gates: list[Gate | None]) -> float:
        return seconds / simulate(10 * seconds, RateCappedService(rate), gates, rows=rows)

    assert share_of_perfect([AdaptiveRate(growth=1.0) for _ in range(tasks)]) >= 0.88
    assert share_of_perfect([RateLimit(rate / tasks) for _ in range(tasks)]) == pytest.approx(0.33, abs=0.02)


@pytest.mark.parametrize(
    ("tasks", "rate", "start", "end", "share"),  # 4 calls/s of a task do not divide well
    [(6, 120, 8, 18, 0.75), pytest.param(16, 500, 40, 80, 0.98, marks=pytest.mark.thorough)],
)
def test_the_rate_follows_a_dip_and_comes_back(tasks: int, rate: float, start: float, end: float, share: float) -> None:
    service = RateCappedService(rate)

    async def control() -> None:
        await trio.sleep_until(start)
        service.rate = rate / 5
        await trio.sleep_until(end)
        service.rate = rate

    simulate(end + 6, service, [AdaptiveRate() for _ in range(tasks)], control=control)
    assert between(service.admitted, start + 2, end) >= share * rate / 5 * (end - start - 2)
    assert between(service.admitted, end + 5, end + 6) >= 0.8 * rate


async def test_no_call_starts_during_a_retry_after(autojump_clock: MockClock) -> None:
    async def serve(value: int) -> int:
        await trio.sleep(0.1)
        if value == 50:
            raise StatusError(429, retry_after=30.0)
        return value

    recorder = Recorder(serve)
    gate = AdaptiveRate()

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


@pytest.mark.parametrize(
    ("tasks", "servers", "seconds"), [(2, 13, 10), pytest.param(8, 50, 60, marks=pytest.mark.thorough)]
)
def test_the_capacity_stays_near_the_knee_of_a_service(tasks: int, servers: int, seconds: float) -> None:
    service = KneeService(servers, 0.02, queue=2 * servers)
    in_flight: list[int] = []

    async def control() -> None:
        while True:
            await trio.sleep(0.1)
            in_flight.append(service.running)

    simulate(seconds, service, [AdaptiveCapacity(8, 100) for _ in range(tasks)], control=control)
    assert len(service.answered) >= 0.97 * servers / 0.02 * seconds
    late = in_flight[len(in_flight) // 2 :]
    assert sum(late) <= 1.5 * servers * len(late)
    assert service.refused <= 0.02 * len(service.answered)


@pytest.mark.parametrize(("maximum", "seconds"), [(24, 40), pytest.param(200, 60, marks=pytest.mark.thorough)])
def test_the_capacity_reaches_its_maximum_if_the_service_is_only_far_away(maximum: int, seconds: float) -> None:
    service = KneeService(1_000, 0.205)
    simulate(seconds, service, [AdaptiveCapacity(8, maximum)], capacity=maximum)
    possible = maximum / 0.205
    assert between(service.answered, 20, seconds) >= 0.95 * possible * (seconds - 20)
    assert len(service.answered) >= 0.85 * possible * seconds


def test_the_capacity_does_not_care_about_the_latency() -> None:
    service = KneeService(1_000, 0.1)

    async def control() -> None:
        for seconds in (0.3, 0.1):
            await trio.sleep(30)
            service.seconds = seconds

    simulate(80, service, [AdaptiveCapacity(4, 16)], capacity=16, control=control)
    for start, end, latency in ((20, 30, 0.1), (40, 60, 0.3), (70, 80, 0.1)):
        assert between(service.answered, start, end) >= 0.97 * 16 / latency * (end - start)


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
    starts = [call.started - began for call in recorder.calls]
    assert between(starts, 20.1, 80.0) <= 0.01 * 60 * 200
    assert between(starts, 90.0, 95.0) >= 0.9 * 5 * 200
