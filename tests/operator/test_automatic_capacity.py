"""`capacity="auto"`: the option, and what the gate finds in front of services of each kind, on virtual time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import pytest
import trio

from benchmarks.resilience._run import RETRY, reproducible, simulate
from benchmarks.resilience._services import AnyService, Settings, StatusError, gamma
from tests.support import variation_except
from trio_asyncio_io import AsyncWaitOperator, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io.gates import Auto, Gate, Outcome, PerKey, RateLimit
from trio_asyncio_io.progress import summary
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Scripted, Step
from trio_asyncio_io.trace import TraceRecorder

pytestmark = pytest.mark.usefixtures("no_cpu_time")

POLITE = 0.05  # refusals a record

Latency = Callable[[Random], float]


def uniform(random: Random) -> float:
    """A latency of 0.2 s, give or take 5 %."""
    return 0.2 * random.uniform(0.95, 1.05)


class Service:
    """A simulated service.

    Args:
        latency: Of an admitted call.
        refusal: Seconds that a refusal takes.
        at_once: Refuses further calls with 503.
        rate, burst: Calls a second that a bucket of this size admits; it refuses others with 429.
        servers: Calls beyond them wait. None: each call has its own server.
        failing: The share of calls that fail with 503.
        down: (start, end) of an outage.
    """

    def __init__(
        self,
        latency: Latency,
        *,
        refusal: float = 0.02,
        at_once: float = float("inf"),
        rate: float = float("inf"),
        burst: float = 20.0,
        servers: int | None = None,
        failing: float = 0.0,
        down: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.random = Random(1)
        self.latency, self.refusal, self.at_once, self.failing, self.down = latency, refusal, at_once, failing, down
        self.rate, self.burst = rate, burst
        self.tokens, self.at = burst, 0.0
        self.free = None if servers is None else [0.0] * servers
        self.running = self.refused = 0

    async def __call__(self, value: int) -> int:
        now = trio.current_time()
        status = self._status(now)
        if status:
            self.refused += 1
            await trio.sleep(self.refusal)
            raise StatusError(status)
        seconds = self.latency(self.random)
        begin = now if self.free is None else max(now, heappop(self.free))
        if self.free is not None:
            heappush(self.free, begin + seconds)
        self.running += 1
        try:
            await trio.sleep(begin + seconds - now)
        finally:
            self.running -= 1
        return value

    def _status(self, now: float) -> int:
        self.tokens, self.at = min(self.burst, self.tokens + (now - self.at) * self.rate), now
        if self.down[0] <= now < self.down[1] or self.random.random() < self.failing or self.running >= self.at_once:
            return 503
        if self.tokens < 1:
            return 429
        self.tokens -= 1
        return 0


def fixed(seconds: float) -> Latency:
    return lambda random: seconds


def exponential(seconds: float) -> Latency:
    return lambda random: random.expovariate(1 / seconds)


async def run(service: Service, records: int, *, capacity: Any = "auto") -> tuple[float, float, Any]:
    """Virtual seconds, refusals a record, and the results."""
    began = trio.current_time()
    with reproducible():
        async with unordered_wait(range(records), service, capacity=capacity, timeout=1e6, retry=RETRY) as results:
            assert len([result async for result in results]) == records
    return trio.current_time() - began, service.refused / records, results


async def test_a_number_of_calls_is_found_exactly_and_explained(autojump_clock: trio.testing.MockClock) -> None:
    seconds, refused, results = await run(Service(fixed(0.1), at_once=60, refusal=0.005), 6_000)
    assert seconds < 1.1 * 6_000 * 0.1 / 60
    assert refused <= POLITE
    assert results.statistics().finding.startswith("60 calls at once: the service refused one more ")
    verdict = results.explain()
    assert "60 calls at once: the service refused one more" in str(verdict)
    assert (verdict.limit, verdict.advice.partition(". ")[2]) == (
        "gate",
        "If the service allows more, the gate finds it; else accept the time.",
    )


async def test_what_it_found_is_in_the_line_the_display_the_trace_and_the_report(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    service, path = Service(fixed(0.1), at_once=20, refusal=0.005), tmp_path / "report.html"
    trace = TraceRecorder()
    options: Any = {"capacity": "auto", "timeout": 1e6, "retry": RETRY}
    with reproducible(), report(path) as observer:
        async with unordered_wait(range(1_000), service, observer=observer, **options) as results:
            assert len([result async for result in results]) == 1_000
        async with unordered_wait(range(1_000), service, observer=trace, **options) as traced:
            assert len([result async for result in traced]) == 1_000
    statistics = results.statistics()
    assert statistics.finding.startswith("20 calls at once: the service refused one more")
    assert statistics.finding in summary(statistics, 1.0)
    assert statistics.finding in statistics._repr_html_()
    assert trace.trace()["otherData"]["finding"] == traced.statistics().finding
    assert statistics.finding in path.read_text(encoding="utf-8")


@pytest.mark.slow
async def test_a_rate_with_a_fixed_latency_is_not_taken_for_a_number(autojump_clock: trio.testing.MockClock) -> None:
    seconds, refused, results = await run(Service(fixed(2.0), rate=60.0), 3_000)
    assert seconds < 1.4 * 3_000 / 60
    assert refused <= POLITE
    assert " calls a second: the service refuses more" in results.statistics().finding


@pytest.mark.variation
@pytest.mark.slow
async def test_a_bucket_of_short_calls_is_paced(autojump_clock: trio.testing.MockClock) -> None:
    seconds, refused, _ = await run(Service(exponential(0.1), rate=200.0), 3_000)
    assert seconds < 1.2 * 3_000 / 200
    assert refused <= POLITE


@pytest.mark.slow
def test_few_calls_are_made_for_the_rest_of_a_window_that_is_closed() -> None:
    service = AnyService(Settings(exponential(1.0), refusal=0.005, window=26), 1)
    simulate(1e4, service, [Auto()], capacity=800, rows=[1_000])
    assert service.refused <= POLITE * 1_000


@pytest.mark.slow
@pytest.mark.parametrize("seconds_of_a_refusal", [0.005, 0.02, 0.1])
async def test_slow_refusals_cost_time_and_not_manners(
    autojump_clock: trio.testing.MockClock, seconds_of_a_refusal: float
) -> None:
    _, refused, _ = await run(Service(exponential(0.3), at_once=20, refusal=seconds_of_a_refusal), 2_000)
    assert refused <= POLITE


@pytest.mark.slow
@pytest.mark.parametrize("tasks", variation_except([4], [2, 4]))
@pytest.mark.parametrize(
    ("latency", "refusal"),
    [
        pytest.param(exponential(0.05), 0.005, marks=pytest.mark.variation),
        (exponential(0.3), 0.02),
        pytest.param(fixed(0.1), 0.02, marks=pytest.mark.variation),
    ],
)
def test_several_tasks_at_one_number_keep_their_manners(tasks: int, latency: Latency, refusal: float) -> None:
    service = Service(latency, at_once=60, refusal=refusal)
    simulate(1e4, service, [Auto() for _ in range(tasks)], capacity=800, rows=[1_500] * tasks)
    assert service.refused <= POLITE * 1_500 * tasks


class Answers(Gate):
    """Holds calls back until an instant, and measures the longest time without an answer."""

    def __init__(self, begin: float) -> None:
        self.begin = self.last = begin
        self.longest = 0.0

    def delay(self, now: float, weight: float) -> float:
        return max(0.0, self.begin - now)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        if outcome.kind == "ok":
            self.longest, self.last = max(self.longest, now - self.last), now


@pytest.mark.slow
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("number", "tasks"), variation_except([(2, 2), (10, 8)], [(2, 2), (5, 4), (10, 8), (20, 16)]))
def test_no_task_takes_all_places_of_a_service(number: int, tasks: int, status: int) -> None:
    service = AnyService(Settings(gamma(1.0), at_once=number, status=status), 1)
    answers = [Answers(0.05 * task) for task in range(tasks)]
    simulate(290.0, service, [[Auto(most=100), each] for each in answers], capacity=100)
    assert max(max(each.longest, 290.0 - each.last) for each in answers) < 150.0  # half of the time to give up


def seconds_with_failures(share: float, settings: Settings, rows: int) -> float:
    """The median time of a job. This share of its calls fails with 503, after a random part of 0.2 s or of 0.8 s."""
    times = []
    for seed in range(1, 8):
        service, random = AnyService(settings, seed), Random(seed + 7)

        async def call(value: int, service: AnyService = service, random: Random = random) -> int:
            if random.random() < share:
                await trio.sleep(0.2 * random.random() * (4 if random.random() < 0.2 else 1))
                raise StatusError(503)
            return await service(value)

        times.append(simulate(1e4, call, [Auto()], capacity=800, rows=[rows], seed=seed))
    return median(times)


@pytest.mark.slow
def test_failures_that_take_as_long_as_calls_hardly_hold_other_calls_back() -> None:
    assert seconds_with_failures(0.01, Settings(uniform), 10_000) < 15.0  # 20 s with 100 at once
    assert seconds_with_failures(0.03, Settings(uniform), 10_000) < 40.0


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1])
def test_5xx_by_chance_do_not_cut_a_rate_that_the_service_answers_with_429(share: float) -> None:
    assert seconds_with_failures(share, Settings(uniform, rate=60.0, burst=10.0), 1_200) < 25.0  # 20 s at the rate


@pytest.mark.slow
def test_a_429_with_a_time_to_wait_stays_a_rate_even_if_it_refuses_single_calls() -> None:
    times = []
    for seed in range(1, 6):
        service = AnyService(Settings(gamma(3.0), rate=10.0, burst=1.0, refusal=0.005, hint=1.0), seed)
        times.append(simulate(1e4, service, [Auto(most=100)], rows=[500], seed=seed))
        assert service.refused <= POLITE * 500
    assert median(times) < 240.0


@pytest.mark.slow
async def test_a_service_without_a_limit_gets_the_maximum(autojump_clock: trio.testing.MockClock) -> None:
    seconds, _, results = await run(Service(exponential(2.0)), 8_000)
    assert seconds < 0.3 * 8_000 * 2.0 / 100  # with the default capacity
    assert results.statistics().peak_running == 800


@pytest.mark.slow
async def test_more_calls_than_servers_only_wait(autojump_clock: trio.testing.MockClock) -> None:
    seconds, _, results = await run(Service(fixed(0.07), servers=111), 6_000)
    assert seconds < 1.15 * 6_000 * 0.07 / 111
    assert results.statistics().latency.p50 < 2 * 0.07


@pytest.mark.variation
@pytest.mark.slow
async def test_short_answers_that_come_first_are_not_the_latency(autojump_clock: trio.testing.MockClock) -> None:
    seconds, _, _ = await run(Service(lambda random: 2.0 if random.random() < 0.2 else 0.05), 8_000)
    assert seconds < 0.3 * 8_000 * 0.44 / 100  # with the default capacity


@pytest.mark.slow
@pytest.mark.parametrize("share", variation_except([0.03], [0.01, 0.03, 0.1]))
async def test_calls_that_fail_at_any_load_hold_no_other_call_back(
    autojump_clock: trio.testing.MockClock, share: float
) -> None:
    seconds, refused, _ = await run(Service(exponential(0.5), failing=share), 8_000)
    assert seconds < 0.5 * 8_000 * 0.5 / 100  # with the default capacity
    assert refused <= POLITE + share


@pytest.mark.slow
async def test_an_outage_costs_few_calls_and_little_time(autojump_clock: trio.testing.MockClock) -> None:
    seconds, refused, _ = await run(Service(exponential(0.1), down=(0.5, 5.5)), 6_000)
    assert seconds < 5.0 + 6_000 * 0.1 / 100
    assert refused <= POLITE + 800 / 6_000  # all running calls fail when the outage begins


async def test_the_next_operator_begins_with_what_the_last_one_found(autojump_clock: trio.testing.MockClock) -> None:
    gate, service = Auto(), Service(fixed(0.1), at_once=60, refusal=0.005)
    await run(service, 3_000, capacity=gate)
    service.refused = 0
    _, refused, _ = await run(service, 3_000, capacity=gate)
    assert refused <= 0.005


@pytest.mark.parametrize(("keys", "is_shown"), [(1, True), (2, False)])
async def test_what_the_gate_of_the_only_key_has_found_is_shown(
    autojump_clock: trio.testing.MockClock, keys: int, is_shown: bool
) -> None:
    service = Service(fixed(0.1), at_once=20, refusal=0.005)
    gate = PerKey(Auto(), key=lambda value: value % keys)
    async with unordered_wait(range(500), service, capacity=800, timeout=1e6, retry=RETRY, gate=gate) as results:
        assert len([result async for result in results]) == 500
    finding = results.statistics().finding
    assert finding.startswith("20 calls at once: the service refused one more") if is_shown else finding == ""


async def test_operators_that_share_a_gate_share_its_limit(autojump_clock: trio.testing.MockClock) -> None:
    gate, service, peaks = Auto(start=10, most=10), Service(fixed(1.0)), deque([0])

    async def watched(value: int) -> int:
        peaks.append(service.running + 1)
        return await service(value)

    async def one() -> None:
        async with ordered_wait(range(40), watched, timeout=60.0, capacity=gate) as results:
            assert [each async for each in results] == list(range(40))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        nursery.start_soon(one)
    assert max(peaks) == 10


async def test_all_operators_take_the_word(autojump_clock: trio.testing.MockClock) -> None:
    function = Scripted[int](default=Step(0.1))
    async with ordered_wait(range(50), function, timeout=5.0, capacity="auto") as ordered:
        assert [each async for each in ordered] == list(range(50))
    async with keyed_wait(
        range(50), function, key=lambda value: value % 5, timeout=5.0, capacity=Auto(most=50)
    ) as keyed:
        assert {each async for each in keyed} == set(range(50))
    async with AsyncWaitOperator(function, timeout=5.0, capacity="auto") as operator:
        await operator.put(1)
        operator.end_input()
        assert [each async for each in operator.output] == [1]


async def test_other_gates_work_beside_it(autojump_clock: trio.testing.MockClock) -> None:
    began = trio.current_time()
    gates = [RateLimit(100.0), PerKey(Auto(most=5), key=lambda value: value % 2)]
    async with unordered_wait(
        range(200), Scripted(default=Step(0.01)), timeout=5.0, capacity="auto", gate=gates
    ) as results:
        assert len([each async for each in results]) == 200
    assert trio.current_time() - began == pytest.approx(1.99 + 0.01, abs=0.02)
    assert next(iter(results.statistics().seconds_by_gate)).startswith("RateLimit")
