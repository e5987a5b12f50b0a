"""Streaming queries over files, also with state and on machines of any speed, and what their sinks have committed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.streaming import DataStreamWriter

from tests.support import PATIENCE

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Spark gives the worker of its state store ten seconds to start, which is not enough on a busy machine
TOO_SLOW_FOR_SPARK = "failed to connect back"


class PatientQuery:
    """A streaming query that is restarted when Spark did not wait for the worker of its state store.

    Args:
        start: Starts the query and returns it. The query continues from its checkpoint.

    Attributes:
        query: The query that was started last.
    """

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self.query = start()

    def has_ended(self, seconds: float) -> bool:
        """Wait up to this long, and return whether the query has ended. Raises the query's own exception."""
        try:
            return bool(self.query.awaitTermination(seconds))
        except StreamingQueryException as error:
            if TOO_SLOW_FOR_SPARK not in str(error):
                raise
            self.query = self._start()
            return False


class FileStream:
    """A folder of files, one for each micro-batch, and a query that writes what it makes of them to another folder.

    The query can be started again: it continues from its checkpoint.

    Attributes:
        columns: Those of the sink that are read.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.source, self.sink, self.checkpoint = (str(folder / name) for name in ("source", "sink", "checkpoint"))
        self.columns: tuple[str, ...] = ("id", "answer")
        self._running: PatientQuery | None = None

    @classmethod
    def of_two_files(cls, session: SparkSession, folder: Path, rows: int) -> Self:
        """The numbers from 0 on with timestamps, in two micro-batches."""
        made = cls(session, folder)
        for start, end in ((0, rows // 2), (rows // 2, rows)):
            made.add(start, end, ts="timestamp_seconds(id)")
        return made

    def add(self, start: int, end: int, **columns: str) -> None:
        """Add a file with the numbers from `start` on as the column `id`, and with these expressions."""
        rows = self.session.range(start, end, 1, 1).select("id", *(F.expr(e).alias(n) for n, e in columns.items()))
        rows.write.mode("append").parquet(self.source)

    def read(self) -> DataFrame:
        schema = self.session.read.parquet(self.source).schema
        return self.session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(self.source)

    def run(self, df: DataFrame) -> list[Any]:
        """The rows of the sink when a query has read all files."""
        query = self._writer(df).trigger(availableNow=True).start(self.sink)
        assert query.awaitTermination(PATIENCE)
        assert query.exception() is None
        return committed(self.sink, self.columns)

    def start(self, df: DataFrame) -> None:
        """Start a query that waits for more files."""
        writer = self._writer(df).trigger(processingTime="0 seconds")
        self._running = PatientQuery(lambda: writer.start(self.sink))

    @property
    def query(self) -> Any:
        """The query that was started last."""
        assert self._running is not None
        return self._running.query

    def until(self, predicate: Callable[[list[Any]], bool]) -> list[Any]:
        """The committed rows as soon as the predicate holds; the query's own exception if it fails before."""
        assert self._running is not None
        deadline = time.monotonic() + PATIENCE
        while not predicate(rows := committed(self.sink, self.columns)):
            assert not self._running.has_ended(0.05), "the query has ended"
            assert time.monotonic() < deadline, f"{len(rows)} rows are committed: {rows}"
        return rows

    def stop(self) -> None:
        if self._running is not None:
            self.query.stop()

    def _writer(self, df: DataFrame) -> DataStreamWriter:
        return df.writeStream.format("parquet").option("checkpointLocation", self.checkpoint)


def committed(sink: Path | str, columns: tuple[str, ...] = ("id", "answer")) -> list[SimpleNamespace]:
    """These columns of the rows that a Parquet sink has committed.

    Reads the sink's log and files without Spark: to poll with a Spark job costs more than the query itself.
    """
    logs = [path for path in Path(sink, "_spark_metadata").glob("*") if path.stem.isdigit()]
    entries = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    files = sorted({unquote(urlparse(entry["path"]).path) for entry in entries})
    return [SimpleNamespace(**row) for file in files for row in pq.read_table(file, columns=list(columns)).to_pylist()]
