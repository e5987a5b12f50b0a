"""The restart: a streaming query whose driver is killed, again and again, writes each row exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.sql import SparkSession

from tests.support import PATIENCE, wait_until

ROOT = Path(__file__).parents[3]
DRIVER = Path(__file__).with_name("killed_driver.py")
ROWS_PER_FILE = 20


class Query:
    """A query over files, its driver a process of its own.

    Attributes:
        service: Who answers. One row in ten is a straggler: its first call is never answered, nor every second one
            of those that follow.
    """

    def __init__(self, spark: SparkSession, service: Any, folder: Path, files: int) -> None:
        self._spark = spark
        self._folder = folder
        self.service = service
        self.rows = 0
        self._asked: Counter[str] = Counter()
        service.answer = self._answer
        self.add(files)

    def add(self, files: int) -> None:
        """More files, each with the next numbers."""
        end = self.rows + files * ROWS_PER_FILE
        df = self._spark.range(self.rows, end, 1, 1)
        df.write.option("maxRecordsPerFile", ROWS_PER_FILE).mode("append").parquet(str(self._folder / "source"))
        self.rows = end

    async def _answer(self, question: str) -> str:
        self._asked[question] += 1
        if int(question) % 10 == 0 and self._asked[question] % 2:
            await trio.sleep_forever()
        return question

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The driver, which at the end of the block is killed, with all that it has started."""
        command = [sys.executable, str(DRIVER), str(self._folder), str(self.service.client.port)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment.pop("SPARK_HOME", None)
        with (self._folder / "driver.log").open("ab") as log:
            driver = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            try:
                yield driver
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
                wait_until(lambda: not _of_session(driver.pid), "processes of the driver live on")

    def killed_after(self, commits: int, seconds: float) -> None:
        """Run the driver until so many micro-batches more are committed and calls are made, and so long after that."""
        calls, before = len(self.service.calls), self._commits()
        with self.running() as driver:
            wait_until(
                lambda: (
                    driver.poll() is not None
                    or (len(self.service.calls) > calls and self._commits() >= before + commits)
                ),
                "no micro-batch is committed",
            )
            time.sleep(seconds)
            assert driver.poll() is None, self.log()

    def _commits(self) -> int:
        return sum(each.name.isdigit() for each in (self._folder / "checkpoint" / "commits").glob("*"))

    def written(self) -> list[int]:
        """The numbers in the sink's committed files."""
        if not (self._folder / "sink" / "_spark_metadata" / "0").exists():
            return []
        rows = self._spark.read.schema("id long, answer string").parquet(str(self._folder / "sink")).collect()
        assert all(row.answer == str(row.id) for row in rows)
        return sorted(row.id for row in rows)

    def log(self) -> str:
        return (self._folder / "driver.log").read_text(errors="replace")[-5000:]


def _of_session(leader: int) -> list[str]:
    """The live processes of a session, as the kernel numbers them."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                state, _, _, session = (each / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(session) == leader and state != "Z":
                found.append(each.name)
    return found


def _killed_again_and_again(query: Query, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(kills):
        query.killed_after((number + 1) % 3, dice.uniform(0.0, 1.5))
    query.add(1)
    with query.running() as driver:
        done = list(range(query.rows))
        wait_until(lambda: len(query.written()) >= query.rows or driver.poll() is not None, "rows are missing")
        assert query.written() == done, query.log()
    asked = Counter(query.service.calls)
    assert all(asked[str(number)] > 1 for number in range(0, query.rows, 10))  # so they were carried over


@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_a_killed_driver_loses_no_row_and_writes_none_twice(spark: SparkSession, service: Any, tmp_path: Path) -> None:
    _killed_again_and_again(Query(spark, service, tmp_path, files=3), kills=1, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(5))
def test_a_driver_that_is_killed_many_times_loses_no_row_and_writes_none_twice(
    spark: SparkSession, service: Any, tmp_path: Path, seed: int
) -> None:
    _killed_again_and_again(Query(spark, service, tmp_path, files=60), kills=12, seed=seed)
