"""Deadlines: each expires at its exact instant, and the task ends when no deadline is left."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from udfs.http._deadlines import Deadlines


class Closable:
    """A connection that records when it was closed."""

    def __init__(self) -> None:
        self.closed_at: float | None = None

    def close(self) -> None:
        self.closed_at = trio.current_time()


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def test_a_deadline_expires_at_its_instant(autojump_clock: MockClock) -> None:
    deadlines, connection, start = Deadlines(), Closable(), trio.current_time()
    deadlines.set(connection, 2.0)
    await trio.sleep(3)
    assert connection.closed_at == start + 2
    assert not deadlines.clear(connection, 2.0)


async def test_a_cleared_deadline_does_not_expire(autojump_clock: MockClock) -> None:
    deadlines, connection = Deadlines(), Closable()
    deadlines.set(connection, 2.0)
    await trio.sleep(1)
    assert deadlines.clear(connection, 2.0)
    await trio.sleep(9)
    assert connection.closed_at is None
    assert not deadlines.clear(connection, 2.0)


@pytest.mark.parametrize("order", [(1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (2.0, 3.0, 1.0), (2.0, 2.0, 1.0)])
async def test_deadlines_set_in_any_order_expire_at_their_instants(
    order: tuple[float, ...], autojump_clock: MockClock
) -> None:
    deadlines, connections, start = Deadlines(), [Closable() for _ in order], trio.current_time()
    for connection, seconds in zip(connections, order, strict=True):
        deadlines.set(connection, seconds)
        await wait_all_tasks_blocked()
    await trio.sleep(4)
    assert [connection.closed_at for connection in connections] == [start + seconds for seconds in order]


async def test_a_deadline_that_is_set_again_expires_at_the_later_instant(autojump_clock: MockClock) -> None:
    deadlines, connection, other, start = Deadlines(), Closable(), Closable(), trio.current_time()
    deadlines.set(connection, 2.0)
    await trio.sleep(0.5)
    deadlines.set(other, 2.0)
    await trio.sleep(0.5)
    assert deadlines.clear(connection, 2.0)
    deadlines.set(connection, 2.0)
    await trio.sleep(9)
    assert (other.closed_at, connection.closed_at) == (start + 2.5, start + 3)


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
async def test_a_deadline_that_is_not_positive_expires_immediately(seconds: float) -> None:
    deadlines, connection = Deadlines(), Closable()
    deadlines.set(connection, seconds)
    assert connection.closed_at is not None
    assert not deadlines.clear(connection, seconds)


async def test_without_seconds_there_is_no_deadline(autojump_clock: MockClock) -> None:
    before, deadlines, connection = tasks(), Deadlines(), Closable()
    deadlines.set(connection, None)
    assert tasks() == before
    await trio.sleep(9)
    assert deadlines.clear(connection, None)
    assert connection.closed_at is None


async def test_an_infinite_deadline_never_expires_and_does_not_delay_others(autojump_clock: MockClock) -> None:
    deadlines, connection, other, start = Deadlines(), Closable(), Closable(), trio.current_time()
    deadlines.set(connection, math.inf)
    await wait_all_tasks_blocked()
    deadlines.set(other, 1.0)
    await trio.sleep(9)
    assert (connection.closed_at, other.closed_at) == (None, start + 1)
    deadlines.close()


async def test_the_task_ends_when_no_deadline_is_left(autojump_clock: MockClock) -> None:
    before, deadlines, connection = tasks(), Deadlines(), Closable()
    for _ in range(2):
        deadlines.set(connection, 2.0)
        await wait_all_tasks_blocked()
        assert tasks() == before + 1
        assert deadlines.clear(connection, 2.0)
        await trio.sleep(2)
        await wait_all_tasks_blocked()
        assert tasks() == before


async def test_closing_ends_the_task_and_expires_nothing() -> None:
    before, deadlines, connection = tasks(), Deadlines(), Closable()
    deadlines.set(connection, 60.0)
    await wait_all_tasks_blocked()
    deadlines.close()
    await wait_all_tasks_blocked()
    assert tasks() == before
    assert connection.closed_at is None
    assert deadlines.clear(connection, 60.0)


def test_deadlines_that_one_run_leaves_behind_work_in_the_next() -> None:
    deadlines, connection = Deadlines(), Closable()

    async def leave() -> None:
        deadlines.set(connection, 60.0)
        await wait_all_tasks_blocked()

    async def wait() -> float:
        deadlines.set(connection, 1.0)
        await trio.sleep(2)
        return trio.current_time()

    trio.run(leave, clock=MockClock(autojump_threshold=0))
    assert trio.run(wait, clock=MockClock(autojump_threshold=0)) == 2
    assert connection.closed_at == 1


def test_a_deadline_of_an_earlier_run_does_not_delay_those_of_the_next() -> None:
    deadlines, idle, connection = Deadlines(), Closable(), Closable()

    async def leave() -> None:
        deadlines.set(idle, 1.0)

    async def wait() -> None:
        deadlines.set(connection, 1.0)
        await trio.sleep(2)

    late = MockClock(autojump_threshold=0)
    late.jump(1_000)
    trio.run(leave, clock=late)
    assert (idle.closed_at, deadlines.clear(idle, 1.0)) == (1_000, False)
    trio.run(wait, clock=MockClock(autojump_threshold=0))
    assert connection.closed_at == 1
