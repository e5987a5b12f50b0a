"""The DataFrame operators: whole rows, their order, and their other columns."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path
from random import random
from typing import Any
from uuid import uuid4

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.service import Service
from tests.support import PATIENCE, thorough_except
from udfs import AsyncFunction, keyed_wait, ordered_wait, unordered_wait

ROWS = 100
PARTITIONS = 4


def keyed_by_id(df: DataFrame, *arguments: Any, **options: Any) -> DataFrame:
    return keyed_wait(df, *arguments, key="id", **options)


WAITS = [ordered_wait, unordered_wait, keyed_by_id]
EACH = pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.__name__)
ONE = pytest.mark.parametrize("wait", thorough_except([keyed_by_id], WAITS), ids=lambda wait: wait.__name__)


async def describe(id: int) -> dict[str, Any]:  # noqa: A002 - the name of the column
    await trio.sleep(random() / 100)
    return {"ten": 10 * id, "text": f"row {id}"}


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 99 in four partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, PARTITIONS)


class LastFirst(AsyncFunction[int, int]):
    """The `count` rows of a partition run at once, and the last completes first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.name = uuid4().hex  # with the same bytes as in another test, it would be the same instance

    async def open(self) -> None:
        self.done: defaultdict[tuple[int, int], trio.Event] = defaultdict(trio.Event)

    async def invoke(self, id: int) -> int:  # type: ignore[override]  # noqa: A002 - the name of the column
        partition, place = divmod(id, self.count)
        if place + 1 < self.count:
            await self.done[partition, place + 1].wait()
            await trio.testing.wait_all_tasks_blocked()  # until the one before has been emitted
        self.done[partition, place].set()
        return place


def places(df: DataFrame) -> list[list[int]]:
    """The column `place` of each partition, in the order in which its rows were emitted."""
    rows = df.select(F.spark_partition_id().alias("partition"), "place").collect()
    return [[row.place for row in group] for _, group in groupby(rows, lambda row: row.partition)]


@EACH
def test_new_columns_follow_the_old_ones_and_every_row_gets_its_own(numbers: DataFrame, wait: Any) -> None:
    df = numbers.withColumns({"half": F.col("id") / 2, "nothing": F.lit(None)})
    out = wait(df, describe, "ten long, text string", timeout=PATIENCE, capacity=20)
    assert out.columns == ["id", "half", "nothing", "ten", "text"]
    assert out.schema["nothing"] == df.schema["nothing"]
    assert sorted(map(tuple, out.collect())) == [(n, n / 2, None, 10 * n, f"row {n}") for n in range(ROWS)]


@ONE
def test_the_inputs_may_be_named_in_any_order_and_case(numbers: DataFrame, wait: Any) -> None:
    async def minus(left: int, right: int) -> int:
        return left - right

    df = numbers.limit(3).withColumn("Other", F.lit(10))
    out = wait(df, minus, "difference long", inputs=["OTHER", "ID"], timeout=PATIENCE).collect()
    assert sorted(map(tuple, out)) == [(0, 10, 10), (1, 10, 9), (2, 10, 8)]


@ONE
def test_each_row_is_called_once(numbers: DataFrame, wait: Any, service: Service) -> None:
    out = (
        wait(numbers, service.client.ask, "answer string", inputs=["id"], timeout=PATIENCE)
        .where("answer <> '7'")
        .withColumn("again", F.col("answer"))
    )
    assert out.count() == ROWS - 1
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


@ONE
@pytest.mark.parametrize(
    "others",
    [pytest.param([], marks=pytest.mark.variation), ["1 as `a.b`", "2 as x", "3 as x"]],
    ids=["plain names", "odd names"],
)
def test_the_schema_of_arrow_data_may_be_validated(
    spark: SparkSession, wait: Any, others: list[str], tmp_path: Path
) -> None:
    """Columns that are NOT NULL stay so, also with a memo."""
    df = spark.range(4).selectExpr("id", "named_struct('x', id, 'tags', array('a')) as inner", *others)
    key = "spark.sql.execution.arrow.pyspark.validateSchema.enabled"
    spark.conf.set(key, "true")
    try:
        for options in ({}, {"memo": tmp_path}):
            out = wait(df, describe_as, "ten long", inputs=["id"], timeout=PATIENCE, on_error="column", **options)
            assert sorted(row.ten for row in out.collect()) == [0, 10, 20, 30]
    finally:
        spark.conf.unset(key)


async def describe_as(value: int) -> int:
    await trio.sleep(random() / 100)
    return 10 * value


