"""The clocks."""

from __future__ import annotations

from pathlib import Path
from time import thread_time

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io._operator.tasks import cpu_wait, read_clocks


async def test_the_clocks_are_the_time_of_trio_and_the_cpu_time_of_the_thread(autojump_clock: MockClock) -> None:
    before = thread_time()
    await trio.sleep(5.0)
    now, cpu_seconds = read_clocks()
    assert now == 5.0
    assert before <= cpu_seconds <= thread_time() + cpu_wait()


async def test_the_time_for_which_the_thread_waits_for_the_cpu_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, a CPU-bound function has the CPU for a part of the time only."""
    statistics = tmp_path / "schedstat"
    statistics.write_text("123 4500000000 6\n")
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.SCHEDSTAT", statistics)
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.thread_time", lambda: 1.25)
    assert read_clocks()[1] == 5.75


@pytest.mark.parametrize("content", [None, "", "1 x 2"])
def test_a_system_that_does_not_count_that_time_reports_none(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statistics = tmp_path / "schedstat"
    if content is not None:
        statistics.write_text(content)
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.SCHEDSTAT", statistics)
    assert cpu_wait() == 0.0
