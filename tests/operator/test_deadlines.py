"""Deadlines on virtual time."""

from __future__ import annotations

import math

import trio
from trio.testing import MockClock

from trio_asyncio_io._deadlines import Deadlines


async def _spend(deadlines: Deadlines, start: float, seconds: float) -> tuple[float, bool]:
    """Sleep under a deadline; return the instant of the end, and whether the sleep was cancelled."""
    await trio.sleep_until(start)
    with trio.CancelScope() as scope:
        deadlines.set(scope, trio.current_time())
        await trio.sleep(seconds)
        deadlines.clear(scope)
    return trio.current_time(), scope.cancelled_caught


async def test_each_unfinished_scope_is_cancelled_at_its_own_deadline(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    deadlines = Deadlines(2.0)
    nursery.start_soon(deadlines.run)
    began = trio.current_time()
    ended = {}

    async def work(name: str, start: float, seconds: float) -> None:
        at, cancelled = await _spend(deadlines, began + start, seconds)
        ended[name] = (at - began, cancelled)

    async with trio.open_nursery() as workers:
        workers.start_soon(work, "slow", 0.0, 9.0)
        workers.start_soon(work, "quick", 0.5, 0.25)
        workers.start_soon(work, "slow, later", 1.0, 9.0)
        workers.start_soon(work, "much later, after all had ended", 50.0, 9.0)
    assert ended == {
        "slow": (2.0, True),
        "quick": (0.75, False),
        "slow, later": (3.0, True),
        "much later, after all had ended": (52.0, True),
    }


async def test_all_deadlines_of_one_instant_expire_at_once(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    deadlines = Deadlines(1.0)
    nursery.start_soon(deadlines.run)
    began = trio.current_time()
    ends = set()

    async def work() -> None:
        ends.add(await _spend(deadlines, began, 5.0))

    async with trio.open_nursery() as workers:
        for _ in range(1_000):
            workers.start_soon(work)
    assert ends == {(began + 1.0, True)}


async def test_clearing_a_deadline_returns_whether_it_had_expired(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    deadlines = Deadlines(1.0)
    nursery.start_soon(deadlines.run)
    with trio.CancelScope(shield=True) as scope:
        deadlines.set(scope, trio.current_time())
        assert deadlines.clear(scope)
        deadlines.set(scope, trio.current_time())
        with trio.CancelScope(shield=True):
            await trio.sleep(2.0)
        assert scope.cancel_called
        assert not deadlines.clear(scope)


async def test_an_infinite_timeout_needs_no_task(autojump_clock: MockClock) -> None:
    deadlines = Deadlines(math.inf)
    await deadlines.run()
    with trio.CancelScope() as scope:
        deadlines.set(scope, trio.current_time())
        await trio.sleep(80_000.0)
        assert deadlines.clear(scope)
    assert not scope.cancel_called
