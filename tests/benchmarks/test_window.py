"""A rate counts the results within its window. On the virtual clock it is exact."""

from __future__ import annotations

import pytest

from benchmarks._contenders import FLOOR, Contender, ours
from benchmarks._latencies import mean_latency, seconds_of
from benchmarks._window import rate, seconds_to_first

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


def test_the_first_result_comes_when_its_call_ends() -> None:
    def first(mode: str) -> float:
        return seconds_to_first(ours(mode, mode=mode), CAPACITY, 1_000, is_virtual=True)

    assert first("ordered") == pytest.approx(seconds_of(0))
    assert first("unordered") == pytest.approx(min(map(seconds_of, range(CAPACITY))))


def test_without_a_stream_the_first_result_comes_at_the_end() -> None:
    assert seconds_to_first(FLOOR, 1, 100, is_virtual=True) == pytest.approx(sum(map(seconds_of, range(100))))
