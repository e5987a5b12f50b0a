"""A cluster's rate in front of a simulated service, with the real operator on a virtual clock.

The long form has 64 tasks. tests/benchmarks runs those with skewed rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.resilience._counting import most_in_a_second
from benchmarks.resilience._leases import SimulatedSource, leases
from benchmarks.resilience._run import GatesOfTask, simulate
from benchmarks.resilience._services import RateCappedService
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
