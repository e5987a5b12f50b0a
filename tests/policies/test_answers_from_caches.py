"""A call may take several answers from caches, and an answer from a cache costs no turn of the scheduler."""

from __future__ import annotations

import pytest
import trio
from trio.lowlevel import current_task

from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.policies import cached, from_cache


async def look_up(value: int) -> int:
    return value


async def test_a_function_may_look_up_two_cached_answers_for_one_record() -> None:
    remembered = cached(look_up)

    async def both(value: int) -> int:
        return await remembered(0) + await remembered(1) + value

    async with ordered_wait(range(50), both, capacity=5, timeout=5.0) as results:
        assert [result async for result in results] == [1 + value for value in range(50)]


class Steps(trio.abc.Instrument):
    """Counts how often Trio lets a worker run."""

    def __init__(self) -> None:
        self.of_workers = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.of_workers += task.name == "trio_asyncio_io worker"


async def test_a_hit_costs_no_turn_of_the_scheduler_and_no_context() -> None:
    remembered, steps, contexts = cached(look_up), Steps(), set()

    async def answered(value: int) -> int:
        contexts.add(id(current_task().context))
        return await remembered(value % 2)

    trio.lowlevel.add_instrument(steps)
    try:
        async with ordered_wait(range(400), answered, capacity=1, timeout=5.0) as results:
            assert len([result async for result in results]) == 400
    finally:
        trio.lowlevel.remove_instrument(steps)
    assert remembered.hits == 398
    assert len(contexts) == 1
    assert steps.of_workers < 40


@pytest.mark.parametrize("group", [None, 3])
async def test_the_mark_of_a_hit_is_that_of_the_present_attempt(group: int | None) -> None:
    remembered, marks = cached(look_up), []

    async def fail_once(value: int | list[int]) -> int | list[int]:
        marks.append(from_cache.get())
        key = len(marks)
        await remembered(1 if key in {1, 2} else key)  # a hit in the second call only
        marks[-1] = (marks[-1], from_cache.get())
        if key == 2:
            raise OSError
        return value

    retry = FixedDelay(1, 0.0)
    async with ordered_wait(range(9), fail_once, capacity=1, timeout=5.0, retry=retry, group=group) as results:
        assert [result async for result in results] == list(range(9))
    assert marks[:4] == [(False, False), (False, True), (False, False), (False, False)]


async def test_outside_an_operator_the_mark_stays_until_it_is_set() -> None:
    remembered = cached(look_up)
    await remembered(1)
    assert not from_cache.get()
    await remembered(1)
    await remembered(2)
    assert from_cache.get()
    from_cache.set(False)
    await remembered(3)
    assert not from_cache.get()


async def test_a_hit_in_a_task_of_the_function_is_not_that_of_its_call() -> None:
    remembered, seen = cached(look_up), []

    async def in_task(value: int) -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(remembered, 0)
        seen.append(from_cache.get())
        return value

    async with ordered_wait(range(3), in_task, capacity=1, timeout=5.0) as results:
        assert len([result async for result in results]) == 3
    assert (remembered.hits, seen) == (2, [False] * 3)
