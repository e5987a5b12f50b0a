"""Memo: a directory of answers, as the user names, reads and fills it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

from trio_asyncio_io.integration import check_number

from .._memo.answers import BUCKETS, Freshness, contents_of, new_fields
from .._memo.directory import Directory
from .._memo.location import absolute
from .._memo.merge import compact, merge
from .._sent.arrow_types import arrow_type, plan_type
from .._spark_thread.memo_table import add_answers, read_answers
from .._urls import without_user
from .memo_layout import bucket_of, calling_partitions, hashed_to, nullable, spark_types
from .row_plan import BUCKET_COLUMN
from .worker_python import for_map_in_arrow, use_the_drivers_python


@dataclass(frozen=True, slots=True, repr=False)
class Memo:
    """A directory of answers, so that a DataFrame operator calls its function once for each key.

    The key of a row is its input columns. A key that the memo has is answered without a call. Any other is called once
    in the query, however many rows and tasks have it, and its answer is written to the directory while the query runs.
    A query that is killed and started again pays for the calls that were in flight and, on an object store, for answers
    of the last `write_every` seconds. A failure is not remembered, nor is a result of `on_timeout`.

    One function has one memo; all of its queries may use it at the same time. If two queries miss a key at the same
    time, both call.

    Args:
        path: A directory that the driver and all workers see: a local path, or a URI that Arrow (`s3://`, `gs://`,
            `hdfs://`, `abfs://`) or an installed fsspec package can write. It is made if it does not exist. A `~` at
            the beginning of a local path is the driver's home directory.
        max_age: Seconds for which an answer counts; above 0, `math.inf` (the default) forever. An older one is called
            again.
        remember_failures_for: Seconds for which a call that failed is not repeated; 0 (the default) for never. Its rows
            fail with the same error. Needs `on_error="null"` or `"column"`.
        version: The version of the function's answers. Answers of another version do not count. "1" by default.
        name: The name of the function, if it has been renamed since the memo was made. None (the default): its name.
        renamed: New names of input columns that have been renamed since the memo was made: `{"city": "town"}` if the
            memo has `city` and the query has `town`. None (the default): none.
        write_every: Seconds until an answer survives a crash of the machine, at least 0 and finite; 1 by default. On a
            file system, an answer that is written survives its process. On an object store, it is written after this
            time.

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
    renamed: Mapping[str, str] | None = field(default=None, kw_only=True, hash=False)
    write_every: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", _path(self.path))
        noun, legal = "a number of seconds", "at least 0 seconds"
        check_number("max_age", self.max_age, "above 0 seconds", lambda number: number > 0, noun=noun)
        check_number("remember_failures_for", self.remember_failures_for, legal, lambda number: number >= 0, noun=noun)
        legal = "finite and at least 0 seconds"
        check_number("write_every", self.write_every, legal, lambda number: 0 <= number < math.inf, noun=noun)
        version: Any = self.version
        if not isinstance(version, str):
            raise TypeError(f'version must be a string such as "2", got {self.version!r}')
        name: Any = self.name
        if name is not None and not (isinstance(name, str) and name):
            raise TypeError(f"name must be the name of a function, got {self.name!r}")
        if self.renamed is not None:
            object.__setattr__(self, "renamed", _renamed(self.renamed))

    def __repr__(self) -> str:
        options = ((each, getattr(self, each.name)) for each in fields(self)[1:])
        given = "".join(f", {each.name}={value!r}" for each, value in options if value != each.default)
        return f"Memo({without_user(self.path)!r}{given})"

    def compact(self) -> int:
        """Merge the files into few, and drop answers that are older than `max_age` or have a newer one.

        Runs where: in the calling process, which reads about 32 MiB of files at a time. Queries may use the memo
        meanwhile, and other processes may compact it. If the process is killed, no answer is lost. Old files are
        removed by a later query or compaction, after ten minutes at least.

        Returns:
            The number of answers, without those of tasks that are running.

        Raises:
            MemoError: There is no memo at the path, or a file is damaged. The message names it.
            OSError: The directory cannot be written.
        """
        return compact(Directory.existing(self.path), self._freshness())

    def read(self, spark: SparkSession) -> DataFrame:
        """The answers as a DataFrame, one row for each key: the latest that counts, or the latest failure.

        Columns: `bucket`, `key`, `inputs` (a struct), `answer`, `error` (a struct, null for an answer), `answered_at`,
        `function` and `version`. Runs where: in workers, which must see the path. Each action reads the files again.

        Args:
            spark: A classic or remote session.

        Raises:
            MemoError: There is no memo at the path. An action also raises it, if a file is damaged.
        """
        use_the_drivers_python(spark)
        schema = Directory.existing(self.path).schema
        reading = partial(read_answers, self.path, schema, self._freshness())
        buckets = spark.range(0, BUCKETS, 1, calling_partitions(spark))
        found: DataFrame = buckets.mapInArrow(for_map_in_arrow("read_memo", reading), spark_types(schema))
        return found

    def add(self, df: DataFrame) -> int:
        """Add answers from elsewhere, such as a table or another memo, so that their rows need no call.

        They have columns as in `read`: `inputs` (a struct), `answer` and `answered_at`. If there is an `error`, only
        rows where it is null are added. Fields that `answer` lacks are null. Other columns are ignored. The memo must
        exist, as it does after a query with it was built.

        The latest answer for a key counts, so `answered_at` decides between an added answer and one that the memo has,
        and `max_age` counts from it. It has no default: the present would hide newer answers, and the distant past
        would expire. If the time is unknown, choose one.

        Runs where: in workers, which must see the path. If it fails or is killed, some answers are added; adding them
        again does no harm.

        Args:
            df: The answers.

        Returns:
            The number of answers that were added.

        Raises:
            MemoError: There is no memo at the path, or a file is damaged.
            TypeError: A column has another type than the memo.
            ValueError: A column is missing.

        An `answered_at` that is null, or more than an hour ahead of a worker's clock, fails the Spark job.

        Example:
            paid = spark.read.parquet("/data/paid").selectExpr(
                "struct(city) as inputs", "temp as answer", "paid_at as answered_at"
            )
            Memo("/data/weather").add(paid)
        """
        directory = Directory.existing(self.path)
        use_the_drivers_python(df.sparkSession)
        check_answers(df.schema, spark_types(directory.schema))
        if "error" in df.columns:
            df = df.where("error IS NULL")
        spread = [F.col("inputs").getField(name) for name in contents_of(directory.schema)["spread_by"]]
        partitions = calling_partitions(df.sparkSession)
        rows = df.select("inputs", "answer", "answered_at", bucket_of(spread).alias(BUCKET_COLUMN))
        rows = rows.repartition(partitions, hashed_to(F.col(BUCKET_COLUMN), partitions))
        adding = partial(add_answers, self.path, directory.schema, self.version, partitions)
        counts = rows.mapInArrow(for_map_in_arrow("add_to_memo", adding), "answers bigint").collect()
        merge(directory)
        return sum(row["answers"] for row in counts)

    def _freshness(self) -> Freshness:
        return Freshness.at(time.time(), self.max_age, self.remember_failures_for)


