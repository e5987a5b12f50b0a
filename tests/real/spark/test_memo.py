"""The memo in real queries: the calls are counted at a service."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.service import Service
from tests.support import PATIENCE, thorough_except
from udfs import Memo, MemoError, keyed_wait, ordered_wait, unordered_wait

KEYS = 20


async def fails(key: int) -> str:
    raise ConnectionError("no answer")


def keyed_by_key(df: DataFrame, *arguments: Any, **options: Any) -> DataFrame:
    return keyed_wait(df, *arguments, key="key", **options)


EACH = pytest.mark.parametrize(
    "wait",
    thorough_except([unordered_wait], [ordered_wait, unordered_wait, keyed_by_key]),
    ids=lambda wait: wait.__name__,
)


@pytest.fixture
def visits(spark: SparkSession) -> DataFrame:
    """Two hundred rows in four partitions, each of which has all twenty keys."""
    return spark.range(0, 200, 1, 4).withColumn("key", F.col("id") % KEYS)


@EACH
def test_each_key_is_called_once_in_all_tasks_and_never_again(
    visits: DataFrame, service: Service, wait: Any, tmp_path: Path
) -> None:
    out = wait(visits, service.client.ask, "answer string", inputs=["key"], memo=tmp_path / "memo", timeout=PATIENCE)
    assert out.columns == ["id", "key", "answer"]
    for _ in range(2):
        assert sorted(map(tuple, out.collect())) == [(n, n % KEYS, str(n % KEYS)) for n in range(200)]
        assert Counter(service.calls) == Counter(map(str, range(KEYS)))


@pytest.mark.parametrize(
    "combined",
    [
        lambda _, out: out.coalesce(1),
        lambda visits, out: visits.where("id < 0").coalesce(1).withColumn("answer", F.lit("")).union(out),
    ],
    ids=["coalesce", "union"],
)
def test_tasks_that_spark_combines_or_numbers_anew_use_the_memo(
    visits: DataFrame, service: Service, combined: Callable[..., DataFrame], tmp_path: Path
) -> None:
    """The number of a task is then not that of the partition that has its keys."""
    ask, memo = service.client.ask, tmp_path / "memo"
    out = combined(visits, unordered_wait(visits, ask, "answer string", inputs=["key"], memo=memo, timeout=PATIENCE))
    for _ in range(2):
        assert sorted(row.answer for row in out.collect()) == sorted(str(n % KEYS) for n in range(200))
        assert Counter(service.calls) == Counter(map(str, range(KEYS)))


@pytest.mark.variation
def test_ordered_wait_keeps_the_order_of_the_rows_and_of_their_partitions(
    visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    df = visits.coalesce(2)
    out = ordered_wait(df, service.client.ask, "answer string", inputs=["key"], memo=tmp_path, timeout=PATIENCE)
    assert [row.id for row in out.collect()] == list(range(200))
    assert Counter(service.calls) == Counter(map(str, range(KEYS)))


@pytest.mark.variation
def test_keyed_wait_keeps_the_order_of_each_key(visits: DataFrame, service: Service, tmp_path: Path) -> None:
    out = keyed_by_key(visits, service.client.ask, "answer string", inputs=["key"], memo=tmp_path, timeout=PATIENCE)
    ids: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for row in out.collect():
        ids[row.key, row.id // 50].append(row.id)
    assert Counter(service.calls) == Counter(map(str, range(KEYS)))
    assert len(ids) == 4 * KEYS
    assert all(each == sorted(each) for each in ids.values())


@pytest.mark.variation
@EACH
def test_columns_may_have_the_names_of_the_columns_that_a_memo_adds(
    visits: DataFrame, service: Service, wait: Any, tmp_path: Path
) -> None:
    df = visits.where("id < 20").selectExpr("key", "'a' as __udfs_bucket", "7 as __udfs_place")
    out = wait(df, service.client.ask, "answer string", inputs=["key"], memo=tmp_path / "memo", timeout=PATIENCE)
    assert out.columns == [*df.columns, "answer"]
    assert sorted(map(tuple, out.collect())) == [(n, "a", 7, str(n)) for n in range(20)]


def test_a_new_column_with_such_a_name_is_refused(visits: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the new column '__udfs_place' has a reserved name: give it another one"):
        ordered_wait(visits, fails, "__udfs_place string", inputs=["key"], memo=tmp_path, timeout=PATIENCE)


@pytest.mark.variation
def test_a_memo_grows_takes_answers_from_elsewhere_and_follows_renamed_columns(
    spark: SparkSession, service: Service, tmp_path: Path
) -> None:
    """Each step finds the answers of all steps before it: no key is called twice."""
    client = service.client

    async def weather(*_: Any) -> dict[str, Any]:
        await client.ask("call")
        return {"temp": 0.5, "wind": None}

    async def with_rain(*values: Any) -> dict[str, Any]:
        return {**await weather(*values), "rain": 7.0}

    memo = Memo(str(tmp_path / "memo"), name="weather")
    cities = spark.range(4).selectExpr("concat('c', id) as city", "cast(id as int) as hour")
    ask = partial(unordered_wait, function=with_rain, timeout=PATIENCE)
    two = "temp double, wind double"
    some = cities.where("hour < 3")
    assert len(ask(some, function=weather, schema=two, inputs=["city", "hour"], memo=memo).collect()) == 3
    three = f"{two}, rain double"
    rows = ask(cities, schema=three, inputs=["city", "hour"], memo=memo).collect()
    assert sorted((row.hour, row.temp, row.rain) for row in rows) == [
        (0, 0.5, None),
        (1, 0.5, None),
        (2, 0.5, None),
        (3, 0.5, 7.0),
    ]
    assert len(service.calls) == 4
    with pytest.raises(MemoError, match="add rain to its schema"):
        ask(cities, schema=two, inputs=["city", "hour"], memo=memo)
    with pytest.raises(TypeError, match="the column 'answer' must be struct"):
        memo.add(memo.read(spark).withColumn("answer", F.lit("warm")))

    old = F.to_timestamp(F.lit("2001-01-01"))
    imported = spark.range(3, 10).selectExpr(
        "named_struct('hour', cast(id as int), 'city', concat('c', id)) as inputs",
        "named_struct('temp', 9.0D) as answer",
    )
    assert memo.add(imported.withColumn("answered_at", old)) == 7
    assert Memo(str(tmp_path / "memo")).compact() == 10
    towns = spark.range(10).selectExpr("concat('c', id) as town", "cast(id as int) as hour")
    renamed = Memo(memo.path, name="weather", renamed={"city": "town"})
    rows = ask(towns, schema=three, inputs=["town", "hour"], memo=renamed).collect()
    assert sorted((row.hour, row.temp) for row in rows) == [(n, 0.5 if n < 4 else 9.0) for n in range(10)]
    assert len(service.calls) == 4
    with pytest.raises(MemoError, match=r"has inputs .*renamed in Memo\(path, renamed=\.\.\.\)"):
        ask(towns, schema=three, inputs=["town", "hour"], memo=memo)


TYPES = {
    "boolean": "key % 2 = 0",
    "tinyint": "cast(key as tinyint)",
    "float": "float(if(key = 0, double('NaN'), key / 2))",
    "double": "if(key = 0, double('NaN'), if(key = 1, double('-0.0'), if(key = 2, double('0.0'), double(key))))",
    "decimal": "cast(key / 3 as decimal(38, 18))",
    "string": "concat('é', key)",
    "binary": "cast(cast(key as string) as binary)",
    "date": "date_add(date'2013-01-01', cast(key as int))",
    "timestamp": "timestamp_seconds(1383454800 + 1800 * key)",  # around the end of summer time
    "timestamp_ntz": "cast(timestamp_seconds(key) as timestamp_ntz)",
    "interval": "make_dt_interval(cast(key as int))",
    "struct": "if(key < 3, null, struct(key, if(key % 2 = 0, null, cast(key as string)) as text))",
    "array": "if(key < 3, null, array(key, null))",
}


@pytest.mark.thorough
def test_values_of_every_type_are_keys_and_answers(
    spark: SparkSession, visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    """One query with a column of each type, with nulls: the second run makes no call and has the same answers."""
    client = service.client

    async def same(*values: Any) -> Any:
        await client.ask("call")
        return values

    df = visits.selectExpr(*(f"if(key % 5 = 4, null, {each}) as `{name}`" for name, each in TYPES.items()), "key")
    schema = ", ".join(f"a_{each.name} {each.dataType.simpleString()}" for each in df.schema.fields)
    out = unordered_wait(df, same, schema, inputs=df.columns, memo=tmp_path, timeout=PATIENCE)
    equal = F.lit(True)
    for name in df.columns:
        equal &= F.col(name).eqNullSafe(F.col(f"a_{name}"))
    for _ in range(3):
        assert out.where(equal).count() == 200
        assert len(service.calls) == KEYS
        Memo(str(tmp_path)).compact()
    answers = Memo(str(tmp_path)).read(spark).select("answer.*", *(f"inputs.`{name}`" for name in df.columns))
    assert answers.where(equal).count() == KEYS
    assert [each.dataType for each in answers.schema.fields[: len(df.columns)]] == [
        each.dataType for each in out.schema.fields[len(df.columns) :]
    ]


ANSWERS: dict[str, Any] = {
    "map<string, array<int>>": {"a": [1, None]},
    "varchar(3)": "abc",
    "interval day to hour": timedelta(hours=3),
    "struct<a: array<struct<b: map<int, double>>>>": {"a": [{"b": {1: math.nan}}, None]},
    "struct<a: void, b: int>": {"a": None, "b": 1},
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_of_nested_and_rare_types_are_remembered(
    spark: SparkSession, service: Service, tmp_path: Path, kind: str
) -> None:
    client = service.client

    async def constant(key: int) -> Any:
        await client.ask(key)
        return ANSWERS[kind]

    df = spark.range(3).withColumnRenamed("id", "key")
    out = unordered_wait(df, constant, f"answer {kind}", memo=tmp_path, timeout=PATIENCE)
    expected = sorted(map(str, out.collect()))
    for _ in range(2):
        assert sorted(map(str, out.collect())) == expected
        assert len(service.calls) == 3
        Memo(str(tmp_path)).compact()
    answers = Memo(str(tmp_path)).read(spark).select("inputs.key", "answer")
    assert sorted(map(str, answers.collect())) == expected


def test_types_that_parquet_cannot_store_are_refused_when_the_plan_is_built(visits: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"memo cannot store the inputs or the answers .*: give them other types"):
        unordered_wait(visits, fails, "answer struct<>", inputs=["key"], memo=tmp_path, timeout=PATIENCE)


@pytest.mark.variation
def test_a_memo_without_answers_has_no_rows(spark: SparkSession, visits: DataFrame, tmp_path: Path) -> None:
    memo = Memo(str(tmp_path / "memo"))
    out = unordered_wait(visits, fails, "answer string", memo=memo, on_error="null", timeout=PATIENCE)
    for _ in range(2):
        read = memo.read(spark)
        assert dict(read.dtypes) == {
            "bucket": "int",
            "key": "binary",
            "inputs": "struct<key:bigint>",
            "answer": "string",
            "error": "struct<type:string,message:string,attempts:int,seconds:double>",
            "answered_at": "timestamp",
            "function": "string",
            "version": "string",
        }
        assert read.count() == 0
        assert out.count() == 200


@pytest.mark.variation
def test_the_path_of_a_memo_is_not_a_pattern_and_other_files_do_no_harm(
    spark: SparkSession, visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    for name in ("m*o", "memo", "m[e]mo", "m{e,o}mo", "m?mo"):
        memo = Memo(str(tmp_path / name))
        df = visits.withColumn("key", F.concat(F.lit(name), "key"))
        unordered_wait(df, service.client.ask, "answer string", inputs=["key"], memo=memo, timeout=PATIENCE).count()
        for other in ("README.md", "part-0.parquet", "_memo.json"):
            (tmp_path / name / other).write_text("hello")
    for name in ("m*o", "memo", "m[e]mo", "m{e,o}mo", "m?mo"):
        memo = Memo(str(tmp_path / name))
        assert {row.answer for row in memo.read(spark).collect()} == {f"{name}{n}" for n in range(KEYS)}
        assert memo.compact() == KEYS


@pytest.mark.variation
def test_two_queries_may_declare_nested_nulls_differently(visits: DataFrame, service: Service, tmp_path: Path) -> None:
    client = service.client

    async def nested(key: dict[str, int]) -> dict[str, Any]:
        return {"of": {"text": await client.ask(key["n"])}}

    for key, schema in (
        ("struct(key as n)", "of struct<text: string not null>"),
        ("struct(if(key < 0, null, key) as n)", "of struct<text: string>"),
        ("struct(coalesce(key, 0) as n)", "of struct<text: string not null>"),
    ):
        df = visits.selectExpr("id", f"{key} as key")
        rows = unordered_wait(df, nested, schema, inputs=["key"], memo=tmp_path, timeout=PATIENCE).collect()
        assert all(row.of.text == str(row.key.n) for row in rows)
        assert len(service.calls) == KEYS


def test_sql_can_read_the_memo_as_a_table(
    spark: SparkSession, visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    memo = Memo(str(tmp_path))
    unordered_wait(visits, service.client.ask, "answer string", inputs=["key"], memo=memo, timeout=PATIENCE).count()
    for _ in range(2):
        rows = memo.read(spark).select("inputs.key", "answer", "error", "function", "version").collect()
        assert sorted(map(tuple, rows)) == [(n, str(n), None, "ask", "1") for n in range(KEYS)]
        sql = f"select distinct inputs.key, answer from parquet.`{tmp_path}` where error is null"
        assert sorted(map(tuple, spark.sql(sql).collect())) == [(n, str(n)) for n in range(KEYS)]
        assert memo.compact() == KEYS


async def weather(key: int) -> float:
    return key / 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"event_time": "ts", "max_out_of_orderness": "1 minute"},
            ValueError,
            "memo and event_time exclude each other",
        ),
        ({"memo": Memo("m", remember_failures_for=60.0)}, ValueError, "remember_failures_for=60.0 needs on_error="),
        ({"inputs": ["tags"]}, TypeError, "memo needs inputs whose values can be compared, and 'tags' is map<int,int>"),
    ],
    ids=["event_time", "failures", "map"],
)
def test_arguments_that_exclude_each_other_are_refused(
    visits: DataFrame, tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    df = visits.withColumn("ts", F.timestamp_seconds("id")).withColumn("tags", F.expr("map(1, 2)"))
    with pytest.raises(error, match=message):
        unordered_wait(df, weather, "temp double", **{"memo": tmp_path / "m", "timeout": PATIENCE, **arguments})
    assert not (tmp_path / "m").exists()


def test_a_key_that_is_not_an_input_is_refused(visits: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"memo needs the key among the inputs, and id is not"):
        keyed_wait(visits, weather, "temp double", key="id", inputs=["key"], memo=tmp_path, timeout=PATIENCE)


@pytest.mark.thorough
def test_two_queries_at_once_leave_one_answer_for_each_key(
    spark: SparkSession, visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    """Each has one task. The service answers when both have called the same keys."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    memo = Memo(str(tmp_path))
    ask = service.client.ask
    queries = [
        unordered_wait(visits, ask, "answer string", inputs=["key"], memo=memo, timeout=PATIENCE) for _ in range(2)
    ]
    spark.conf.set("spark.sql.shuffle.partitions", partitions)

    async def when_both_ask(question: str) -> str:
        await service.until(lambda: len(service.calls) == 2 * KEYS)
        return question

    service.answer = when_both_ask
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(query.collect) for query in queries]
        for each in both:
            assert sorted(map(tuple, each.result(PATIENCE))) == [(n, n % KEYS, str(n % KEYS)) for n in range(200)]
    assert queries[0].count() == 200
    assert Counter(service.calls) == dict.fromkeys(map(str, range(KEYS)), 2)
    assert memo.read(spark).count() == KEYS


