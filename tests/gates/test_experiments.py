"""Gates in front of simulated services, with the real operator on a virtual clock: short forms of the experiments.

Where a service's rate is divided by four, so is the number of tasks. tests/benchmarks runs the long forms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from math import inf
from statistics import fmean
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from benchmarks.resilience._capacities import measure_knee
from benchmarks.resilience._rates import measure
from benchmarks.resilience._run import GatesOfTask, simulate
from benchmarks.resilience._services import (
    FixedWindowService,
    KneeService,
    LimitedService,
    RateCappedService,
    SlidingWindowService,
    StatusError,
)
from benchmarks.resilience._weights import measure_weights
from tests.support import thorough_except
from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import AdaptiveCapacity, AdaptiveRate, CircuitBreaker, RateLimit
from trio_asyncio_io.testing import Recorder

pytestmark = pytest.mark.slow


class RefusingService(LimitedService):
    """Refuses everything for the last `lasts` of each `every` seconds, and nothing else.

    The other options are those of `LimitedService`.
    """

    def __init__(self, every: float, lasts: float, **options: Any) -> None:
        super().__init__(**options)
        self._every = every
        self._lasts = lasts

    def admits(self, now: float) -> bool:
        """Whether it admits calls at this moment."""
        return now % self._every < self._every - self._lasts


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


def between(instants: list[float], start: float, end: float) -> int:
    return sum(start <= instant < end for instant in instants)


def test_tasks_share_the_rate_of_a_service_with_few_refusals() -> None:
    service = RateCappedService(125)
    simulate(20, service, [AdaptiveRate(growth=1.0) for _ in range(4)])
    assert len(service.admitted) >= 0.96 * 125 * 20
    assert between(service.refused, 10, inf) <= 0.05 * between(service.admitted, 10, inf)


@pytest.mark.thorough
def test_a_task_with_most_of_the_rows_takes_over_the_rate_of_the_others() -> None:
    rate, seconds = 120, 40
    rows = [3 * rate * seconds // 4, *[rate * seconds // 12] * 3]

    def share_of_perfect(gates: list[GatesOfTask]) -> float:
        return seconds / simulate(10 * seconds, RateCappedService(rate), gates, rows=rows)

    assert share_of_perfect([AdaptiveRate(growth=1.0) for _ in rows]) >= 0.88
    assert share_of_perfect([RateLimit(rate / 4) for _ in rows]) == pytest.approx(0.33, abs=0.02)


def test_the_rate_follows_a_dip_and_comes_back() -> None:
    service = RateCappedService(120)

    async def control() -> None:
        await trio.sleep_until(8.0)
        service.rate = 24.0
        await trio.sleep_until(18.0)
        service.rate = 120.0

    simulate(24.0, service, [AdaptiveRate() for _ in range(4)], control=control)
    assert between(service.admitted, 10, 18) >= 0.75 * 24 * 8  # 4 calls/s of a task do not divide well
    assert between(service.admitted, 23, 24) >= 0.8 * 120


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


def test_the_capacity_stays_near_the_knee_of_a_service() -> None:
    service = KneeService(13, 0.02, queue=26)
    in_flight: list[int] = []

    async def control() -> None:
        while True:
            await trio.sleep(0.1)
            in_flight.append(service.running)

    simulate(10, service, [AdaptiveCapacity(8, 100) for _ in range(2)], control=control)
    assert len(service.answered) >= 0.97 * 13 / 0.02 * 10
    late = in_flight[len(in_flight) // 2 :]
    assert sum(late) <= 1.5 * 13 * len(late)
    assert service.refused <= 0.02 * len(service.answered)


def test_the_capacity_reaches_its_maximum_if_the_service_is_only_far_away() -> None:
    service = KneeService(1_000, 0.205)
    simulate(40, service, [AdaptiveCapacity(8, 24)], capacity=24)
    possible = 24 / 0.205
    assert between(service.answered, 20, 40) >= 0.95 * possible * 20
    assert len(service.answered) >= 0.85 * possible * 40


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


@pytest.mark.parametrize("status", thorough_except([503], [429, 503]))
def test_three_gates_stand_a_storm_of_refusals_and_an_outage_together(status: int) -> None:
    service = StormService(125, status)

    async def control() -> None:
        await trio.sleep_until(12)
        service.is_down = True
        await trio.sleep_until(20)
        service.is_down = False

    gates = [(AdaptiveRate(growth=1.0), AdaptiveCapacity(8, 100), CircuitBreaker()) for _ in range(4)]
    simulate(40, service, gates, control=control)
    assert len(service.refused) <= 0.05 * len(service.admitted)
    assert len(service.failed) <= 4 * (20 + 8)  # those after which a circuit opens, and probes
    assert between(service.admitted, 30, 40) >= 0.9 * 125 * 10


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


LIMITS = {
    "bucket": lambda: RateCappedService(80, retry_after=1.0),
    "fixed window": lambda: FixedWindowService(80, retry_after=1.0),
    "sliding window": lambda: SlidingWindowService(80, retry_after=1.0),
}


@pytest.mark.parametrize(
    ("limit", "tasks"),
    thorough_except([("fixed window", 1), ("sliding window", 4)], list(product(LIMITS, [1, 4]))),
)
def test_a_retry_after_of_a_second_costs_little_however_the_service_counts(limit: str, tasks: int) -> None:
    share, refused = measure(LIMITS[limit](), tasks, 80, 40.0)
    assert share >= 0.9
    assert refused <= 0.035


def test_a_service_that_refuses_everything_now_and_then_is_not_taken_for_a_slow_one() -> None:
    service = RefusingService(20.0, 2.0)
    share, refused = measure(service, 1, 90, 80.0, warm_up=20.0, capacity=5)
    assert share >= 0.9
    assert refused <= 0.018


def test_a_limit_of_one_call_per_second_is_refused_seldom() -> None:
    share, refused = measure(RateCappedService(1.0, burst=1.0), 1, 1.0, 300.0, warm_up=30.0)
    assert share >= 0.85
    assert refused <= 0.3


def test_several_tasks_in_front_of_one_call_per_second_are_refused_about_once_per_record() -> None:
    _, refused = measure(RateCappedService(1.0, burst=1.0), 4, 1.0, 300.0, warm_up=30.0)
    assert refused <= 1.2


def test_calls_of_two_seconds_do_not_make_the_rate_late() -> None:
    share, _ = measure(RateCappedService(30, 2.0), 1, 30, 60.0, capacity=120)
    assert share >= 0.95


@pytest.mark.parametrize(
    ("start", "tasks", "most"),
    thorough_except([(60, 1, 1.2), (8, 4, 1.6)], [(60, 1, 1.2), (100, 1, 1.2), (8, 4, 1.6)]),
)
def test_the_capacity_stays_near_a_knee_below_the_start(start: int, tasks: int, most: float) -> None:
    throughput, in_flight = measure_knee(lambda: AdaptiveCapacity(start, 100), tasks, 20, 0.1, 45.0)
    assert throughput >= 0.95
    assert in_flight <= most


def test_a_start_far_above_the_knee_and_just_below_the_maximum_comes_down() -> None:
    throughput, in_flight = measure_knee(lambda: AdaptiveCapacity(90, 100), 1, 8, 0.1, 45.0)
    assert throughput >= 0.95
    assert in_flight <= 1.3


@pytest.mark.parametrize("seeds", [[2], pytest.param([1, 2, 3], marks=pytest.mark.thorough)], ids=["one run", "three"])
def test_tasks_whose_first_steps_are_refused_come_down_to_the_knee_together(seeds: list[int]) -> None:
    """Four tasks start at 1.6 x the knee, and a step of all of them overflows the queue of the service."""
    found = []
    for seed in seeds:
        gates = [AdaptiveCapacity(8, 100) for _ in range(4)]
        throughput, in_flight = measure_knee(gates.pop, 4, 20, 0.1, 60.0, queue=40, seed=seed)
        assert throughput >= 0.95
        found.append(in_flight)
    assert fmean(found) <= 1.6


def test_the_capacity_finds_a_knee_within_twenty_seconds() -> None:
    service = KneeService(20, 0.1)
    simulate(20.0, service, [AdaptiveCapacity(8, 100)])
    assert len(service.answered) >= 0.9 * 200 * 20


@pytest.mark.parametrize("latency", [0.1, 0.5])
def test_estimates_that_are_ten_times_too_high_cost_little_and_the_limit_holds(latency: float) -> None:
    gate = RateLimit(1_000.0, burst=1_000.0, weight=lambda value: 500.0)
    share, most = measure_weights(lambda: gate, latency, 25.0)
    assert share >= 0.9
    assert most <= 1.02
