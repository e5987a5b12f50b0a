"""Restarts: a streaming query whose driver is killed, again and again, writes each row exactly once."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trio

from tests.processes import Family
from tests.real.jobs import start
from tests.service import Service
from tests.streaming import committed
from tests.support import PATIENCE, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.thorough]

DRIVER = Path(__file__).with_name("killed_driver.py")
ROWS_PER_FILE = 20


class Query:
    """A query over files, whose driver is a process.

    Attributes:
        service: Answers the calls. One row in ten is a straggler: the service leaves its first, third, fifth call
            unanswered.
    """

    def __init__(self, service: Service, folder: Path, files: int) -> None:
        self._folder = folder
        self.service = service
        self.rows = 0
        self._attempts: Counter[str] = Counter()
        service.answer = self._answer
        (folder / "source").mkdir()
        self.add(files)

    def add(self, files: int) -> None:
        """Add files with the next numbers."""
        for _ in range(files):
            table = pa.table({"id": pa.array(range(self.rows, self.rows + ROWS_PER_FILE), pa.int64())})
            written = self._folder / f"{self.rows}.parquet"
            pq.write_table(table, written)
            written.rename(self._folder / "source" / written.name)  # Spark must not see half a file
            self.rows += ROWS_PER_FILE

    async def _answer(self, question: str) -> str:
        self._attempts[question] += 1
        if int(question) % 10 == 0 and self._attempts[question] % 2:
            await trio.sleep_forever()
        return question

    @contextmanager
    def running(self) -> Iterator[Family]:
        """Start the driver. At the end of the block it is killed with all processes that it has started."""
        driver = start(DRIVER, self._folder, self._folder, self.service.client.port)
        try:
            yield driver
        finally:
            driver.kill()

    def killed_after(self, commits: int, seconds: float) -> None:
        """Run the driver until it has committed this many micro-batches and made a call, and then for these seconds."""
        calls, before = len(self.service.calls), self._commits()
        with self.running() as driver:
            wait_until(
                lambda: (
                    driver.leader.poll() is not None
                    or (len(self.service.calls) > calls and self._commits() >= before + commits)
                ),
                "no micro-batch is committed",
            )
            time.sleep(seconds)
            assert driver.leader.poll() is None, driver.tail()

    def _commits(self) -> int:
        return sum(entry.name.isdigit() for entry in (self._folder / "checkpoint" / "commits").glob("*"))

    def written(self) -> list[int]:
        """The numbers in the sink's committed files."""
        rows = committed(self._folder / "sink")
        assert all(row.answer == str(row.id) for row in rows)
        return sorted(row.id for row in rows)


def _assert_each_row_is_written_once(query: Query, kills: int, seed: int) -> None:
    instants = random.Random(seed)
    for number in range(kills):
        query.killed_after((number + 1) % 3, instants.uniform(0.0, 1.5))
    query.add(1)
    with query.running() as driver:
        wait_until(lambda: len(query.written()) >= query.rows or driver.leader.poll() is not None, "rows are missing")
        assert query.written() == list(range(query.rows)), driver.tail()
    calls = Counter(query.service.calls)
    assert all(calls[str(number)] > 1 for number in range(0, query.rows, 10))  # they were carried over


@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_a_killed_driver_loses_no_row_and_writes_none_twice(service: Service, tmp_path: Path) -> None:
    _assert_each_row_is_written_once(Query(service, tmp_path, files=2), kills=1, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(5))
def test_a_driver_that_is_killed_many_times_loses_no_row_and_writes_none_twice(
    service: Service, tmp_path: Path, seed: int
) -> None:
    _assert_each_row_is_written_once(Query(service, tmp_path, files=60), kills=12, seed=seed)
