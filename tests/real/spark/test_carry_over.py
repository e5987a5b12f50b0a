"""The carry-over: stragglers do not hold up the micro-batch, and each row comes out once, whatever happens."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from tests.streaming import PatientQuery
from tests.support import PATIENCE
from udfs import CarryOver, keyed_wait, ordered_wait, unordered_wait
from udfs._carry_over.buckets import bucket_ids

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHORT = CarryOver(budget=0.2, max_rows=100)

slow = pytest.mark.timeout(3 * PATIENCE, method="thread")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with the state store that is needed, beside the others' in the same JVM."""
    made = spark.newSession()
    made.conf.set(PROVIDER, ROCKSDB)
    yield made
    for query in made.streams.active:
        query.stop()
    spark.createDataFrame([(0,)], "id long")  # makes the tests' session the active one again


class Stream:
    """A folder of files, one to the micro-batch, and what a query makes of them in another."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.source, self.sink, self.checkpoint = (str(folder / name) for name in ("source", "sink", "checkpoint"))
        self.running: PatientQuery | None = None

    @property
    def query(self) -> Any:
        """The query that was started last."""
        assert self.running is not None
        return self.running.query

    def add(self, start: int, end: int, **columns: str) -> None:
        rows = self.session.range(start, end, 1, 1).select("id", *(F.expr(e).alias(n) for n, e in columns.items()))
        rows.write.mode("append").parquet(self.source)

    def read(self) -> DataFrame:
        schema = self.session.read.parquet(self.source).schema
        return self.session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(self.source)

    def start(self, df: DataFrame) -> None:
        writer = df.writeStream.format("parquet").option("checkpointLocation", self.checkpoint)
        writer = writer.trigger(processingTime="0 seconds")
        self.running = PatientQuery(lambda: writer.start(self.sink))

    def has_ended(self, seconds: float) -> bool:
        """Wait for this long; whether the query has ended. Raises the query's own exception."""
        assert self.running is not None
        return self.running.has_ended(seconds)

    def rows(self) -> list[Any]:
        """What the sink has committed."""
        if not Path(self.sink, "_spark_metadata", "0").exists():
            return []
        return self.session.read.schema(self.schema).parquet(self.sink).collect()

    schema = "id long, answer string"

    def until(self, predicate: Callable[[list[Any]], bool]) -> list[Any]:
        """The committed rows as soon as it is so; the query's own exception if it fails before."""
        for _ in range(int(PATIENCE / 0.1)):
            rows = self.rows()
            if predicate(rows):
                return rows
            assert not self.has_ended(0.1), "the query has ended"
        raise AssertionError(f"{len(rows)} rows are out: {rows}")

    def stop(self) -> None:
        if self.running is not None:
            self.query.stop()


@pytest.fixture
def stream(session: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    made = Stream(session, tmp_path)
    yield made
    made.stop()


class Held:
    """An answer of the service that keeps some questions waiting until they are released."""

    def __init__(self, service: Any, *questions: int) -> None:
        self.questions = {str(each) for each in questions}
        self._service = service
        self._echo = service.answer
        self._hold = service.answer
        self._release = service.hold()
        self._hold, service.answer = service.answer, self

    async def __call__(self, question: str) -> str:
        return str(await (self._hold if question in self.questions else self._echo)(question))

    def release(self) -> None:
        self._release()


@pytest.fixture
def ask(service: Any) -> Callable[[int], Any]:
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    return ask


def ids(rows: list[Any]) -> list[int]:
    return sorted(row.id for row in rows)


@slow
def test_stragglers_do_not_hold_up_the_micro_batch_and_come_out_once_without_new_data(
    stream: Stream, service: Any, ask: Any
) -> None:
    held = Held(service, 0, 5, 10, 15, 19)
    stream.add(0, 20)
    stream.start(unordered_wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=SHORT))
    rows = stream.until(lambda rows: len(rows) == 15)  # committed, and nobody has answered the five
    assert ids(rows) == [n for n in range(20) if str(n) not in held.questions]
    stream.add(20, 40)
    stream.until(lambda rows: len(rows) == 35)  # nor do they hold up the next
    held.release()
    rows = stream.until(lambda rows: len(rows) >= 40)  # a timer, for there is no new data
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(40)]
    calls = Counter(service.calls)
    assert all((calls[str(n)] == 1) == (str(n) not in held.questions) for n in range(40))  # none is paid for twice


@slow
def test_rows_beyond_the_most_hold_up_the_micro_batch(stream: Stream, service: Any, ask: Any) -> None:
    """Whoever waits longer than the budget many times over is still answered in the first call."""
    echo = service.answer

    async def late(question: str) -> str:
        await service.until(lambda: len(service.calls) == 20)
        await trio.sleep(10 * none.budget)
        return str(await echo(question))

    none = CarryOver(budget=0.05, max_rows=0)
    service.answer = late
    stream.add(0, 20)
    stream.start(unordered_wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=none))
    rows = stream.until(lambda rows: len(rows) >= 20)
    assert ids(rows) == list(range(20))
    assert (sorted(map(int, service.calls)), service.hung_up) == (list(range(20)), [])


