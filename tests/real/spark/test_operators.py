"""The DataFrame operators: whole rows, their order, and what is carried along."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from random import random
from typing import Any
from uuid import uuid4

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from udfs import AsyncFunction, keyed_wait, ordered_wait, unordered_wait

ROWS = 100
PARTITIONS = 4


def keyed_by_id(df: DataFrame, *arguments: Any, **options: Any) -> DataFrame:
    return keyed_wait(df, *arguments, key="id", **options)


DOORS = pytest.mark.parametrize("wait", [ordered_wait, unordered_wait, keyed_by_id], ids=lambda wait: wait.__name__)


async def describe(id: int) -> dict[str, Any]:  # noqa: A002 - the column is called so
    await trio.sleep(random() / 100)
    return {"ten": 10 * id, "text": f"row {id}"}


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 99 in four partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, PARTITIONS)


class LastFirst(AsyncFunction[int, int]):
    """Of the `count` rows of a partition, which run all at once, each ends after the one behind it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.name = uuid4().hex  # another test's, with the same bytes, would be the same instance

    async def open(self) -> None:
        self.done: defaultdict[tuple[int, int], trio.Event] = defaultdict(trio.Event)

    async def invoke(self, id: int) -> int:  # type: ignore[override]  # noqa: A002 - the column is called so
        partition, place = divmod(id, self.count)
        if place + 1 < self.count:
            await self.done[partition, place + 1].wait()
            await trio.testing.wait_all_tasks_blocked()  # until the one before has been emitted
        self.done[partition, place].set()
        return place


def places(df: DataFrame) -> list[list[int]]:
    """The column `place` of each partition, in the order in which its rows came out."""
    rows = df.select(F.spark_partition_id().alias("partition"), "place").collect()
    return [[row.place for row in group] for _, group in groupby(rows, lambda row: row.partition)]


@DOORS
def test_new_columns_stand_behind_the_old_ones_and_every_row_keeps_its_own(numbers: DataFrame, wait: Any) -> None:
    df = numbers.withColumn("half", F.col("id") / 2)
    out = wait(df, describe, "ten long, text string", timeout=30.0, capacity=20)
    assert out.columns == ["id", "half", "ten", "text"]
    assert sorted(map(tuple, out.collect())) == [(n, n / 2, 10 * n, f"row {n}") for n in range(ROWS)]


@DOORS
def test_transform_takes_them(numbers: DataFrame, wait: Any) -> None:
    out = numbers.transform(wait, describe, "ten long, text string", timeout=30.0).where("ten < 30")
    assert sorted(row.text for row in out.collect()) == ["row 0", "row 1", "row 2"]


@DOORS
def test_the_inputs_may_be_named_in_any_order_and_case(numbers: DataFrame, wait: Any) -> None:
    async def minus(left: int, right: int) -> int:
        return left - right

    df = numbers.limit(3).withColumn("Other", F.lit(10))
    out = wait(df, minus, "difference long", inputs=["OTHER", "ID"], timeout=30.0).collect()
    assert sorted(map(tuple, out)) == [(0, 10, 10), (1, 10, 9), (2, 10, 8)]


@DOORS
def test_each_row_is_asked_for_once(numbers: DataFrame, wait: Any, service: Any) -> None:
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    out = wait(numbers, ask, "answer string", timeout=30.0).where("answer <> '7'").withColumn("again", F.col("answer"))
    assert out.count() == ROWS - 1
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


EVERYTHING = {
    "tiny": "cast(id as tinyint)",
    "small": "cast(id as smallint)",
    "number": "cast(id as int)",
    "nan": "cast('NaN' as float)",
    "infinity": "double('-Infinity')",
    "flag": "id % 2 = 0",
    "price": "cast(123456789.123456789 as decimal(38, 18))",
    "text": "concat('Zürich ✈ ', id)",
    "raw": "X'00FF'",
    "day": "date'1582-10-04'",
    "instant": "timestamp'2013-11-03 01:30:00.123456'",
    "wall": "timestamp_ntz'2013-03-10 02:30:00.000001'",
    "span": "interval '1 02:03:04.000005' day to second",
    "nested": "array(array(1, null), null, array())",
    "mapped": "map('a', struct(timestamp'2013-07-01 12:00:00' as at, array(1.50bd) as prices), 'b', null)",
    "inner": "named_struct('x', 1.5d, 'inner', named_struct('tags', array('a', null), 'raw', X'01'))",
    "nothing": "null",
}


