"""Streaming: each row of the source is written once, and clients live on between micro-batches."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.entry_points import with_answer
from tests.service import Client, Service
from tests.support import PATIENCE, thorough_except
from tests.wheel import ROOT, environment_of_a_user
from udfs import AsyncFunction

FILES = 2
ROWS_PER_FILE = 20
ROWS = FILES * ROWS_PER_FILE


class Stream:
    """A folder of files as a stream, one file for each micro-batch, and a query over it that can be restarted."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.source, self.sink, self.checkpoint = (str(folder / name) for name in ("source", "sink", "checkpoint"))
        self.files = 0

    def add(self, files: int) -> None:
        """Add files with the next numbers."""
        for number in range(self.files, self.files + files):
            rows = self.spark.range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE, 1, 1)
            rows.withColumn("ts", F.timestamp_seconds("id")).write.mode("append").parquet(self.source)
        self.files += files

    def read(self) -> DataFrame:
        return (
            self.spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(self.source)
        )

    def run(self, df: DataFrame) -> list[Any]:
        """The rows of the sink when the query has read all files."""
        writer = df.writeStream.format("parquet").option("checkpointLocation", self.checkpoint)
        query = writer.trigger(availableNow=True).start(self.sink)
        assert query.awaitTermination(PATIENCE)
        assert query.exception() is None
        return self.spark.read.parquet(self.sink).collect()


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    made = Stream(spark, tmp_path)
    made.add(FILES)
    return made


class Connected(AsyncFunction[int, str]):
    """Returns the answer and the id of the process. `open` runs once per process."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def open(self) -> None:
        await self.client.ask(f"opened in {os.getpid()}")

    async def invoke(self, id: int) -> str:  # noqa: A002 - the name of the column
        return f"{await self.client.ask(id)} in {os.getpid()}"


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "ordered", "unordered", "keyed"]))
def test_every_row_is_called_once_and_written_once(stream: Stream, service: Service, entry_point: str) -> None:
    options: dict[str, Any] = {}
    df = stream.read()
    if entry_point == "unordered":
        df = df.withWatermark("ts", "1 minute")
        options = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
    rows = stream.run(with_answer(df, entry_point, Connected(service.client), **options))
    assert sorted((row.id, row.answer.split()[0]) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    processes = {row.answer.split()[-1] for row in rows}
    opened = [f"opened in {process}" for process in processes]
    assert Counter(service.calls) == Counter([*map(str, range(ROWS)), *opened])


def test_a_query_continues_from_its_checkpoint(stream: Stream, service: Service) -> None:
    df = with_answer(stream.read(), "unordered", service.client.ask)
    assert len(stream.run(df)) == ROWS
    stream.add(1)
    rows = stream.run(df)
    assert sorted(row.answer for row in rows) == sorted(map(str, range(ROWS + ROWS_PER_FILE)))
    assert Counter(service.calls) == Counter(map(str, range(ROWS + ROWS_PER_FILE)))


async def double(value: int) -> int:
    return 2 * value


@pytest.mark.variation
@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "ordered", "unordered", "keyed"]))
def test_the_source_may_be_rate_and_the_sink_foreach_batch(
    spark: SparkSession, tmp_path: Path, entry_point: str
) -> None:
    seen: dict[int, list[tuple[int, int]]] = {}
    enough = threading.Event()

    def keep(df: DataFrame, batch: int) -> None:
        seen[batch] = [(row.value, row.answer) for row in df.collect()]
        if sum(map(len, seen.values())) >= 20:
            enough.set()

    source = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 2).load()
    writer = with_answer(source, entry_point, double, "long", inputs=["value"]).writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert enough.wait(PATIENCE), query.exception()
    finally:
        query.stop()
    rows = sorted(row for rows in seen.values() for row in rows)
    assert rows == [(n, 2 * n) for n in range(len(rows))]


class Lines:
    """A server on loopback that sends lines to each client."""

    def __init__(self, lines: list[str]) -> None:
        self._text = "".join(f"{line}\n" for line in lines).encode()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            connection.sendall(self._text)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)
        for connection in self._connections:
            connection.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    server = Lines([str(n) for n in range(ROWS)])
    yield server
    server.close()


@pytest.mark.thorough
def test_the_source_may_be_a_socket_and_the_sink_the_console(lines: Lines) -> None:
    """A query for each entry point, in a process whose console the test reads."""
    entry_points = ["ordered", "unordered", "column"]
    environment = environment_of_a_user(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    command = [sys.executable, str(Path(__file__).with_name("console_job.py")), str(lines.port), *entry_points]
    rows: list[tuple[int, int]] = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        watchdog = threading.Timer(PATIENCE, os.killpg, (job.pid, signal.SIGKILL))
        watchdog.start()
        try:
            while len(rows) < len(entry_points) * ROWS and (line := job.stdout.readline()):
                rows += [(int(one), int(two)) for one, two in re.findall(r"\| *(\d+)\| *(\d+)\|", line)]
        finally:
            watchdog.cancel()
            os.killpg(job.pid, signal.SIGKILL)
    assert sorted(rows) == sorted(len(entry_points) * [(n, 2 * n) for n in range(ROWS)])


@pytest.mark.thorough
def test_the_sink_may_be_memory(stream: Stream) -> None:
    df = with_answer(stream.read(), "ordered", double, "long")
    query = df.writeStream.format("memory").queryName("doubled").trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    assert [row.answer for row in stream.spark.table("doubled").orderBy("id").collect()] == list(range(0, 2 * ROWS, 2))
