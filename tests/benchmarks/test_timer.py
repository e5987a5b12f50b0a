"""The timer wakes each sleeper at its time, and no cancelled one."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from benchmarks._timer import sleep


async def test_each_sleeper_wakes_at_its_own_time(autojump_clock: MockClock) -> None:
    woken: list[tuple[float, float]] = []

    async def one(seconds: float) -> None:
        await sleep(seconds)
        woken.append((seconds, trio.current_time()))

    async with trio.open_nursery() as nursery:
        for seconds in (3.0, 1.0, 2.0, 1.0, 0.0):
            nursery.start_soon(one, seconds)
            await wait_all_tasks_blocked()
    assert woken == [(0.0, 0.0), (1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


async def test_a_cancelled_sleeper_does_not_wake(autojump_clock: MockClock) -> None:
    with trio.move_on_after(1.0) as scope:
        await sleep(5.0)
    assert scope.cancelled_caught
    assert trio.current_time() == 1.0
    await sleep(1.0)
    assert trio.current_time() == 2.0
    await sleep(9.0)  # past the time of the one that was cancelled
    assert trio.current_time() == 11.0


@pytest.mark.parametrize("seconds", [0.0, 1.0])
async def test_it_wakes_again_when_nobody_was_asleep_for_a_while(autojump_clock: MockClock, seconds: float) -> None:
    for _ in range(3):
        began = trio.current_time()
        await sleep(seconds)
        assert trio.current_time() == began + seconds
        await trio.sleep(10.0)
