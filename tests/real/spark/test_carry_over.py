"""Carry-over: stragglers do not delay the micro-batch, and each row is written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.service import Service
from tests.streaming import ROCKSDB, STATE_STORE, FileStream
from tests.support import PATIENCE, thorough_except
from udfs import CarryOver, keyed_wait, ordered_wait, unordered_wait
from udfs._sent.bucket_ids import bucket_ids

SHORT = CarryOver(budget=0.2)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with RocksDB as its state store, in the JVM of all sessions."""
    made = spark.newSession()
    made.conf.set(STATE_STORE, ROCKSDB)
    yield made
    for query in made.streams.active:
        query.stop()
    spark.createDataFrame([(0,)], "id long")  # makes the first session the active one again


@pytest.fixture
def stream(session: SparkSession, tmp_path: Path) -> Iterator[FileStream]:
    made = FileStream(session, tmp_path)
    yield made
    made.stop()


class Held:
    """Makes the service hold some questions until they are released."""

    def __init__(self, service: Service, *questions: int) -> None:
        self.questions = set(map(str, questions))
        echo = service.answer
        self.release = service.hold()
        hold = service.answer

        async def answer(question: str) -> str:
            return await (hold if question in self.questions else echo)(question)

        service.answer = answer


def carried(df: DataFrame, service: Service, *, wait: Any = unordered_wait, **options: Any) -> DataFrame:
    """The DataFrame with the service's answers; stragglers are carried over after a short budget."""
    options = {"timeout": PATIENCE, "carry_over": SHORT, "inputs": ["id"], **options}
    return wait(df, service.client.ask, "answer string", **options)  # type: ignore[no-any-return]


def ids(rows: list[Any]) -> list[int]:
    return sorted(row.id for row in rows)


@pytest.mark.thorough
def test_stragglers_do_not_delay_the_micro_batch_and_come_out_once_without_new_data(
    stream: FileStream, service: Service
) -> None:
    held = Held(service, 0, 5, 10, 15, 19)
    stream.add(0, 20)
    stream.start(carried(stream.read(), service))
    rows = stream.until(lambda rows: len(rows) == 15)  # committed before the five are answered
    assert ids(rows) == [n for n in range(20) if str(n) not in held.questions]
    stream.add(20, 40)
    stream.until(lambda rows: len(rows) == 35)  # nor do they delay the next micro-batch
    held.release()
    rows = stream.until(lambda rows: len(rows) >= 40)  # by a timer: there is no new data
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(40)]
    calls = Counter(service.calls)
    assert all(calls[question] > 1 for question in held.questions)  # they were carried over


def test_the_function_may_use_a_broadcast_variable(stream: FileStream, session: SparkSession) -> None:
    names = session.sparkContext.broadcast({0: "zero", 1: "one"})

    async def name(id: int) -> str:  # noqa: A002 - the column
        return names.value[id]

    stream.add(0, 2)
    stream.start(unordered_wait(stream.read(), name, "answer string", timeout=PATIENCE, carry_over=SHORT))
    rows = stream.until(lambda rows: len(rows) == 2)
    assert {row.id: row.answer for row in rows} == {0: "zero", 1: "one"}


@pytest.mark.thorough
def test_rows_above_the_limit_delay_the_micro_batch(stream: FileStream, service: Service) -> None:
    """A call that takes ten budgets is still answered in the first attempt."""
    echo = service.answer
    none = CarryOver(0.05, 0)

    async def late(question: str) -> str:
        await service.until(lambda: len(service.calls) == 20)
        await trio.sleep(10 * none.budget)
        return await echo(question)

    service.answer = late
    stream.add(0, 20)
    stream.start(carried(stream.read(), service, carry_over=none))
    rows = stream.until(lambda rows: len(rows) >= 20)
    assert ids(rows) == list(range(20))
    assert (sorted(map(int, service.calls)), service.hung_up) == (list(range(20)), [])


@pytest.mark.thorough
def test_a_row_that_is_carried_too_long_is_a_dead_letter(stream: FileStream, service: Service) -> None:
    Held(service, 3)
    stream.add(0, 5)
    stream.columns = ("id", "answer", "error")
    stream.start(carried(stream.read(), service, carry_over=CarryOver(budget=0.2, max_age=0.2), on_error="column"))
    rows = stream.until(lambda rows: len(rows) >= 5)
    assert ids(rows) == list(range(5))
    failed = {row.id: row for row in rows if row.error is not None}  # on a busy machine, others may be late as well
    assert {row.error["type"] for row in failed.values()} == {"CarriedTooLongError"}
    assert failed[3].answer is None
    assert failed[3].error["attempts"] == service.calls.count("3") >= 1


