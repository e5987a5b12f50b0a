"""The deadlines: each strikes at its instant and no other, and the task that strikes them does not outlive its use."""

from __future__ import annotations

import math

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from udfs.http._deadlines import Deadlines


class Line:
    """What is closed, and when."""

    def __init__(self) -> None:
        self.closed_at: float | None = None

    def close(self) -> None:
        self.closed_at = trio.current_time()


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


async def test_a_deadline_strikes_at_its_instant(autojump_clock: MockClock) -> None:
    deadlines, line, start = Deadlines(), Line(), trio.current_time()
    deadlines.set(line, 2.0)
    await trio.sleep(3)
    assert line.closed_at == start + 2
    assert not deadlines.clear(line, 2.0)


async def test_a_deadline_that_is_met_strikes_nothing(autojump_clock: MockClock) -> None:
    deadlines, line = Deadlines(), Line()
    deadlines.set(line, 2.0)
    await trio.sleep(1)
    assert deadlines.clear(line, 2.0)
    await trio.sleep(9)
    assert line.closed_at is None
    assert not deadlines.clear(line, 2.0)


@pytest.mark.parametrize("order", [(1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (2.0, 3.0, 1.0), (2.0, 2.0, 1.0)])
async def test_each_strikes_at_its_instant_in_whatever_order_they_are_set(
    order: tuple[float, ...], autojump_clock: MockClock
) -> None:
    deadlines, lines, start = Deadlines(), [Line() for _ in order], trio.current_time()
    for line, seconds in zip(lines, order, strict=True):
        deadlines.set(line, seconds)
        await wait_all_tasks_blocked()
    await trio.sleep(4)
    assert [line.closed_at for line in lines] == [start + seconds for seconds in order]


async def test_one_that_is_set_again_strikes_at_the_later_instant(autojump_clock: MockClock) -> None:
    deadlines, line, other, start = Deadlines(), Line(), Line(), trio.current_time()
    deadlines.set(line, 2.0)
    await trio.sleep(0.5)
    deadlines.set(other, 2.0)
    await trio.sleep(0.5)
    assert deadlines.clear(line, 2.0)
    deadlines.set(line, 2.0)
    await trio.sleep(9)
    assert (other.closed_at, line.closed_at) == (start + 2.5, start + 3)


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
async def test_a_deadline_that_has_come_strikes_at_once(seconds: float) -> None:
    deadlines, line = Deadlines(), Line()
    deadlines.set(line, seconds)
    assert line.closed_at is not None
    assert not deadlines.clear(line, seconds)


async def test_without_seconds_there_is_no_deadline(autojump_clock: MockClock) -> None:
    before, deadlines, line = tasks(), Deadlines(), Line()
    deadlines.set(line, None)
    assert tasks() == before
    await trio.sleep(9)
    assert deadlines.clear(line, None)
    assert line.closed_at is None


async def test_an_endless_one_never_strikes_and_hides_none(autojump_clock: MockClock) -> None:
    deadlines, line, other, start = Deadlines(), Line(), Line(), trio.current_time()
    deadlines.set(line, math.inf)
    await wait_all_tasks_blocked()
    deadlines.set(other, 1.0)
    await trio.sleep(9)
    assert (line.closed_at, other.closed_at) == (None, start + 1)
    deadlines.close()


async def test_the_task_ends_when_there_is_nothing_to_wait_for(autojump_clock: MockClock) -> None:
    before, deadlines, line = tasks(), Deadlines(), Line()
    for _ in range(2):
        deadlines.set(line, 2.0)
        await wait_all_tasks_blocked()
        assert tasks() == before + 1
        assert deadlines.clear(line, 2.0)
        await trio.sleep(2)
        await wait_all_tasks_blocked()
        assert tasks() == before


async def test_closing_ends_the_task_and_strikes_nothing() -> None:
    before, deadlines, line = tasks(), Deadlines(), Line()
    deadlines.set(line, 60.0)
    await wait_all_tasks_blocked()
    deadlines.close()
    await wait_all_tasks_blocked()
    assert tasks() == before
    assert line.closed_at is None
    assert deadlines.clear(line, 60.0)


def test_deadlines_that_a_run_leaves_behind_serve_the_next() -> None:
    deadlines, line = Deadlines(), Line()

    async def leave() -> None:
        deadlines.set(line, 60.0)
        await wait_all_tasks_blocked()

    async def wait() -> float:
        deadlines.set(line, 1.0)
        await trio.sleep(2)
        return trio.current_time()

    trio.run(leave, clock=MockClock(autojump_threshold=0))
    assert trio.run(wait, clock=MockClock(autojump_threshold=0)) == 2
    assert line.closed_at == 1
