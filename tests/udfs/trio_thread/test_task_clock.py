"""The times of a task: from when fewer rows are left than half of its slots, and the gap since the task before."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import PATIENCE
from tests.wheel import ROOT
from trio_asyncio_io import AsyncWaitOperator, Totals
from trio_asyncio_io.gates import Auto, RateLimit
from trio_asyncio_io.integration import TaskTimes
from udfs._plan.metrics import verdict_of
from udfs._spark_thread.bridge import TaskOperator
from udfs._trio_thread import task_clock
from udfs._trio_thread.task_clock import TaskClock, TaskPlaces


async def test_the_tail_begins_when_fewer_rows_are_left_than_half_of_the_slots(autojump_clock: MockClock) -> None:
    clock = TaskClock(0)
    async with AsyncWaitOperator(trio.sleep, timeout=99.0, capacity=4, source=[1.0, 2.0, 4.0, 8.0]) as operator:
        clock.drain(lambda: 4 - operator.totals().done < 2)
        async for _ in operator.output:  # in input order, which the tail does not depend on
            pass
        assert clock.times().tail == 4.0
    clock.stop()
    assert clock.times().tail == 4.0


async def test_without_a_tail_its_search_ends_with_the_task() -> None:
    clock = TaskClock(0)
    clock.drain(lambda: False)
    clock.stop()
    assert clock.times().tail == 0.0


def rows_after(settings: Any, values: list[Any], rows: Any) -> list[Any]:
    """The rows of a task with one batch."""
    operator = TaskOperator(settings)
    operator.send(rows(values))
    finished = [row for chunk in operator.last_chunks() for row in chunk]
    operator.close()
    return finished


def totals_of(finished: list[Any]) -> tuple[Totals, TaskTimes]:
    """The last totals that a task has reported with its rows."""
    last: tuple[Totals, TaskTimes] = [row.totals for row in finished if row.totals is not None][-1]
    return last


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """The time of the monotonic clock. The wall clock is set back by an hour with each reading."""
    instants = [100.0]
    wall = count(1e9, -3600.0)
    monkeypatch.setattr(task_clock.time, "monotonic", lambda: instants[0])
    monkeypatch.setattr(task_clock.time, "time", lambda: next(wall))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},other")
    return instants


def test_a_gap_is_the_time_since_the_task_before_in_the_same_place(now: list[float]) -> None:
    seen = []
    for job, began, ended in [(7, 100.0, 104.0), (7, 105.5, 106.0), (8, 110.0, 111.0)]:
        now[0] = began
        clock = TaskClock(job)
        now[0] = began + 0.25
        clock.receive_rows()
        now[0] = began + 0.375
        clock.accept_rows()
        now[0] = ended
        times = clock.times()
        clock.leave()
        seen.append((times.at_once, times.gap, times.start, times.seconds, clock.waited))
        assert times.ended - times.began == times.seconds
    assert seen == [(1, 0.0, 0.125, 4.0, 0.25), (0, 1.5, 0.125, 0.5, 0.25), (1, 0.0, 0.125, 1.0, 0.25)]


def test_processes_that_take_turns_share_the_places_of_their_executor(tmp_path: Path) -> None:
    """Four processes, of which two run a task at any time."""
    processes = [TaskPlaces(tmp_path / "places") for _ in range(4)]
    assert [process.take(7, 0.0) for process in processes[:2]] == [None, None]
    for process, at in zip(processes, (10.0, 11.0, 20.0, 21.0), strict=True):
        process.leave(7, at)
        assert processes[(processes.index(process) + 2) % 4].take(7, at + 0.5) == 0.5
    assert processes[0].take(8, 30.0) is None


def test_a_task_that_began_before_another_one_ended_has_a_place_of_its_own(tmp_path: Path) -> None:
    places = TaskPlaces(tmp_path / "places")
    places.leave(7, 5.0)
    assert places.take(7, 4.0) is None
    assert places.take(7, 6.0) == 1.0


@pytest.mark.parametrize("folder", [None, "gone"])
def test_without_a_folder_each_place_is_new(folder: str | None, tmp_path: Path) -> None:
    places = TaskPlaces(None if folder is None else tmp_path / folder / "places")
    places.leave(7, 3.0)
    assert places.take(7, 4.0) is None


def test_a_file_of_others_among_the_places_fails_no_task(tmp_path: Path) -> None:
    places = TaskPlaces(tmp_path)
    (tmp_path / ".nfs0001").touch()
    places.leave(7, 3.0)
    assert places.take(7, 4.0) is None


def test_only_the_places_of_the_latest_jobs_are_kept(tmp_path: Path) -> None:
    places = TaskPlaces(tmp_path / "places")
    for job in range(20):
        places.leave(job, 1.0)
    assert [places.take(job, 2.0) for job in (19, 4, 3, 0)] == [1.0, 1.0, None, None]


def test_two_tasks_that_begin_at_once_take_different_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = TaskPlaces(tmp_path / "places")
    places.leave(7, 1.0)
    places.leave(7, 2.0)
    free = places._free
    taken: list[float | None] = []

    def list_and_start_another() -> list[tuple[int, float]]:
        found = free()
        monkeypatch.undo()
        taken.append(places.take(7, 3.0))
        return found

    monkeypatch.setattr(places, "_free", list_and_start_another)
    assert places.take(7, 3.0) == 2.0
    assert taken == [1.0]


TAKES = """
import sys
from pathlib import Path
from udfs._trio_thread.task_clock import TaskPlaces
places = TaskPlaces(Path(sys.argv[1]))
print("begins", flush=True)
while True:
    places.leave(7, 1.0)
    places.take(7, 2.0)