COLUMNS = {
    "flag": "if(id % 2 = 0, null, true)",
    "small": "cast(-id as tinyint)",
    "exact": "cast(id + 0.000000000000000001 as decimal(38, 18))",
    "words": "if(id = 1, null, array('a', null, cast(id as string)))",
    "lookup": "map('k', cast(null as double), cast(id as string), double('NaN'))",
    "nested": "if(id = 2, null, named_struct('x', array(named_struct('y', date'0001-01-01'))))",
    "at": "timestamp'1890-01-01 00:00:00' + make_dt_interval(0, cast(id as int))",
    "wall": "timestamp_ntz'9999-12-31 23:59:59.999999'",
    "lasts": "make_dt_interval(cast(-id as int), 0, 0, 0.000001)",
    "raw": "unhex('00FF')",
    "nothing": "cast(null as string)",
}


@pytest.mark.thorough
def test_rows_of_all_types_come_out_of_the_state_unchanged(stream: FileStream, service: Service) -> None:
    held = Held(service, 0, 1, 2)
    stream.add(0, 3, **COLUMNS)
    stream.start(carried(stream.read(), service))
    service.wait_until(lambda: all(service.calls.count(str(n)) > 1 for n in range(3)))  # they were in the state
    held.release()
    stream.until(lambda rows: len(rows) >= 3)
    shown = F.to_json(F.struct(*COLUMNS)).alias("shown")
    before = stream.session.read.parquet(stream.source).select("id", shown)
    after = stream.session.read.parquet(stream.sink).select("id", shown)
    assert sorted(after.collect()) == sorted(before.collect())


@pytest.mark.thorough
def test_keyed_rows_keep_the_order_of_their_key_when_they_are_carried_over(
    stream: FileStream, service: Service
) -> None:
    held = Held(service, 0, 3)
    stream.add(0, 20, team="id % 3")
    stream.start(carried(stream.read(), service, wait=keyed_wait, key="team"))
    rows = stream.until(lambda rows: len(rows) == 13)
    assert ids(rows) == [n for n in range(20) if n % 3]
    held.release()
    rows = stream.until(lambda rows: len(rows) >= 20)
    assert ids(rows) == list(range(20))
    for team in range(3):
        calls = [int(call) for call in service.calls if int(call) % 3 == team]
        assert calls == sorted(calls)
        assert set(calls) == set(range(team, 20, 3))


def stop_with_two_carried_rows(stream: FileStream, service: Service) -> None:
    held = Held(service, 0, 5)
    stream.add(0, 10)
    stream.start(carried(stream.read(), service))
    stream.until(lambda rows: len(rows) == 8)
    stream.stop()
    held.release()


@pytest.mark.thorough
def test_a_restarted_query_continues_with_the_rows_that_were_carried_over(stream: FileStream, service: Service) -> None:
    stop_with_two_carried_rows(stream, service)
    stream.add(10, 20)
    stream.start(carried(stream.read(), service))
    assert ids(stream.until(lambda rows: len(rows) >= 20)) == list(range(20))


@pytest.mark.thorough
@pytest.mark.parametrize("wait", [keyed_wait, unordered_wait], ids=lambda wait: wait.__name__)
def test_a_query_may_restart_with_another_number_of_shuffle_partitions(
    stream: FileStream, service: Service, wait: Any
) -> None:
    """Spark keeps the checkpoint's number for the state. A key must stay in the bucket that has its earlier rows."""
    held = Held(service, *range(6))
    stream.add(0, 6, team="id % 6")
    key = {"key": "team"} if wait is keyed_wait else {}

    def start(partitions: int) -> None:
        stream.session.conf.set("spark.sql.shuffle.partitions", partitions)
        stream.start(carried(stream.read(), service, wait=wait, **key))

    try:
        start(2)
        service.wait_until(lambda: all(service.calls.count(str(n)) > 1 for n in range(6)))  # they were in the state
        stream.stop()
        stream.add(6, 18, team="id % 6")
        before = Counter(service.calls)
        start(3)
        stream.until(lambda _: any(each["numInputRows"] for each in stream.query.recentProgress))
        service.wait_until(lambda: all(service.calls.count(str(n)) > before[str(n)] + 1 for n in range(6)))
        held.release()
        assert ids(stream.until(lambda rows: len(rows) >= 18)) == list(range(18))
    finally:
        stream.session.conf.set("spark.sql.shuffle.partitions", 2)
    if wait is keyed_wait:
        for team in range(6):
            calls = [int(call) for call in service.calls if int(call) % 6 == team]
            assert calls == sorted(calls)


