"""Loads: calls at a low and at a high load, on virtual time."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from trio_asyncio_io import Totals
from udfs._trio_thread.calls import Loads


async def wait(seconds: float) -> float:
    await trio.sleep(seconds)
    return seconds


def numbers(loads: Loads) -> tuple[float, ...]:
    totals = loads.put_into(Totals())
    return totals.low_calls, totals.low_latency, totals.high_calls, totals.high_latency


async def test_a_call_counts_at_the_higher_load_of_its_start_and_its_end(autojump_clock: object) -> None:
    loads = Loads(capacity=4)
    assert await loads.measured(wait, 1.0) == 1.0
    assert numbers(loads) == (1, 1.0, 0, 0.0)
    async with trio.open_nursery() as nursery:
        for seconds in (4.0, 3.0, 2.0):  # the first starts and ends at load 1, the second at 2, the third at 3
            nursery.start_soon(loads.measured, wait, seconds)
            await trio.testing.wait_all_tasks_blocked()
    assert numbers(loads) == (2, 5.0, 1, 2.0)


async def test_a_call_that_raises_frees_its_place_and_does_not_count(autojump_clock: object) -> None:
    loads = Loads(capacity=4)

    async def fail() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await loads.measured(fail)
    assert await loads.measured(wait, 1.0) == 1.0
    assert numbers(loads) == (1, 1.0, 0, 0.0)
