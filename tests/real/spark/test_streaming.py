"""Streaming: files come in, rows come out once each, and clients live from batch to batch."""

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
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from tests.support import PATIENCE
from udfs import AsyncFunction, async_pandas_udf, ordered_wait, unordered_wait

ROOT = Path(__file__).parents[3]
FILES = 4
ROWS_PER_FILE = 20
ROWS = FILES * ROWS_PER_FILE


class Stream:
    """A folder of files as a stream, one file to the micro-batch, and a query over it that can go on later."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.source, self.sink, self.checkpoint = (str(folder / name) for name in ("source", "sink", "checkpoint"))
        self.files = 0

    def add(self, files: int) -> None:
        """More files, each with the next numbers, in two partitions when read."""
        for number in range(self.files, self.files + files):
            rows = self.spark.range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE, 1, 1)
            rows.withColumn("ts", F.timestamp_seconds("id")).write.mode("append").parquet(self.source)
        self.files += files

    def read(self) -> DataFrame:
        return (
            self.spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(self.source)
        )

    def run(self, df: DataFrame) -> list[Any]:
        """What the sink holds when the query has read all that there is."""
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
    """Asks over connections that are opened once per process, and gives the process beside the answer."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def open(self) -> None:
        await self.client.ask(f"opened in {os.getpid()}")

    async def invoke(self, id: int) -> str:  # noqa: A002 - the column is called so
        return f"{await self.client.ask(id)} in {os.getpid()}"


@pytest.mark.parametrize("door", ["column", "ordered", "unordered"])
def test_every_row_comes_out_once_and_is_asked_for_once(stream: Stream, service: Any, door: str) -> None:
    function = Connected(service.client)
    df = stream.read()
    if door == "column":
        df = df.withColumn("answer", async_pandas_udf(function, "string", timeout=30.0)("id"))
    elif door == "ordered":
        df = df.transform(ordered_wait, function, "answer string", timeout=30.0)
    else:
        event_time = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
        df = df.withWatermark("ts", "1 minute").transform(
            unordered_wait, function, "answer string", timeout=30.0, **event_time
        )
    rows = stream.run(df)
    assert sorted((row.id, row.answer.split()[0]) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    processes = {row.answer.split()[-1] for row in rows}
    opened = [f"opened in {process}" for process in processes]
    assert Counter(service.calls) == Counter([*map(str, range(ROWS)), *opened])


def test_a_query_goes_on_where_it_ended(stream: Stream, service: Any) -> None:
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    df = stream.read().transform(unordered_wait, ask, "answer string", timeout=30.0)
    assert len(stream.run(df)) == ROWS
    stream.add(1)
    rows = stream.run(df)
    assert sorted(row.answer for row in rows) == sorted(map(str, range(ROWS + ROWS_PER_FILE)))
    assert Counter(service.calls) == Counter(map(str, range(ROWS + ROWS_PER_FILE)))


def _of_door(door: str) -> Any:
    """DataFrame -> the same with a column `twice` that has been awaited."""

    async def double(value: int) -> int:
        return 2 * value

    if door == "column":
        return lambda df: df.withColumn("twice", async_pandas_udf(double, "long", timeout=30.0)("value"))
    wait = ordered_wait if door == "ordered" else unordered_wait
    return lambda df: wait(df, double, "twice long", timeout=30.0)


DOORS = pytest.mark.parametrize("door", ["column", "ordered", "unordered"])


@DOORS
def test_a_rate_may_come_in_and_foreach_batch_may_end_it(spark: SparkSession, tmp_path: Path, door: str) -> None:
    seen: dict[int, list[tuple[int, int]]] = {}
    enough = threading.Event()

    def keep(df: DataFrame, batch: int) -> None:
        seen[batch] = [(row.value, row.twice) for row in df.collect()]
        if sum(map(len, seen.values())) >= 20:
            enough.set()

    source = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 2).load()
    writer = _of_door(door)(source).writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert enough.wait(PATIENCE), query.exception()
    finally:
        query.stop()
    rows = sorted(row for rows in seen.values() for row in rows)
    assert rows == [(n, 2 * n) for n in range(len(rows))]


class Lines:
    """A server on loopback that gives lines to whoever connects."""

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


def test_a_socket_may_come_in_and_the_console_may_end_it(lines: Lines) -> None:
    """A query for each door, in a process whose console can be read."""
    doors = ["ordered", "unordered"] + ["column"] * hasattr(F, "arrow_udf")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("SPARK_HOME", None)
    command = [sys.executable, str(Path(__file__).with_name("console_job.py")), str(lines.port), *doors]
    rows: list[tuple[int, int]] = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        watchdog = threading.Timer(PATIENCE, os.killpg, (job.pid, signal.SIGKILL))
        watchdog.start()
        try:
            while len(rows) < len(doors) * ROWS and (line := job.stdout.readline()):
                rows += [(int(one), int(two)) for one, two in re.findall(r"\| *(\d+)\| *(\d+)\|", line)]
        finally:
            watchdog.cancel()
            os.killpg(job.pid, signal.SIGKILL)
    assert sorted(rows) == sorted(len(doors) * [(n, 2 * n) for n in range(ROWS)])


def test_a_stream_may_end_in_memory(stream: Stream) -> None:
    async def double(id: int) -> int:  # noqa: A002 - the column is called so
        return 2 * id

    df = stream.read().transform(ordered_wait, double, "twice long", timeout=30.0)
    query = df.writeStream.format("memory").queryName("doubled").trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    assert [row.twice for row in stream.spark.table("doubled").orderBy("id").collect()] == list(range(0, 2 * ROWS, 2))