@ONE
def test_a_flattened_row_has_zero_or_more_outputs(numbers: DataFrame, wait: Any) -> None:
    async def repeat(id: int) -> list[dict[str, Any]]:  # noqa: A002 - the name of the column
        await trio.sleep(random() / 100)
        return [{"copy": copy, "of": id} for copy in range(id % 4)]

    out = wait(numbers, repeat, "copy int, of long", flatten=True, timeout=PATIENCE).collect()
    assert sorted(map(tuple, out)) == [(n, copy, n) for n in range(ROWS) for copy in range(n % 4)]


@ONE
def test_a_left_lookup_join_keeps_misses_and_makes_no_call_for_null(numbers: DataFrame, wait: Any) -> None:
    async def repeat(id: int, odd: int) -> list[int]:  # noqa: A002 - the name of the column
        return [odd] * (id % 4)

    df = numbers.withColumn("odd", F.when(F.col("id") % 2 == 1, F.col("id")))
    out = wait(df, repeat, "copy long", flatten="outer", skip_nulls=True, metadata="call", timeout=PATIENCE).collect()
    expected = [(n, n if n % 2 else None, n % 2) for n in range(ROWS) for _ in range(n % 4 if n % 2 else 1)]
    assert sorted((row.id, row.copy, row.call.attempts) for row in out) == expected


def test_ordered_keeps_the_order_of_each_partition_though_the_last_row_completes_first(spark: SparkSession) -> None:
    """Ten rows complete in reverse order before the first may be emitted."""
    out = ordered_wait(spark.range(0, 20, 1, 2), LastFirst(10), "place int", timeout=PATIENCE)
    assert places(out) == [list(range(10))] * 2


def test_unordered_lets_faster_rows_go_first(spark: SparkSession) -> None:
    out = unordered_wait(spark.range(0, 20, 1, 2), LastFirst(10), "place int", timeout=PATIENCE)
    assert places(out) == [list(range(9, -1, -1))] * 2


@pytest.mark.parametrize("kind", thorough_except(["timestamp"], ["timestamp", "timestamp_ntz"]))
def test_no_row_crosses_a_watermark_in_its_partition(spark: SparkSession, kind: str) -> None:
    """Three rows a minute and a bound of one minute: a watermark after the first row of every minute but the first."""
    minute = F.floor(F.col("id") % 12 / 3) * 60
    df = spark.range(0, 24, 1, 2).withColumn("ts", F.timestamp_seconds(minute).cast(kind))
    out = unordered_wait(
        df, LastFirst(12), "place int", timeout=PATIENCE, event_time="ts", max_out_of_orderness="1 minute"
    )
    assert places(out) == [[0, 3, 2, 1, 6, 5, 4, 9, 8, 7, 11, 10]] * 2


def test_rows_without_event_time_do_not_wait_and_are_not_lost(numbers: DataFrame) -> None:
    df = numbers.withColumn("ts", F.when(F.col("id") % 2 == 0, F.timestamp_seconds("id")))
    out = unordered_wait(
        df, describe_as, "ten long", inputs=["id"], timeout=PATIENCE, event_time="TS", max_out_of_orderness="5 seconds"
    )
    assert sorted(row.ten for row in out.collect()) == [10 * n for n in range(ROWS)]


def test_keyed_calls_one_row_of_a_key_at_a_time_and_in_order(spark: SparkSession, service: Service) -> None:
    """Each of two partitions has five keys. Calls of one key never overlap, calls of several do."""
    client = service.client
    running: set[str] = set()

    async def answer(question: str) -> str:
        key = question.partition(":")[0]
        assert key not in running
        running.add(key)
        await trio.sleep(random() / 100)
        running.remove(key)
        return question

    async def ask(account: str, id: int) -> str:  # noqa: A002 - the name of the column
        return await client.ask(f"{account}:{id}")

    service.answer = answer
    df = spark.range(0, ROWS, 1, 2).selectExpr("id", f"concat(id div {ROWS // 2}, '-', id % 5) as account")
    out = keyed_wait(df, ask, "answer string", key=["account"], timeout=PATIENCE, capacity=20).collect()
    assert sorted(row.answer for row in out) == sorted(f"{row.account}:{row.id}" for row in df.collect())
    for account in {row.account for row in out}:
        emitted = [row.id for row in out if row.account == account]
        called = [int(call.split(":")[1]) for call in service.calls if call.startswith(f"{account}:")]
        assert emitted == called == sorted(emitted)
    assert service.peak_running > 2


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("nobody", "no such column: 'nobody' \\(columns: id, tags"),
        ([], r"key must be a list of one or more names of columns, got \[\]"),
        (["id", "tags"], "key must be columns of plain values, and 'tags' is array<int>"),
    ],
)
def test_a_bad_key_is_refused_when_the_plan_is_built(spark: SparkSession, key: Any, message: str) -> None:
    df = spark.range(3).withColumn("tags", F.array(F.lit(1)))
    with pytest.raises((TypeError, ValueError), match=message):
        keyed_wait(df, describe, "ten long, text string", key=key, timeout=PATIENCE)