@pytest.mark.thorough
def test_a_column_of_another_type_is_refused_while_rows_are_carried_over(stream: FileStream, service: Service) -> None:
    Held(service, 0)
    stream.add(0, 1, number="cast(id as float)")

    def start(kind: str) -> None:
        stream.start(carried(stream.read().withColumn("number", F.col("number").cast(kind)), service))

    start("float")
    service.wait_until(lambda: service.calls.count("0") > 1)
    stream.stop()
    stream.add(1, 2, number="cast(id as float)")
    start("double")
    with pytest.raises(StreamingQueryException, match=r"columns id bigint, number float.* id .*dou"):
        stream.until(lambda _: False)


@pytest.mark.thorough
def test_columns_of_any_name_are_carried_over_and_may_be_keys(stream: FileStream, service: Service) -> None:
    held = Held(service, 0)
    stream.add(0, 4)
    df = stream.read().selectExpr("id as `the.id`", "id % 2 as `a``b`")
    out = carried(df, service, wait=keyed_wait, key=["a`b"], inputs=["the.id"])
    assert out.columns == ["the.id", "a`b", "answer"]
    stream.start(out.toDF("id", "key", "answer"))
    assert ids(stream.until(lambda rows: len(rows) == 2)) == [1, 3]
    held.release()
    assert ids(stream.until(lambda rows: len(rows) >= 4)) == [0, 1, 2, 3]
    assert service.calls.index("1") < service.calls.index("3")  # of the same key


@pytest.mark.thorough
def test_a_micro_batch_that_only_the_sink_has_committed_is_not_repeated(stream: FileStream, service: Service) -> None:
    """The driver may die between the two commits. Repeated, the batch would carry other rows over than it wrote."""
    stop_with_two_carried_rows(stream, service)
    for log in ("offsets", "commits"):
        for entry in Path(stream.checkpoint, log).iterdir():
            number = entry.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= (1 if log == "offsets" else 0):
                entry.unlink()
    for later in Path(stream.sink, "_spark_metadata").glob("*[1-9]*"):
        later.unlink()
    stream.add(10, 20)
    stream.start(carried(stream.read(), service))
    assert ids(stream.until(lambda rows: len(rows) >= 20)) == list(range(20))


@pytest.mark.parametrize("partitions", thorough_except([2], [1, 2, 7]))
def test_each_bucket_has_a_partition_of_its_own(session: SparkSession, partitions: int) -> None:
    found = bucket_ids(partitions)
    rows = session.createDataFrame([(bucket,) for bucket in found], "bucket int").repartition(partitions, "bucket")
    assert sorted(row.p for row in rows.select(F.spark_partition_id().alias("p")).collect()) == list(range(partitions))


def test_a_batch_has_no_later_micro_batch_to_carry_to(session: SparkSession, service: Service) -> None:
    with pytest.raises(ValueError, match="carry_over is for a streaming DataFrame"):
        carried(session.range(3), service)


def test_another_state_store_is_refused_with_the_setting_to_set(session: SparkSession, service: Service) -> None:
    other = session.newSession()
    df = other.readStream.format("rate").load().withColumnRenamed("value", "id")
    with pytest.raises(ValueError, match=rf'HDFS.*: set "{STATE_STORE}" to "{ROCKSDB}"'):
        carried(df, service)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"event_time": "timestamp", "max_out_of_orderness": "1 second"},
            ValueError,
            "carry_over and event_time='timestamp' exclude each other",
        ),
        (
            {"wait": ordered_wait},
            TypeError,
            "ordered_wait has no carry_over: one straggler would delay, and carry over",
        ),
        ({"carry_over": 5.0}, TypeError, r"carry_over must be a CarryOver, such as CarryOver\(budget=5\.0\), got 5\.0"),
    ],
    ids=["event time", "an order", "seconds"],
)
def test_what_does_not_go_with_a_carry_over_is_refused(
    session: SparkSession, service: Service, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    endless = session.readStream.format("rate").load().withColumnRenamed("value", "id")
    with pytest.raises(error, match=message):
        carried(endless, service, **options)
