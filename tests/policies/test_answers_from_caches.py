"""A call may take several answers from caches."""

from __future__ import annotations

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.policies import cached


async def test_a_function_may_look_up_two_cached_answers_for_one_record() -> None:
    async def look_up(value: int) -> int:
        return value

    remembered = cached(look_up)

    async def both(value: int) -> int:
        return await remembered(0) + await remembered(1) + value

    async with ordered_wait(range(50), both, capacity=5, timeout=5.0) as results:
        assert [result async for result in results] == [1 + value for value in range(50)]