@slow
def test_a_row_that_is_carried_too_long_is_a_dead_letter(stream: Stream, service: Any, ask: Any) -> None:
    Held(service, 3)
    stream.add(0, 5)
    stream.schema = "id long, answer string, error struct<type string, message string, attempts int, seconds double>"
    short = CarryOver(budget=0.2, max_age=0.2)
    df = unordered_wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=short, on_error="column")
    stream.start(df)
    rows = stream.until(lambda rows: len(rows) >= 5)
    assert ids(rows) == list(range(5))
    [letter] = [row for row in rows if row.error is not None]
    assert (letter.id, letter.answer, letter.error.type) == (3, None, "CarriedTooLongError")
    assert letter.error.attempts == service.calls.count("3") >= 1


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


@slow
def test_rows_of_all_types_come_out_of_the_state_as_they_went_in(stream: Stream, service: Any, ask: Any) -> None:
    held = Held(service, 0, 1, 2)
    stream.add(0, 3, **COLUMNS)
    df = unordered_wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=SHORT, inputs=["id"])
    stream.start(df)
    service.wait_until(lambda: all(service.calls.count(str(n)) > 1 for n in range(3)))  # so they were in the state
    held.release()
    stream.schema = df.schema  # type: ignore[assignment]
    stream.until(lambda rows: len(rows) >= 3)
    shown = F.to_json(F.struct(*COLUMNS)).alias("shown")
    before = stream.session.read.parquet(stream.source).select("id", shown)
    after = stream.session.read.parquet(stream.sink).select("id", shown)
    assert sorted(after.collect()) == sorted(before.collect())


@slow
def test_keyed_rows_keep_the_order_of_their_key_when_they_are_carried_over(
    stream: Stream, service: Any, ask: Any
) -> None:
    held = Held(service, 0, 3)
    stream.add(0, 20, team="id % 3")
    df = keyed_wait(stream.read(), ask, "answer string", key="team", timeout=600.0, carry_over=SHORT, inputs=["id"])
    stream.start(df)
    rows = stream.until(lambda rows: len(rows) == 13)
    assert ids(rows) == [n for n in range(20) if n % 3]
    held.release()
    rows = stream.until(lambda rows: len(rows) >= 20)
    assert ids(rows) == list(range(20))
    for team in range(3):
        calls = [int(each) for each in service.calls if int(each) % 3 == team]
        assert calls == sorted(calls)
        assert set(calls) == set(range(team, 20, 3))


@slow
def test_a_query_that_is_started_again_goes_on_with_what_was_carried_over(
    stream: Stream, service: Any, ask: Any
) -> None:
    held = Held(service, 0, 5)
    stream.add(0, 10)

    def start() -> None:
        stream.start(unordered_wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=SHORT))

    start()
    stream.until(lambda rows: len(rows) == 8)
    stream.stop()
    held.release()
    stream.add(10, 20)
    start()
    assert ids(stream.until(lambda rows: len(rows) >= 20)) == list(range(20))


@slow
@pytest.mark.parametrize("wait", [keyed_wait, unordered_wait], ids=lambda wait: wait.__name__)
def test_a_query_may_be_started_again_with_another_number_of_shuffle_partitions(
    stream: Stream, service: Any, ask: Any, wait: Any
) -> None:
    """Spark keeps the checkpoint's number for the state; keys must go on to the buckets that have their heads."""
    held = Held(service, *range(6))
    stream.add(0, 6, team="id % 6")
    key = {"key": "team"} if wait is keyed_wait else {}

    def start(partitions: int) -> None:
        stream.session.conf.set("spark.sql.shuffle.partitions", partitions)
        df = wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=SHORT, inputs=["id"], **key)
        stream.start(df)

    try:
        start(2)
        service.wait_until(lambda: all(service.calls.count(str(n)) > 1 for n in range(6)))  # they were in the state
        stream.stop()
        stream.add(6, 18, team="id % 6")
        before = Counter(service.calls)
        start(3)
        stream.until(lambda rows: any(each["numInputRows"] for each in stream.query.recentProgress))
        service.wait_until(lambda: all(service.calls.count(str(n)) > before[str(n)] + 1 for n in range(6)))
        held.release()
        assert ids(stream.until(lambda rows: len(rows) >= 18)) == list(range(18))
    finally:
        stream.session.conf.set("spark.sql.shuffle.partitions", 2)
    if wait is keyed_wait:
        for team in range(6):
            calls = [int(each) for each in service.calls if int(each) % 6 == team]
            assert calls == sorted(calls)


@slow
def test_a_column_of_another_type_is_refused_while_rows_are_carried_over(
    stream: Stream, service: Any, ask: Any
) -> None:
    Held(service, 0)
    stream.add(0, 1, number="cast(id as float)")

    def start(kind: str) -> None:
        df = stream.read().withColumn("number", F.col("number").cast(kind))
        stream.start(unordered_wait(df, ask, "answer string", timeout=600.0, carry_over=SHORT, inputs=["id"]))

    start("float")
    service.wait_until(lambda: service.calls.count("0") > 1)
    stream.stop()
    stream.add(1, 2, number="cast(id as float)")
    start("double")
    with pytest.raises(
        StreamingQueryException, match=r"columns id bigint, number float, but the stream now has id .*dou"
    ):
        stream.until(lambda _: False)


