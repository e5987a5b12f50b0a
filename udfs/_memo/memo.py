"""The public class `Memo`."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from .answers import Freshness
from .compaction import compact
from .files import MemoFiles
from .location import absolute

__all__ = ["Memo", "as_memo"]


@dataclass(frozen=True, slots=True)
class Memo:
    """A directory of answers, so that a DataFrame operator calls its function once for each key.

    The key of a row is its input columns. A key that the memo has is answered without a call. Any other is called once
    in the query, however many rows and tasks have it, and its answer is written to the directory while the query runs.
    A query that is killed and started again pays for what is missing: the calls that were in flight and, on an object
    store, answers of the last `write_every` seconds. A failure is not remembered, nor is a result of `on_timeout`.
    Tasks merge small files when there are more than 100.

    One function has one memo; all of its queries may use it at the same time. Two that miss the same key at once both
    call.

    Args:
        path: A directory that the driver and all workers see: a local path, or a URI that Arrow (`s3://`, `gs://`,
            `hdfs://`, `abfs://`) or an installed fsspec package can write. It is made if it does not exist.
        max_age: Seconds for which an answer counts; above 0, `math.inf` (the default) forever. An older one is called
            again.
        remember_failures_for: Seconds for which a call that failed is not repeated; 0 (the default) for never. Its rows
            fail with the same error. Needs `on_error="null"` or `"column"`.
        version: The version of the function's answers. Answers of another version do not count. "1" by default.
        name: The name of the function, if it has been renamed since the memo was made. None (the default): its name.
        write_every: Seconds until an answer is in a Parquet file, at least 0 and finite; 1 by default. A task writes
            one file in this time. On a file system, answers are in a journal until then.

    Raises:
        TypeError, ValueError: An argument is out of range; the message names it and its value.

    Example:
        unordered_wait(df, weather, "temp double", timeout=5.0, memo="/data/weather")
        memo = Memo("/data/weather", max_age=86_400.0)
        unordered_wait(df, weather, "temp double", timeout=5.0, memo=memo)
    """

    __module__ = "udfs"

    path: str
    max_age: float = field(default=math.inf, kw_only=True)
    remember_failures_for: float = field(default=0.0, kw_only=True)
    version: str = field(default="1", kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    write_every: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", _path(self.path))
        for seconds in ("max_age", "remember_failures_for", "write_every"):
            _check_seconds(seconds, getattr(self, seconds))
        if not self.max_age > 0:
            raise ValueError(f"max_age must be above 0 seconds, got {self.max_age!r}")
        if self.write_every == math.inf:
            raise ValueError("write_every must be finite, got inf")
        version: Any = self.version
        if not isinstance(version, str):
            raise TypeError(f'version must be a string such as "2", got {self.version!r}')
        name: Any = self.name
        if name is not None and not (isinstance(name, str) and name):
            raise TypeError(f"name must be the name of a function, got {self.name!r}")

    def compact(self) -> int:
        """Merge the files into few, and drop answers that are older than `max_age` or have a newer one.

        Runs where: in the calling process, which reads one bucket (1/256 of the memo) at a time, and the files that no
        task has merged. Queries may use the memo meanwhile. If the process is killed, no answer is lost. Old files are
        removed by a later query or compaction, after ten minutes at least.

        Returns:
            The number of answers.

        Raises:
            FileNotFoundError: Another process compacts the memo at the same time.
            MemoError: A file cannot be read.
        """
        return compact(MemoFiles(self.path), self.freshness(time.time()))

    def read(self, spark: Any) -> DataFrame:
        """The answers as a DataFrame, one row for each key: the latest that counts, or the latest failure.

        Columns: `bucket`, `key`, `inputs` (a struct), `answer`, `error` (a struct, null for an answer), `answered_at`,
        `function` and `version`.

        Args:
            spark: A session that can read the path.
        """
        fresh = self.freshness(time.time())
        at = F.col("answered_at").cast("double")
        since = F.when(F.col("error").isNull(), F.lit(fresh.since)).otherwise(F.lit(fresh.failures_since))
        path = self.path if "://" in self.path else f"file://{self.path}"
        rows = spark.read.parquet(path).where(at >= since)
        newest = F.max_by(F.struct(*rows.columns), "answered_at").alias("newest")
        found: DataFrame = rows.groupBy("key").agg(newest).select("newest.*")
        return found

    def freshness(self, now: float) -> Freshness:
        """Which answers count at this time, in seconds since the epoch."""
        return Freshness.at(now, self.max_age, self.remember_failures_for)


def as_memo(memo: Any) -> Memo:
    """The memo itself, or that of a path.

    Raises:
        TypeError: It is neither.
    """
    return memo if isinstance(memo, Memo) else Memo(memo)


def _path(given: Any) -> str:
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise TypeError(f'memo must be a path such as "/data/weather", or a Memo, got {given!r}')
    return absolute(str(os.fspath(given)))


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, got {value!r}")
    if not value >= 0:
        raise ValueError(f"{name} must be at least 0 seconds, got {value!r}")
