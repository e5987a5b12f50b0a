"""Errors: what reaches the driver, and what becomes of the rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from udfs import FixedDelay, async_pandas_udf, ordered_wait, unordered_wait

ROWS = 60
EVERY_DOOR = pytest.mark.parametrize("kind", ["column", "ordered", "unordered"])
# A failed job costs its workers, and so the next one seconds.
EITHER_WAY = pytest.mark.parametrize("kind", ["column", "unordered"])


async def trouble(id: int) -> Any:  # noqa: A002 - the column is called so
    """Fails for 7, and gives what is no number for 33."""
    if id == 7:
        raise LookupError("there is no seven")
    return "thirty-three" if id == 33 else 10 * id


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 59 in three partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, 3)


def told(df: DataFrame) -> list[str]:
    """The lines of what the driver says of the failed job."""
    with pytest.raises(PythonException) as caught:
        df.collect()
    return str(caught.value).strip().splitlines()


def enriched(df: DataFrame, kind: str, function: Any, **more: Any) -> DataFrame:
    """With a new column `result` by the door of this name."""
    more.setdefault("timeout", 30.0)
    if kind == "column":
        return df.withColumn("result", async_pandas_udf(function, "long", **more)("id"))
    wait = ordered_wait if kind == "ordered" else unordered_wait
    return wait(df, function, "result long", **more)


@EITHER_WAY
def test_the_users_exception_its_row_and_its_line_reach_the_driver(numbers: DataFrame, kind: str) -> None:
    lines = told(enriched(numbers.where("id <> 33"), kind, trouble))
    assert lines[-2:] == ["LookupError: there is no seven", "element 7, row (7), attempt 1"]
    assert lines[1:3] == lines[-2:]  # first, and below its traceback again
    assert 'raise LookupError("there is no seven")' in "\n".join(lines[-5:])
    assert sum("Traceback" in line for line in lines) == 1  # and not how the operator got there
    [traceback] = [at for at, line in enumerate(lines) if "Traceback" in line]
    assert lines[traceback + 1].endswith(", in trouble")  # the first frame is the user's


def test_of_a_streaming_query_they_stand_in_the_first_lines(spark: SparkSession, tmp_path: Path) -> None:
    """Spark says which query it was, and goes on with its plan."""
    source = str(tmp_path / "source")
    spark.range(0, ROWS, 1, 1).write.parquet(source)
    df = enriched(spark.readStream.schema("id long").parquet(source), "unordered", trouble)
    query = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    lines = str(caught.value).splitlines()
    assert lines[0].endswith(": LookupError: there is no seven")
    assert lines[1] == "element 7, row (7), attempt 1"


@EITHER_WAY
def test_a_cause_is_told_too(numbers: DataFrame, kind: str) -> None:
    async def look_up(id: int) -> int:  # noqa: A002 - the column is called so
        try:
            return {0: 1}[id]
        except KeyError as error:
            raise LookupError("not in the list") from error

    text = "\n".join(told(enriched(numbers.where("id = 7"), kind, look_up)))
    assert "KeyError: 7" in text
    assert "The above exception was the direct cause of the following exception" in text


@EITHER_WAY
def test_a_result_of_the_wrong_type_fails_the_job_and_names_row_and_value(numbers: DataFrame, kind: str) -> None:
    lines = told(enriched(numbers.where("id <> 7"), kind, trouble))
    assert "trouble returned str 'thirty-three', which is not a bigint" in lines[-1]
    assert lines[-1].endswith("for row (33)")


@EVERY_DOOR
def test_on_error_null_gives_null_for_those_rows_and_no_others(numbers: DataFrame, kind: str) -> None:
    out = enriched(numbers, kind, trouble, on_error="null").collect()
    assert sorted((row.id, row.result) for row in out) == [(n, None if n in {7, 33} else 10 * n) for n in range(ROWS)]


@EVERY_DOOR
def test_on_error_column_says_what_happened_to_each_row(numbers: DataFrame, kind: str) -> None:
    df = enriched(numbers, kind, trouble, on_error="column", retry=FixedDelay(2, 0.0, retry_on=LookupError))
    if kind == "column":
        df = df.select("id", "result.result", "result.error")
    df = df.localCheckpoint()
    assert df.where("error is null and result = 10 * id").count() == ROWS - 2
    letters = {row.id: row for row in df.where("error is not null").collect()}
    assert set(letters) == {7, 33}
    error = letters[7].error
    assert (letters[7].result, error.type, error.message, error.attempts) == (
        None,
        "LookupError",
        "there is no seven",
        3,
    )
    assert error.seconds >= 0
    assert (letters[33].result, letters[33].error.type) == (None, "ResultTypeError")


def test_several_columns_are_null_together(numbers: DataFrame) -> None:
    async def pair(id: int) -> dict[str, int]:  # noqa: A002 - the column is called so
        return {"a": id, "b": 1 // (id - 7)} if id != 8 else {"a": id}

    out = ordered_wait(numbers.limit(10), pair, "a long, b long", timeout=30.0, on_error="column").collect()
    assert [(row.a, row.b) for row in out if row.id in {7, 8}] == [(None, None)] * 2
    assert [row.error.message for row in out if row.id == 8] == ["pair returned dict {'a': 8} without b, for row (8)"]
    assert sum(row.error is None for row in out) == 8


@EVERY_DOOR
def test_a_failed_call_is_made_again(numbers: DataFrame, kind: str, service: Any) -> None:
    client = service.client

    async def answer(question: str) -> str:
        return "busy" if question in {"1", "2"} and service.calls.count(question) < 3 else question

    async def ask(id: int) -> int:  # noqa: A002 - the column is called so
        return int(await client.ask(id))  # int("busy") is a ValueError

    service.answer = answer
    df = enriched(numbers, kind, ask, retry=FixedDelay(2, 0.0, retry_on=ValueError))
    assert sorted(row.result for row in df.collect()) == list(range(ROWS))
    assert Counter(service.calls) == Counter({str(n): 3 if n in {1, 2} else 1 for n in range(ROWS)})


@EVERY_DOOR
def test_a_timeout_cancels_the_call_and_the_service_sees_the_hang_up(
    numbers: DataFrame, kind: str, service: Any
) -> None:
    client = service.client
    never = service.hold()

    async def answer(question: str, hold: Any = service.answer) -> str:
        return await hold(question) if question == "7" else question

    async def ask(id: int) -> int:  # noqa: A002 - the column is called so
        return int(await client.ask(id))

    service.answer = answer
    out = enriched(numbers, kind, ask, timeout=2.0, on_error="null").collect()
    assert sorted((row.id, row.result) for row in out) == [(n, None if n == 7 else n) for n in range(ROWS)]
    service.wait_until(lambda: service.hung_up == ["7"] and service.connected == 0)
    never()


def test_on_timeout_gives_the_result_instead(numbers: DataFrame, service: Any) -> None:
    client = service.client
    release = service.hold()

    async def ask(id: int) -> int:  # noqa: A002 - the column is called so
        return int(await client.ask(id))

    async def give_up(id: int) -> int:  # noqa: A002 - the column is called so
        return -id

    df = enriched(numbers.limit(5), "ordered", ask, timeout=0.5, on_timeout=give_up)
    assert [row.result for row in df.collect()] == [0, -1, -2, -3, -4]
    release()


def test_a_timeout_that_fails_the_job_names_the_row_and_the_seconds(numbers: DataFrame, service: Any) -> None:
    client = service.client
    release = service.hold()

    async def ask(id: int) -> int:  # noqa: A002 - the column is called so
        return int(await client.ask(id))

    lines = told(enriched(numbers.limit(1), "column", ask, timeout=0.5))
    assert "the function gave no result for row (0) within its timeout of 0.5 s" in "\n".join(lines)
    release()


def test_an_open_that_fails_reaches_the_driver(numbers: DataFrame) -> None:
    class Shut:
        async def open(self) -> None:
            raise ConnectionError("no route to the service")

        async def invoke(self, id: int) -> int:  # noqa: A002 - the column is called so
            return id

    assert told(enriched(numbers, "ordered", Shut()))[-1] == "ConnectionError: no route to the service"


def test_an_exception_whose_text_cannot_be_encoded_reaches_the_driver_with_escapes(numbers: DataFrame) -> None:
    async def read(id: int) -> int:  # noqa: A002 - the column is called so
        raise OSError("cannot open caf\udce9.txt")

    lines = told(ordered_wait(numbers.where("id = 7"), read, "result long", timeout=30.0))
    assert "OSError: cannot open caf\\udce9.txt" in lines