def as_memo(memo: Any) -> Memo:
    """The memo itself, or the memo at a path.

    Raises:
        TypeError: It is neither.
    """
    return memo if isinstance(memo, Memo) else Memo(memo)


def check_answers(given: T.StructType, types: T.StructType) -> None:
    """Check the columns of answers to add.

    Args:
        given: The columns of the DataFrame.
        types: The columns of the memo.

    Raises:
        TypeError: One has another type.
        ValueError: One is missing.
    """
    for name in ("inputs", "answer", "answered_at"):
        if given.names.count(name) != 1:
            raise ValueError(
                f"df must have one column {name!r}, has {', '.join(given.names)}: name the columns as Memo.read does"
            )
        wanted, found = types[name].dataType, plan_type(given[name].dataType)
        lacking = new_fields(arrow_type(nullable(found)), arrow_type(wanted))
        if lacking is None or (lacking and name == "inputs"):
            raise TypeError(
                f"the column {name!r} must be {wanted.simpleString()}, got {found.simpleString()}: cast it, and name "
                "its fields as in the memo"
            )


def _renamed(given: Any) -> dict[str, str]:
    is_mapping = isinstance(given, Mapping) and all(isinstance(name, str) for pair in given.items() for name in pair)
    if not is_mapping or len(set(given.values())) < len(given):
        raise TypeError(f'renamed must map old to new names, such as {{"city": "town"}}, got {given!r}')
    return dict(given)


def _path(given: Any) -> str:
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise TypeError(f'memo must be a path such as "/data/weather", or a Memo, got {given!r}')
    return absolute(str(os.fspath(given)))
