"""A rate counts the results within its window. On the virtual clock it is exact."""

from __future__ import annotations

import pytest

from benchmarks._contenders import ours
from benchmarks._latencies import mean_latency
from benchmarks._throughput import rate

pytestmark = pytest.mark.slow

CAPACITY = 20
LIMIT = CAPACITY / mean_latency()


def test_who_keeps_all_slots_busy_reaches_the_limit() -> None:
    found = rate(ours("unordered", mode="unordered"), CAPACITY, 10.0, is_virtual=True)
    assert found.results == pytest.approx(LIMIT, rel=0.1)
    assert found.peak == CAPACITY


def test_who_holds_slots_for_the_order_does_not() -> None:
    found = rate(ours("ordered", mode="ordered", buffer=CAPACITY), CAPACITY, 20.0, is_virtual=True)
    assert found.results < 0.5 * LIMIT