@slow
def test_columns_of_any_name_are_carried_over_and_may_be_keys(stream: Stream, service: Any, ask: Any) -> None:
    held = Held(service, 0)
    stream.add(0, 4)
    df = stream.read().selectExpr("id as `the.id`", "id % 2 as `a``b`")
    options: dict[str, Any] = {"key": ["a`b"], "inputs": ["the.id"], "carry_over": SHORT}
    out = keyed_wait(df, ask, "answer string", timeout=600.0, **options)
    assert out.columns == ["the.id", "a`b", "answer"]
    stream.start(out.toDF("id", "key", "answer"))
    assert ids(stream.until(lambda rows: len(rows) == 2)) == [1, 3]
    held.release()
    assert ids(stream.until(lambda rows: len(rows) >= 4)) == [0, 1, 2, 3]
    assert [each for each in service.calls if each in {"1", "3"}] == ["1", "3"]


@slow
def test_a_micro_batch_that_the_sink_has_and_the_checkpoint_has_not_is_not_made_twice(
    stream: Stream, service: Any, ask: Any
) -> None:
    """The driver may die between the two. Made again it would carry other rows over than it has written."""
    held = Held(service, 0, 5)
    stream.add(0, 10)

    def start() -> None:
        stream.start(unordered_wait(stream.read(), ask, "answer string", timeout=600.0, carry_over=SHORT))

    start()
    stream.until(lambda rows: len(rows) == 8)
    stream.stop()
    held.release()
    for log in ("offsets", "commits"):
        for entry in Path(stream.checkpoint, log).iterdir():
            number = entry.name.removeprefix(".").removesuffix(".crc")
            if number.isdigit() and int(number) >= (1 if log == "offsets" else 0):
                entry.unlink()
    for later in Path(stream.sink, "_spark_metadata").glob("*[1-9]*"):
        later.unlink()
    stream.add(10, 20)
    start()
    assert ids(stream.until(lambda rows: len(rows) >= 20)) == list(range(20))


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_each_bucket_has_a_partition_of_its_own(session: SparkSession, partitions: int) -> None:
    found = bucket_ids(partitions)
    rows = session.createDataFrame([(each,) for each in found], "bucket int").repartition(partitions, "bucket")
    assert sorted(row.p for row in rows.select(F.spark_partition_id().alias("p")).collect()) == list(range(partitions))


@pytest.fixture
def endless(session: SparkSession) -> DataFrame:
    return session.readStream.format("rate").load().withColumnRenamed("value", "id")


def test_a_batch_has_no_later_one_to_carry_to(session: SparkSession, ask: Any) -> None:
    with pytest.raises(ValueError, match="carry_over is for a streaming DataFrame"):
        unordered_wait(session.range(3), ask, "answer string", timeout=1.0, carry_over=SHORT)


def test_another_state_store_is_refused_with_the_setting_to_set(session: SparkSession, ask: Any) -> None:
    other = session.newSession()
    df = other.readStream.format("rate").load().withColumnRenamed("value", "id")
    with pytest.raises(ValueError, match=rf'HDFS.*: set "{PROVIDER}" to "{ROCKSDB}"'):
        unordered_wait(df, ask, "answer string", timeout=1.0, carry_over=SHORT)


def test_without_protobuf_it_says_what_to_install(
    endless: DataFrame, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.proto.StateMessage_pb2", None)
    with pytest.raises(ImportError, match=r"needs protobuf, .* pip install 'trio-asyncio-io\[spark\]'"):
        unordered_wait(endless, ask, "answer string", timeout=1.0, carry_over=SHORT)


def test_event_time_and_carry_over_exclude_each_other(endless: DataFrame, ask: Any) -> None:
    event_time = {"event_time": "timestamp", "max_out_of_orderness": "1 second"}
    with pytest.raises(ValueError, match="carry_over and event_time='timestamp' exclude each other"):
        unordered_wait(endless, ask, "answer string", timeout=1.0, carry_over=SHORT, **event_time)


def test_ordered_rows_are_not_carried_over_and_it_says_why(endless: DataFrame, ask: Any) -> None:
    with pytest.raises(TypeError, match="ordered_wait has no carry_over: one straggler would hold back"):
        ordered_wait(endless, ask, "answer string", timeout=1.0, carry_over=SHORT)


def test_a_number_of_seconds_is_no_carry_over(endless: DataFrame, ask: Any) -> None:
    with pytest.raises(TypeError, match=r"carry_over must be a CarryOver, such as CarryOver\(budget=5\.0\), got 5\.0"):
        unordered_wait(endless, ask, "answer string", timeout=1.0, carry_over=5.0)  # type: ignore[arg-type]