@DOORS
def test_columns_of_every_type_are_carried_as_they_are(spark: SparkSession, wait: Any) -> None:
    columns = [f"if(id % 3 = 1, null, {expression}) as {name}" for name, expression in EVERYTHING.items()]
    df = spark.range(0, 40, 1, 2).selectExpr("id", *columns)
    out = wait(df, describe_as, "ten long", inputs=["id"], timeout=30.0, capacity=10)
    assert out.drop("ten").schema == df.schema
    before = {row.id: repr(row) for row in df.collect()}
    after = {row.id: repr(row) for row in out.drop("ten").collect()}
    assert after == before


async def describe_as(value: int) -> int:
    await trio.sleep(random() / 100)
    return 10 * value


@DOORS
def test_flattened_rows_come_out_0_to_n_times(numbers: DataFrame, wait: Any) -> None:
    async def repeat(id: int) -> list[dict[str, Any]]:  # noqa: A002 - the column is called so
        await trio.sleep(random() / 100)
        return [{"copy": copy, "of": id} for copy in range(id % 4)]

    out = wait(numbers, repeat, "copy int, of long", flatten=True, timeout=30.0).collect()
    assert sorted(map(tuple, out)) == [(n, copy, n) for n in range(ROWS) for copy in range(n % 4)]


def test_ordered_keeps_the_order_of_each_partition_though_the_last_ends_first(spark: SparkSession) -> None:
    """The results of ten rows are there in falling order before the first may go out."""
    out = ordered_wait(spark.range(0, 20, 1, 2), LastFirst(10), "place int", timeout=30.0)
    assert places(out) == [list(range(10))] * 2


def test_unordered_lets_faster_rows_go_first(spark: SparkSession) -> None:
    out = unordered_wait(spark.range(0, 20, 1, 2), LastFirst(10), "place int", timeout=30.0)
    assert places(out) == [list(range(9, -1, -1))] * 2


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_no_row_crosses_a_watermark_in_its_partition(spark: SparkSession, kind: str) -> None:
    """Three rows to the minute, and a bound of one minute: a wall behind the first row of each second minute."""
    minute = F.floor(F.col("id") % 12 / 3) * 60
    df = spark.range(0, 24, 1, 2).withColumn("ts", F.timestamp_seconds(minute).cast(kind))
    out = unordered_wait(df, LastFirst(12), "place int", timeout=30.0, event_time="ts", max_out_of_orderness="1 minute")
    assert places(out) == [[0, 3, 2, 1, 6, 5, 4, 9, 8, 7, 11, 10]] * 2


def test_rows_without_event_time_wait_for_nobody_and_are_not_lost(numbers: DataFrame) -> None:
    df = numbers.withColumn("ts", F.when(F.col("id") % 2 == 0, F.timestamp_seconds("id")))
    out = unordered_wait(
        df, describe_as, "ten long", inputs=["id"], timeout=30.0, event_time="TS", max_out_of_orderness="5 seconds"
    )
    assert sorted(row.ten for row in out.collect()) == [10 * n for n in range(ROWS)]


def test_keyed_asks_for_one_row_of_a_key_at_a_time_and_in_order(spark: SparkSession, service: Any) -> None:
    """In each of two partitions there are five keys; a key's calls never overlap, those of others do."""
    client = service.client
    running: set[str] = set()

    async def answer(question: str) -> str:
        key = question.partition(":")[0]
        assert key not in running
        running.add(key)
        await trio.sleep(random() / 100)
        running.remove(key)
        return question

    async def ask(account: str, id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(f"{account}:{id}")

    service.answer = answer
    df = spark.range(0, ROWS, 1, 2).selectExpr("id", f"concat(id div {ROWS // 2}, '-', id % 5) as account")
    out = keyed_wait(df, ask, "answer string", key=["account"], timeout=30.0, capacity=20).collect()
    assert sorted(row.answer for row in out) == sorted(f"{row.account}:{row.id}" for row in df.collect())
    for account in {row.account for row in out}:
        came_out = [row.id for row in out if row.account == account]
        asked = [int(call.split(":")[1]) for call in service.calls if call.startswith(f"{account}:")]
        assert came_out == asked == sorted(came_out)
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
        keyed_wait(df, describe, "ten long, text string", key=key, timeout=30.0)


def test_operators_follow_each_other(numbers: DataFrame) -> None:
    out = (
        numbers.transform(ordered_wait, describe, "ten long, text string", timeout=30.0)
        .where("ten % 20 = 0")
        .transform(unordered_wait, describe_as, "more long", inputs=["ten"], timeout=30.0)
    )
    assert sorted((row.id, row.more) for row in out.collect()) == [(n, 100 * n) for n in range(0, ROWS, 2)]