"""


@pytest.mark.processes
@pytest.mark.timeout(PATIENCE)
def test_no_task_waits_for_a_process_that_is_stopped_while_it_takes_a_place(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TAKES, str(tmp_path / "places")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for milliseconds in range(20):
                time.sleep(milliseconds / 1_000)
                process.send_signal(signal.SIGSTOP)
                TaskPlaces(tmp_path / "places").leave(8, 1.0)
                assert TaskPlaces(tmp_path / "places").take(8, 2.0) == 1.0
                process.send_signal(signal.SIGCONT)
        finally:
            process.kill()


def test_each_thread_has_its_own_wait_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = iter(["spark", "loop"])
    waited = {"spark": 2.0, "loop": 2.0}
    monkeypatch.setattr(task_clock, "get_native_id", lambda: next(threads))
    monkeypatch.setattr(task_clock, "cpu_wait", waited.__getitem__)
    clock = TaskClock(0)
    clock.accept_rows()
    waited |= {"spark": 2.5, "loop": 5.0}
    times = clock.times()
    assert (times.processor, times.spark_processor) == (3.0, 0.5)
    waited["loop"] = 0.0  # the thread has ended
    times = clock.times()
    assert (times.processor, times.spark_processor) == (0.0, 0.5)


def test_a_task_reports_its_times_and_totals_with_its_rows(settings: Any, rows: Any) -> None:
    async def double(value: int) -> int:
        return 2 * value

    totals, times = totals_of(rows_after(settings(double, has_metrics=True), [1, 2, 3], rows))
    assert (totals.done, times.tasks, times.at_once) == (3, 1, 1)
    assert 0 <= times.start <= times.seconds


def test_the_wait_for_the_first_rows_is_the_time_of_their_source(settings: Any, rows: Any, now: list[float]) -> None:
    async def double(value: int) -> int:
        return 2 * value

    operator = TaskOperator(settings(double, has_metrics=True))
    now[0] += 50.0
    operator.send(rows(list(range(200))))
    finished = [row for chunk in operator.last_chunks() for row in chunk]
    operator.close()
    [*_, (totals, times)] = [row.totals for row in finished if row.totals is not None]
    assert min(totals.source, totals.supply, totals.seconds) >= 50.0
    assert (times.start, times.seconds) == (0.0, 50.0)
    assert verdict_of(totals, times).limit == "source"


def test_the_totals_are_not_read_while_many_rows_wait_for_their_first_call(
    settings: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    totals = AsyncWaitOperator.totals

    def counted(self: AsyncWaitOperator[Any, Any]) -> Totals:
        read.append(1)
        return totals(self)

    async def suspends(value: int) -> int:
        await trio.lowlevel.checkpoint()
        return value

    monkeypatch.setattr(AsyncWaitOperator, "totals", counted)
    assert len(rows_after(settings(suspends, capacity=2), list(range(200)), rows)) == 200
    assert 0 < len(read) < 20


def test_rows_without_a_call_are_not_left(settings: Any, rows: Any) -> None:
    async def suspends(value: int) -> int:
        await trio.lowlevel.checkpoint()
        return value

    _, times = totals_of(
        rows_after(settings(suspends, capacity=4, skip_nulls=True, has_metrics=True), [None] * 8 + [1], rows)
    )
    assert times.tail > 0


def test_the_slots_of_a_capacity_that_is_found_are_those_that_were_used(settings: Any, rows: Any) -> None:
    """The upper limit is 800 calls, so all of this second would be a tail."""

    async def suspends(value: int) -> int:
        await trio.sleep(0.005)
        return value

    operator = TaskOperator(settings(suspends, capacity=800, gate=[Auto(), RateLimit(40.0)], has_metrics=True))
    operator.send(rows(list(range(40))))
    finished = [row for chunk in operator.last_chunks() for row in chunk]
    operator.close()
    [*_, (totals, times)] = [row.totals for row in finished if row.totals is not None]
    assert (totals.done, totals.capacity) == (40, 800)
    assert 0 < times.tail < times.seconds - 0.5  # the rate spaces the starts, however slow the machine is


def test_a_function_that_blocks_the_loop_is_named_as_the_cause(settings: Any, rows: Any) -> None:
    async def blocks(value: int) -> int:
        time.sleep(0.01)  # noqa: ASYNC251 - what it must not do
        return value

    verdict = verdict_of(*totals_of(rows_after(settings(blocks, has_metrics=True, capacity=8), list(range(40)), rows)))
    assert verdict.limit == "blocking", verdict
    assert "adapters.in_thread" in verdict.advice
