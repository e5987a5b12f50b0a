"""The clocks."""

from __future__ import annotations

from time import thread_time

import trio
from trio.testing import MockClock

from trio_asyncio_io._tasks import read_clocks


async def test_the_clocks_are_the_time_of_trio_and_the_cpu_time_of_the_thread(autojump_clock: MockClock) -> None:
    before = thread_time()
    await trio.sleep(5.0)
    now, cpu_seconds = read_clocks()
    assert now == 5.0
    assert before <= cpu_seconds <= thread_time()
