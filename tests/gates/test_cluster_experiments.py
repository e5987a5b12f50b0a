"""A cluster's rate in front of a simulated service, with the real operator on a virtual clock.

The long forms are `thorough`: 64 tasks, or 16 with three quarters of the rows in 4 of them.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio

from benchmarks.resilience._leases import SimulatedSource, leases, seconds_for_rows
from benchmarks.resilience._run import simulate
from benchmarks.resilience._services import RateCappedService
from tests.support import thorough_except
from tests.udfs.rate.leasing import most_in_a_second
from trio_asyncio_io.gates import AdaptiveRate, Gate
from udfs._rate.share import ClusterShare

pytestmark = pytest.mark.slow


def calls_of(service: RateCappedService) -> list[float]:
    return sorted([*service.admitted, *service.refused])


def between(instants: list[float], start: float, end: float) -> int:
    return sum(start <= instant < end for instant in instants)


@pytest.mark.parametrize(
    ("tasks", "rate", "seconds"), [(16, 125, 10), pytest.param(64, 500, 180, marks=pytest.mark.thorough)]
)
def test_leases_of_many_tasks_are_almost_never_refused(tasks: int, rate: float, seconds: float) -> None:
    service = RateCappedService(rate)
    simulate(seconds, service, leases(SimulatedSource(rate, tasks), rate, tasks))
    assert len(service.refused) <= 0.01 * len(service.admitted)
    assert len(service.admitted) >= 0.97 * rate * seconds
    assert most_in_a_second(calls_of(service)) <= rate


def skewed(gates: str, rate: int, tasks: int, rows: int) -> float:
    """The part of the possible rate when a quarter of the tasks have three quarters of the rows."""
    made: dict[str, list[Gate | None]] = {
        "lease": leases(SimulatedSource(rate, tasks), rate, tasks),
        "share": [ClusterShare(rate // tasks) for _ in range(tasks)],
        "adaptive": [AdaptiveRate(growth=1.0) for _ in range(tasks)],
    }
    heavy = tasks // 4
    numbers = [rows * 3 // 4 // heavy] * heavy + [rows // 4 // (tasks - heavy)] * (tasks - heavy)
    service = RateCappedService(rate)
    return sum(numbers) / rate / seconds_for_rows(service, made[gates], numbers)


SIZES = [(124, 4, 4_000), pytest.param(496, 16, 48_000, marks=pytest.mark.thorough)]


@pytest.mark.parametrize(("rate", "tasks", "rows"), SIZES)
def test_leases_follow_the_rows(rate: int, tasks: int, rows: int) -> None:
    assert skewed("lease", rate, tasks, rows) >= 0.97


@pytest.mark.parametrize(("rate", "tasks", "rows"), SIZES)
def test_shares_do_not(rate: int, tasks: int, rows: int) -> None:
    assert 0.30 <= skewed("share", rate, tasks, rows // 4) <= 0.34


@pytest.mark.thorough
def test_adaptive_rates_follow_the_rows_after_some_refusals() -> None:
    assert skewed("adaptive", 500, 16, 48_000) >= 0.88


async def refuse() -> None:
    raise ConnectionRefusedError


@pytest.mark.parametrize("respond", [refuse, trio.sleep_forever], ids=["killed", "hangs"])
@pytest.mark.parametrize(
    ("tasks", "rate", "away"), [(4, 124, 8.0), pytest.param(16, 496, 20.0, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize(
    "comes_back", thorough_except(["without its memory"], ["never", "with its memory", "without its memory"])
)
def test_no_second_has_more_calls_than_the_rate_when_the_source_is_away(
    comes_back: str, tasks: int, rate: int, away: float, respond: Any
) -> None:
    """The thread on the driver never comes back, a Redis does."""
    source = SimulatedSource(rate, tasks)
    service = RateCappedService(rate)

    async def control() -> None:
        await trio.sleep(5.0)
        source.respond = respond
        await trio.sleep(away)
        if comes_back == "without its memory":
            source.restart()
        elif comes_back == "with its memory":
            source.respond = trio.lowlevel.checkpoint

    simulate(8.0 + away, service, leases(source, rate, tasks), control=control)
    calls = calls_of(service)
    assert most_in_a_second(calls) <= rate
    assert not service.refused
    assert between(calls, 6.0, 7.0) >= 0.9 * rate  # the shares of all tasks
    assert between(calls, 7.0 + away, 8.0 + away) >= 0.95 * rate
