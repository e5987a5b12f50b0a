"""Streaming queries with state, on machines of any speed, and what their sinks have committed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException

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


def committed(sink: Path | str, columns: tuple[str, ...] = ("id", "answer")) -> list[SimpleNamespace]:
    """These columns of the rows that a Parquet sink has committed.

    Reads the sink's log and files without Spark: to poll with a Spark job costs more than the query itself.
    """
    logs = [path for path in Path(sink, "_spark_metadata").glob("*") if path.stem.isdigit()]
    entries = [json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines()[1:]]
    files = sorted({unquote(urlparse(entry["path"]).path) for entry in entries})
    return [SimpleNamespace(**row) for file in files for row in pq.read_table(file, columns=list(columns)).to_pylist()]
