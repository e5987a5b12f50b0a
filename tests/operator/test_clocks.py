"""The clocks."""

from __future__ import annotations

from time import thread_time

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io._operator.cpu import cpu_wait
from trio_asyncio_io._operator.tasks import read_clocks


async def test_the_clocks_are_the_time_of_trio_and_the_cpu_time_of_the_thread(autojump_clock: MockClock) -> None:
    before = thread_time()
    await trio.sleep(5.0)
    now, cpu_seconds = read_clocks()
    assert now == 5.0
    assert before <= cpu_seconds <= thread_time() + cpu_wait()


async def test_the_time_for_which_the_thread_waits_for_the_cpu_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.cpu_wait", lambda: 4.5)
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.thread_time", lambda: 1.25)
    assert read_clocks()[1] == 5.75
