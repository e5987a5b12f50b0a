"""Memo: the public class, and the query behind an operator with a memo, in which rows of one key go to one task."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

from trio_asyncio_io.integration import check_number

from .._memo.answers import BUCKETS, CONTENTS, Freshness, contents_of, new_fields
from .._memo.directory import Directory
from .._memo.location import absolute
from .._memo.merge import compact, merge
from .._sent.arrow_types import arrow_type, parts_of, plan_type
from .._sent.bucket_ids import bucket_ids
from .._sent.extra_columns import ERROR_TYPE
from .._sent.settings import MemoSettings, Settings
from .._spark_thread.memo_rows import MemoRows
from .._spark_thread.memo_table import add_answers, read_answers
from .._spark_version import VariantType
from .._urls import without_user
from .row_plan import BUCKET_COLUMN, PLACE_COLUMN, RowPlan
from .schema import check_collations
from .session import shuffle_partitions, task_slots
from .worker_python import for_map_in_arrow, use_the_drivers_python

# `monotonically_increasing_id` has the number of the partition above this many bits.
_PLACE_BITS: Final = 33

_PARTITIONS_PER_SLOT: Final = 2

# The metadata of a file with the Spark types of its columns.
_SPARK_TYPES: Final = b"udfs.spark"

# Types with an Arrow type whose equal values may differ in Python
_NOT_COMPARABLE: Final = (T.MapType, T.NullType, VariantType)


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
        types = T.StructType.fromJson(json.loads(schema.metadata[_SPARK_TYPES]))
        reading = partial(read_answers, self.path, schema, self._freshness())
        buckets = spark.range(0, BUCKETS, 1, calling_partitions(spark))
        found: DataFrame = buckets.mapInArrow(for_map_in_arrow("read_memo", reading), types)
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
        types = T.StructType.fromJson(json.loads(directory.schema.metadata[_SPARK_TYPES]))
        check_answers(df.schema, types)
        if "error" in df.columns:
            df = df.where("error IS NULL")
        spread = [F.col("inputs").getField(name) for name in contents_of(directory.schema)["spread_by"]]
        partitions = calling_partitions(df.sparkSession)
        rows = df.select("inputs", "answer", "answered_at", bucket_of(spread).alias(BUCKET_COLUMN))
        rows = rows.repartition(partitions, _hashed_to(F.col(BUCKET_COLUMN), partitions))
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


def check_memo(memo: Memo, df: DataFrame, mode: str, *, on_error: str, event_time: Any, carry_over: Any) -> None:
    """Check that the memo can be used with these arguments.

    Args:
        memo: The memo.
        df: The DataFrame to enrich.
        mode: The mode of the operator, such as "ordered".
        on_error, event_time, carry_over: From the user.

    Raises:
        ValueError: It cannot.
    """
    for name, value in (("event_time", event_time), ("carry_over", carry_over)):
        if value is not None:
            raise ValueError(
                f"memo and {name} exclude each other: with a memo, the rows of one key are brought together, and leave "
                "the order in which they arrive"
            )
    if df.isStreaming and mode != "unordered":
        raise ValueError(
            f"{mode}_wait with a memo sorts its rows, which Spark cannot do in a stream: use unordered_wait, or call "
            f"{mode}_wait inside foreachBatch"
        )
    if memo.remember_failures_for and on_error == "raise":
        raise ValueError(
            f'remember_failures_for={memo.remember_failures_for!r} needs on_error="null" or "column": with '
            '"raise", the first failure ends the query'
        )


def query_with_memo(plan: RowPlan, memo: Memo) -> DataFrame:
    """The enriched DataFrame. The memo is made if it does not exist, and its small files are merged.

    Raises:
        MemoError: The memo belongs to another function, or to other types.
        OSError: It cannot be written.
        TypeError: The values of an input cannot be compared, or the types cannot be stored.
        ValueError: A key is not among the inputs, or no file system for the path is installed.
    """
    enrichment, df = plan.enrichment, plan.source
    mode = enrichment.settings.options.mode
    keeps_order = mode != "unordered"
    partitions = calling_partitions(df.sparkSession)
    settings = memo_settings(plan, memo, partitions)
    claim(settings)
    if keeps_order:
        df = df.withColumn(PLACE_COLUMN, F.monotonically_increasing_id())
    spread = [F.col(plan.source.columns[n]) for n in enrichment.key or enrichment.inputs]
    df = df.withColumn(BUCKET_COLUMN, bucket_of(spread))
    df = df.repartition(partitions, _hashed_to(F.col(BUCKET_COLUMN), partitions))
    if settings.in_buckets:
        df = df.sortWithinPartitions(BUCKET_COLUMN, *([PLACE_COLUMN] if keeps_order else []))
    enrichment = replace(enrichment, settings=_unordered(enrichment.settings))
    run = for_map_in_arrow(
        enrichment.settings.function.name, lambda batches: MemoRows(enrichment, settings).run(batches)
    )
    fields, number = plan.schema.fields, len(plan.columns)
    place = [T.StructField(PLACE_COLUMN, T.LongType())] if keeps_order else []
    # Old answers may have nulls where this query declares NOT NULL
    new = [T.StructField(each.name, _nullable(each.dataType), metadata=each.metadata) for each in fields[number:]]
    with_results = df.mapInArrow(run, T.StructType([*fields[:number], *place, *new]))
    if not keeps_order:
        return with_results
    if mode == "ordered":
        with_results = _in_partitions(with_results)
    return with_results.sortWithinPartitions(PLACE_COLUMN).drop(PLACE_COLUMN)


def memo_schema(function: str, inputs: T.StructType, answer: T.DataType, spread_by: tuple[str, ...]) -> pa.Schema:
    """The columns of a memo's files.

    Args:
        function: The name of the function.
        inputs: The input columns of a call.
        answer: The type of an answer: of the new column, a struct of several, or an array of these with `flatten`.
        spread_by: The names of the input columns whose hash is the bucket.
    """
    contents = {
        "format": 1,
        "function": function,
        "inputs": plan_type(inputs).simpleString(),
        "answer": plan_type(answer).simpleString(),
        "spread_by": list(spread_by),
        "buckets": BUCKETS,
    }
    types = T.StructType().add("bucket", "integer").add("key", "binary")
    types = types.add("inputs", _nullable(plan_type(inputs))).add("answer", _nullable(plan_type(answer)))
    types = types.add("error", ERROR_TYPE).add("answered_at", "timestamp")
    types = types.add("function", "string").add("version", "string")
    metadata = {CONTENTS: json.dumps(contents, sort_keys=True), _SPARK_TYPES: types.json()}
    return pa.schema(list(arrow_type(types)), metadata=metadata)


def memo_settings(plan: RowPlan, memo: Memo, partitions: int) -> MemoSettings:
    """How each task uses the memo.

    Args:
        plan: The operator.
        memo: The memo.
        partitions: The number of tasks.

    Raises:
        TypeError: The values of an input cannot be compared.
        ValueError: A key or a renamed column is not among the inputs, or two inputs have one name.
    """
    enrichment = plan.enrichment
    inputs = T.StructType([plan.columns.fields[n] for n in dict.fromkeys(enrichment.inputs)])
    for each in inputs.fields:
        _check_input_type(each.name, each.dataType)
    if not set(enrichment.key) <= set(enrichment.inputs):
        names = [plan.columns.names[n] for n in enrichment.key if n not in enrichment.inputs]
        raise ValueError(
            f"memo needs the key among the inputs, and {', '.join(names)} is not: rows with equal inputs would be in "
            "several tasks. Add it to inputs, or leave it out of key"
        )
    answer = T.ArrayType(enrichment.output_type) if enrichment.flatten else enrichment.output_type
    function = memo.name or enrichment.settings.function.name
    old_names = _old_names(memo.renamed or {}, inputs.names)
    inputs = T.StructType([T.StructField(old_names[each.name], each.dataType, each.nullable) for each in inputs])
    spread_by = tuple(old_names[plan.columns.names[n]] for n in enrichment.key or enrichment.inputs)
    return MemoSettings(
        memo.path,
        memo_schema(function, inputs, answer, spread_by),
        answer,
        memo.version,
        memo.max_age,
        memo.remember_failures_for,
        memo.write_every,
        partitions,
        in_buckets=not plan.source.isStreaming,
    )


def claim(settings: MemoSettings) -> None:
    """Make the memo, or check that it has the same contents. Merge its files if there are many.

    Raises:
        MemoError: It belongs to another function, or to other types.
        OSError: It cannot be written.
        TypeError: The types cannot be stored.
    """
    directory = Directory(settings.path, settings.schema)
    try:
        directory.claim()
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"memo cannot store the inputs or the answers ({error}): give them other types") from error
    merge(directory)


def _check_input_type(name: str, dtype: T.DataType) -> None:
    """Check that equal values of an input have equal keys.

    Raises:
        TypeError: They do not: there is a map, a variant, a collation or the like in the type.
    """
    if any(isinstance(part, _NOT_COMPARABLE) for part in parts_of(dtype)):
        raise TypeError(
            f"memo needs inputs whose values can be compared, and {name!r} is {dtype.simpleString()}: "
            "cast it, or use its parts or a string such as to_json(...)"
        )
    check_collations("memo", name, dtype)


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
        lacking = new_fields(arrow_type(_nullable(found)), arrow_type(wanted))
        if lacking is None or (lacking and name == "inputs"):
            raise TypeError(
                f"the column {name!r} must be {wanted.simpleString()}, got {found.simpleString()}: cast it, and name "
                "its fields as in the memo"
            )


def bucket_of(spread: Sequence[Column]) -> Column:
    """The bucket of the rows. Rows with equal values have the same one."""
    return F.pmod(F.hash(*spread), F.lit(BUCKETS))


def _old_names(renamed: Mapping[str, str], inputs: Sequence[str]) -> dict[str, str]:
    """The name in the memo of each input.

    Raises:
        ValueError: A renamed column is not an input, or two inputs would have one name.
    """
    if strangers := [new for new in renamed.values() if new not in inputs]:
        raise ValueError(
            f"renamed={renamed!r} must give the new names of inputs, and {strangers[0]!r} is not among "
            f"{', '.join(inputs)}: write {{name in the memo: name in the query}}"
        )
    old = {name: name for name in inputs} | {new: old for old, new in renamed.items()}
    if len(set(old.values())) < len(old):
        raise ValueError(f"renamed={renamed!r} gives two of the inputs {', '.join(inputs)} one name: rename both")
    return old


def _renamed(given: Any) -> dict[str, str]:
    is_mapping = isinstance(given, Mapping) and all(isinstance(name, str) for pair in given.items() for name in pair)
    if not is_mapping or len(set(given.values())) < len(given):
        raise TypeError(f'renamed must map old to new names, such as {{"city": "town"}}, got {given!r}')
    return dict(given)


def _nullable(dtype: T.DataType) -> T.DataType:
    """The type with nulls allowed everywhere: two queries of one function may declare them differently."""
    if isinstance(dtype, T.StructType):
        return T.StructType([T.StructField(each.name, _nullable(each.dataType)) for each in dtype.fields])
    if isinstance(dtype, T.ArrayType):
        return T.ArrayType(_nullable(dtype.elementType))
    if isinstance(dtype, T.MapType):
        return T.MapType(_nullable(dtype.keyType), _nullable(dtype.valueType))
    return dtype


def _unordered(settings: Settings) -> Settings:
    """Settings without the order of the rows, which are sorted later: no answer has to wait for an earlier row."""
    options = settings.options
    return settings if options.mode == "keyed" else replace(settings, options=replace(options, mode="unordered"))


def calling_partitions(session: Any) -> int:
    """The number of partitions of the calling stage: two for each task that can run at once, so that all of them call.

    Spark's own number is the upper limit, and the number if the tasks are not limited. Small partitions are not
    coalesced, because calls take the time, not bytes.
    """
    limit = min(BUCKETS, shuffle_partitions(session))
    try:
        return min(limit, _PARTITIONS_PER_SLOT * task_slots(session))
    except ValueError:
        return limit


def _hashed_to(number: Column, partitions: int) -> Column:
    """A column whose hash spreads consecutive numbers over consecutive partitions. Their own hash does not."""
    ids = F.array(*map(F.lit, bucket_ids(partitions)))
    return F.element_at(ids, (number % partitions + 1).cast("int"))


def _in_partitions(df: DataFrame) -> DataFrame:
    """The rows in partitions in the order of those that they came from. Rows of one partition stay together."""
    origin = F.shiftright(F.col(PLACE_COLUMN), _PLACE_BITS)
    return df.repartition(_hashed_to(origin, shuffle_partitions(df.sparkSession)))


def _path(given: Any) -> str:
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise TypeError(f'memo must be a path such as "/data/weather", or a Memo, got {given!r}')
    return absolute(str(os.fspath(given)))
