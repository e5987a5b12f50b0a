"""A task's share of a rate: mostly plain arithmetic, without a loop."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from udfs._limits.cluster_gates import ClusterShare


def starts_of(gate: ClusterShare, begin: float, idle: list[float], late: list[float]) -> list[float]:
    """The starts of calls, each of which comes after an idle time and starts a little late."""
    starts = []
    now = begin
    for seconds, lateness in zip(idle, late, strict=True):
        now += seconds
        if delay := gate.delay(now, 1.0):
            now += delay + lateness
        gate.started(now, 1.0)
        starts.append(now)
    return starts


@given(
    weights=st.lists(st.lists(st.floats(0.0, 3_000.0), min_size=1, max_size=30), min_size=1, max_size=3),
    share=st.sampled_from([0.01, 100.0, 1_000.0]),
)
def test_tasks_with_weights_start_at_most_their_share_and_one_call_in_any_second(
    weights: list[list[float]], share: float
) -> None:
    now, starts = 3.0, []
    for task in weights:
        gate = ClusterShare(share, weight=len, name="tokens")
        for weight in task:
            now += gate.delay(now, weight)
            gate.started(now, weight)
            starts.append((now, weight))
    most = share + len(weights) * max(weight for _, weight in starts)
    for first, _ in starts:
        assert sum(weight for start, weight in starts if first <= start < first + 1.0) <= most * (1 + 1e-9)


def test_a_call_that_weighs_less_than_its_estimate_delays_the_next_one_less() -> None:
    gate = ClusterShare(100.0, weight=len, name="tokens")
    now = gate.delay(5.0, 980.0) + 5.0
    gate.started(now, 980.0)
    assert gate.delay(now, 1.0) == pytest.approx(10.0)
    gate.correct(980.0, 98.0)
    assert gate.delay(now, 1.0) == pytest.approx(1.0)


def most_in_a_second(starts: list[float]) -> int:
    return max(sum(first <= start < first + 1.0 for start in starts) for first in starts)


def test_a_task_begins_with_an_empty_bucket() -> None:
    gate = ClusterShare(10)
    assert gate.delay(5.0, 1.0) == pytest.approx(1 / 9.8)


def test_a_busy_task_uses_its_share_but_for_two_percent() -> None:
    starts = starts_of(ClusterShare(10), 0.0, [0.0] * 980, [0.0] * 980)
    assert starts[-1] == pytest.approx(100.0)


def test_calls_that_start_a_little_late_do_not_delay_the_next_ones() -> None:
    starts = starts_of(ClusterShare(500), 0.0, [0.0] * 4_900, [0.009] * 4_900)
    assert starts[-1] == pytest.approx(10.0, abs=0.01)


@given(
    calls=st.integers(1, 40),
    tasks=st.lists(
        st.lists(st.tuples(st.floats(0.0, 0.3), st.sampled_from([0.0, 0.001, 0.2])), min_size=1, max_size=60),
        min_size=1,
        max_size=3,
    ),
)
def test_tasks_one_after_the_other_start_at_most_their_share_in_any_second(
    calls: int, tasks: list[list[tuple[float, float]]]
) -> None:
    starts: list[float] = []
    for task in tasks:
        begin = starts[-1] if starts else 3.0
        starts += starts_of(ClusterShare(calls), begin, [idle for idle, _ in task], [late for _, late in task])
    assert most_in_a_second(starts) <= calls


async def test_tasks_at_once_in_one_process_have_a_share_each_although_it_has_a_name(autojump_clock: MockClock) -> None:
    starts: list[float] = []

    async def call(_: int) -> None:
        starts.append(trio.current_time())

    async def task() -> None:
        share = ClusterShare(100.0, weight=lambda _: 1.0, name="tokens")
        async with unordered_wait(range(196), call, timeout=1.0, gate=share) as results:
            async for _ in results:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        nursery.start_soon(task)
    assert starts[-1] - starts[0] == pytest.approx(2.0, abs=0.02)
    assert most_in_a_second(starts) <= 200
