"""A cluster's rate in front of a simulated service, with the real operator on a virtual clock.

The long form has 64 tasks. tests/benchmarks runs those with skewed rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from benchmarks.resilience._counting import between, most_in_a_second
from benchmarks.resilience._leases import SimulatedSource, leases
from benchmarks.resilience._run import GatesOfTask, simulate
from benchmarks.resilience._services import RateCappedService
from tests.support import thorough_except
from udfs._limits.cluster_gates import ClusterShare

pytestmark = pytest.mark.slow


def calls_of(service: RateCappedService) -> list[float]:
    return sorted([*service.admitted, *service.refused])


@pytest.mark.variation
@pytest.mark.parametrize(
    ("tasks", "rate", "seconds"), [(16, 125, 10), pytest.param(64, 500, 180, marks=pytest.mark.thorough)]
)
def test_leases_of_many_tasks_are_almost_never_refused(tasks: int, rate: float, seconds: float) -> None:
    service = RateCappedService(rate)
    simulate(seconds, service, leases(SimulatedSource(), rate, tasks))
    assert len(service.refused) <= 0.01 * len(service.admitted)
    assert len(service.admitted) >= 0.95 * rate * seconds
    assert most_in_a_second(calls_of(service)) <= rate


def skewed(gates: Sequence[GatesOfTask], rows: int) -> float:
    """The part of the rate of 124 when one of four tasks has three quarters of the rows."""
    numbers = [rows * 3 // 4, *[rows // 12] * 3]
    return sum(numbers) / 124 / simulate(1e4, RateCappedService(124), gates, rows=numbers)


def test_leases_follow_the_rows() -> None:
    assert skewed(leases(SimulatedSource(), 124, 4), 4_000) >= 0.95


@pytest.mark.variation
def test_shares_do_not() -> None:
    assert 0.30 <= skewed([ClusterShare(31) for _ in range(4)], 1_000) <= 0.34


async def refuse() -> None:
    raise ConnectionRefusedError


@pytest.mark.parametrize("respond", [refuse, trio.sleep_forever], ids=["killed", "hangs"])
@pytest.mark.parametrize(
    ("tasks", "rate", "away"), [(4, 124, 8.0), pytest.param(16, 496, 20.0, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize(
    "comes_back", thorough_except(["without its memory"], ["never", "with its memory", "without its memory"])
)
def test_calls_wait_while_the_source_is_away_and_no_second_has_more_than_the_rate(
    comes_back: str, tasks: int, rate: int, away: float, respond: Any
) -> None:
    """The thread on the driver never comes back, a Redis does."""
    source = SimulatedSource()
    service = RateCappedService(rate)

    async def control() -> None:
        await trio.sleep(5.0)
        source.respond = respond
        await trio.sleep(away)
        if comes_back == "without its memory":
            source.restart()
        elif comes_back == "with its memory":
            source.respond = trio.lowlevel.checkpoint

    simulate(15.0 + away, service, leases(source, rate, tasks), control=control)
    calls = calls_of(service)
    assert most_in_a_second(calls) <= rate
    assert not service.refused
    assert between(calls, 5.5, 5.0 + away) == 0
    back = 0 if comes_back == "never" else 0.95 * 4 * rate
    assert between(calls, 11.0 + away, 15.0 + away) >= back
