"""The wake-up: one task for each call, in the order in which they came."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from trio_asyncio_io._operator.tasks import Wakeup


async def wait_as(name: str, wakeup: Wakeup, woken: list[str]) -> None:
    await wakeup.wait()
    woken.append(name)


async def test_each_call_wakes_the_task_that_has_waited_longest(nursery: trio.Nursery) -> None:
    wakeup, woken = Wakeup(), list[str]()
    for name in "abc":
        nursery.start_soon(wait_as, name, wakeup, woken)
        await wait_all_tasks_blocked()
    for expected in ("a", "ab", "abc"):
        assert wakeup.is_awaited
        wakeup.wake()
        await wait_all_tasks_blocked()
        assert "".join(woken) == expected
    assert not wakeup.is_awaited


async def test_a_call_for_which_nobody_waits_wakes_nobody_later(nursery: trio.Nursery) -> None:
    wakeup, woken = Wakeup(), list[str]()
    wakeup.wake()
    nursery.start_soon(wait_as, "a", wakeup, woken)
    await wait_all_tasks_blocked()
    assert woken == []
    wakeup.wake()
    await wait_all_tasks_blocked()
    assert woken == ["a"]


async def test_a_cancelled_wait_takes_no_call_from_another_task(nursery: trio.Nursery) -> None:
    wakeup, woken = Wakeup(), list[str]()
    with trio.CancelScope() as scope:
        scope.cancel()
        await wakeup.wait()
    assert scope.cancelled_caught
    assert not wakeup.is_awaited
    wakeup.wake()
    nursery.start_soon(wait_as, "a", wakeup, woken)
    await wait_all_tasks_blocked()
    assert wakeup.is_awaited
    wakeup.wake()
    await wait_all_tasks_blocked()
    assert woken == ["a"]
