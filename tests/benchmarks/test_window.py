"""A rate counts the results within its window. On the virtual clock it is exact."""

from __future__ import annotations

import pytest

from benchmarks._backends import TRIO
from benchmarks._contenders import FLOOR, Contender, ours
from benchmarks._latencies import mean_latency
from benchmarks._window import rate

pytestmark = pytest.mark.slow

CAPACITY = 20
LIMIT = CAPACITY / mean_latency()


@pytest.mark.parametrize("contender", [FLOOR, ours("unordered", mode="unordered")], ids=lambda each: each.name)
def test_who_keeps_all_slots_busy_reaches_the_limit(contender: Contender) -> None:
    found = rate(contender, CAPACITY, 10.0, is_virtual=True)
    assert found.results == pytest.approx(LIMIT, rel=0.1)
    assert found.peak == CAPACITY


def test_who_holds_slots_for_the_order_does_not() -> None:
    found = rate(ours("ordered", mode="ordered", buffer=CAPACITY), CAPACITY, 20.0, is_virtual=True)
    assert found.results < 0.5 * LIMIT


def test_the_clock_jumps_to_the_next_deadline() -> None:
    instants: list[float] = []

    async def sleeps() -> None:
        for _ in range(2):
            began = TRIO.time()
            await TRIO.sleep(3_600.0)
            instants.append(TRIO.time() - began)

    TRIO.run(sleeps, is_virtual=True)
    assert instants == pytest.approx([3_600.0, 3_600.0])