def test_answers_expire_and_failures_are_remembered_for_a_while(
    visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    client = service.client

    async def ask(key: int) -> str:
        answer = await client.ask(key)
        if key % 2:
            raise ConnectionError("no answer")
        return answer

    expected = [
        (Memo(str(tmp_path)), KEYS),
        (Memo(str(tmp_path)), KEYS // 2),  # failures are not remembered
        (Memo(str(tmp_path), remember_failures_for=3600.0), KEYS // 2),
        (Memo(str(tmp_path), remember_failures_for=3600.0), 0),
        (Memo(str(tmp_path), remember_failures_for=3600.0, max_age=1e-6), KEYS // 2),
    ]
    for memo, calls in expected:
        before = len(service.calls)
        out = unordered_wait(visits, ask, "answer string", memo=memo, on_error="column", timeout=PATIENCE).collect()
        assert len(service.calls) - before == calls
        assert all((row.answer is None) == (row.error is not None) == bool(row.key % 2) for row in out)


@pytest.mark.parametrize("wait", [ordered_wait, keyed_by_key], ids=lambda wait: wait.__name__)
def test_a_stream_cannot_be_sorted(spark: SparkSession, wait: Any, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate").load().withColumnRenamed("value", "key")
    with pytest.raises(ValueError, match=r"_wait with a memo sorts its rows, .* use unordered_wait, or call"):
        wait(stream, weather, "temp double", inputs=["key"], memo=tmp_path, timeout=PATIENCE)


def test_a_stream_calls_each_key_once_over_its_micro_batches_and_restarts(
    spark: SparkSession, visits: DataFrame, service: Service, tmp_path: Path
) -> None:
    """A source of two files, one for each micro-batch. Without its checkpoint, the query reads them again."""
    source, memo = str(tmp_path / "source"), tmp_path / "memo"
    visits.coalesce(1).write.parquet(source)
    visits.withColumn("key", F.col("key") + 10).coalesce(1).write.mode("append").parquet(source)
    stream = spark.readStream.schema("id long, key long").option("maxFilesPerTrigger", 1).parquet(source)
    out = unordered_wait(stream, service.client.ask, "answer string", inputs=["key"], memo=memo, timeout=PATIENCE)
    for run in ("first", "second"):
        writer = out.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / run / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / run / "sink"))
        assert query.awaitTermination(PATIENCE)
        assert query.exception() is None
        rows = spark.read.parquet(str(tmp_path / run / "sink")).collect()
        assert len(rows) == 400
        assert all(row.answer == str(row.key) for row in rows)
        assert Counter(service.calls) == Counter(map(str, range(KEYS + 10)))


@pytest.mark.variation
def test_a_job_that_runs_again_groups_only_missing_rows(spark: SparkSession, service: Service, tmp_path: Path) -> None:
    client = service.client

    async def ask_many(keys: list[int]) -> list[str]:
        await client.ask(",".join(map(str, keys)))
        return [f"<{key}>" for key in keys]

    for numbers, missing in ((range(0, 12, 3), {0, 3, 6, 9}), (range(12), {1, 2, 4, 5, 7, 8, 10, 11})):
        service.calls.clear()
        df = spark.range(numbers.start, numbers.stop, numbers.step, 1)
        options: dict[str, Any] = {"inputs": ["id"], "memo": tmp_path, "timeout": PATIENCE, "group": 4}
        out = ordered_wait(df, ask_many, "answer string", **options)
        assert [row.answer for row in out.collect()] == [f"<{key}>" for key in numbers]
        groups = [list(map(int, call.split(","))) for call in service.calls]
        assert {key for group in groups for key in group} == missing
        assert [len(group) for group in groups] == [4] * (len(missing) // 4)
