"""The CPU times of threads, and the clocks of the operator."""

from __future__ import annotations

from pathlib import Path
from threading import get_native_id
from time import thread_time

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io._operator.cpu import cpu_times, cpu_wait, is_ready
from trio_asyncio_io._operator.tasks import read_clocks


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the system describes this thread."""
    monkeypatch.setattr("trio_asyncio_io._operator.cpu.THREADS", tmp_path)
    folder = tmp_path / str(get_native_id())
    folder.mkdir()
    return folder


def test_the_times_of_a_thread_are_in_seconds(folder: Path) -> None:
    (folder / "schedstat").write_text("1250000000 4500000000 6\n")
    assert cpu_times(get_native_id()) == (1.25, 4.5)
    assert cpu_wait() == cpu_wait(get_native_id()) == 4.5


@pytest.mark.parametrize("content", [None, "", "1", "1 x 2"])
def test_a_system_that_does_not_count_them_reports_none(content: str | None, folder: Path) -> None:
    if content is not None:
        (folder / "schedstat").write_text(content)
    assert cpu_times(get_native_id()) is None
    assert cpu_wait() == 0.0


@pytest.mark.parametrize(("state", "expected"), [("R", True), ("S", False), (None, False)])
def test_a_thread_is_ready_while_it_waits_for_nothing_but_a_cpu(
    state: str | None, expected: bool, folder: Path
) -> None:
    if state is not None:
        (folder / "stat").write_text(f"12 (R) name) {state} 1")
    assert is_ready(get_native_id()) == expected


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
