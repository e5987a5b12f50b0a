"""Errors: how they reach the driver, and what they do to the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.entry_points import EVERY_ENTRY_POINT, with_answer
from tests.service import Service
from tests.support import PATIENCE, thorough_except
from udfs import FixedDelay, ordered_wait

ROWS = 60
# A failed job ends its workers, and so costs seconds
COLUMN = pytest.mark.parametrize("entry_point", thorough_except(["column"], ["column", "unordered"]))
ROWS_ONLY = pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))

# Spark 3.5 always puts its own traceback before the message
MESSAGE_FIRST = not pyspark.__version__.startswith("3.5.")


async def trouble(id: int) -> Any:  # noqa: A002 - the name of the column
    """Fails for 7, and returns a string for 33."""
    if id == 7:
        raise LookupError("no row 7")
    return "thirty-three" if id == 33 else 10 * id


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 59 in three partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, 3)


def error_lines(df: DataFrame) -> list[str]:
    """The lines of the error with which the job fails."""
    with pytest.raises(PythonException) as caught:
        df.collect()
    return str(caught.value).strip().splitlines()


def enriched(df: DataFrame, entry_point: str, function: Any, **options: Any) -> DataFrame:
    return with_answer(df, entry_point, function, "long", **options)


@COLUMN
def test_the_users_exception_its_row_and_its_line_reach_the_driver(numbers: DataFrame, entry_point: str) -> None:
    lines = error_lines(enriched(numbers.where("id <> 33"), entry_point, trouble))
    assert lines[-2:] == ["LookupError: no row 7", "element 7, row (7), attempt 1"]
    assert 'raise LookupError("no row 7")' in "\n".join(lines[-5:])
    tracebacks = [at for at, line in enumerate(lines) if "Traceback" in line]
    assert lines[tracebacks[-1] + 1].endswith(", in trouble")  # the first frame is the user's
    if MESSAGE_FIRST:
        assert lines[1:3] == lines[-2:]  # first, and below its traceback again
        assert len(tracebacks) == 1  # not that of the operator


@pytest.mark.thorough
def test_the_error_of_a_streaming_query_starts_with_them(spark: SparkSession, tmp_path: Path) -> None:
    """Spark puts the query before them and its plan behind them."""
    source = str(tmp_path / "source")
    spark.range(0, ROWS, 1, 1).write.parquet(source)
    df = enriched(spark.readStream.schema("id long").parquet(source), "unordered", trouble)
    query = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    lines = str(caught.value).splitlines()
    first = next(at for at, line in enumerate(lines) if line.endswith("LookupError: no row 7"))
    assert lines[first + 1] == "element 7, row (7), attempt 1"
    if MESSAGE_FIRST:
        assert first == 0


@ROWS_ONLY
def test_a_result_of_the_wrong_type_fails_the_job_and_names_row_and_value(numbers: DataFrame, entry_point: str) -> None:
    lines = error_lines(enriched(numbers.where("id <> 7"), entry_point, trouble))
    assert "trouble returned str 'thirty-three' for row (33), but " in lines[-1]
    assert lines[-1].endswith(" is declared bigint: return an int, such as int(value)")


@EVERY_ENTRY_POINT
def test_on_error_null_gives_null_for_the_failed_rows_only(numbers: DataFrame, entry_point: str) -> None:
    out = enriched(numbers, entry_point, trouble, on_error="null").collect()
    assert sorted((row.id, row.answer) for row in out) == [(n, None if n in {7, 33} else 10 * n) for n in range(ROWS)]


@EVERY_ENTRY_POINT
def test_on_error_column_describes_the_error_of_each_row(numbers: DataFrame, entry_point: str) -> None:
    retry = FixedDelay(2, 0.0, retry_on=LookupError)
    out = enriched(numbers, entry_point, trouble, on_error="column", retry=retry).collect()
    assert {row.id: row.answer for row in out if row.error is None} == {
        n: 10 * n for n in range(ROWS) if n not in {7, 33}
    }
    failed = {row.id: row for row in out if row.error is not None}
    assert set(failed) == {7, 33}
    error = failed[7].error
    assert (error.type, error.message, error.attempts) == ("LookupError", "no row 7", 3)
    assert error.seconds >= 0
    assert failed[33].error.type == "ResultTypeError"
    assert failed[7].answer is failed[33].answer is None


def test_several_columns_are_null_together(numbers: DataFrame) -> None:
    async def pair(id: int) -> dict[str, int]:  # noqa: A002 - the name of the column
        return {"a": id, "b": 1 // (id - 7)} if id != 8 else {"a": id}

    out = ordered_wait(numbers.limit(10), pair, "a long, b long", timeout=PATIENCE, on_error="column").collect()
    assert [(row.a, row.b) for row in out if row.id in {7, 8}] == [(None, None)] * 2
    assert [row.error.message for row in out if row.id == 8] == [
        (
            "pair returned dict {'a': 8} for row (8), but the new columns are declared struct<a:bigint,b:bigint>: "
            "return 'b', too"
        )
    ]
    assert sum(row.error is None for row in out) == 8


def number_from(service: Service) -> Any:
    """Calls the service, and raises ValueError for an answer that is not a number."""
    client = service.client

    async def ask(id: int) -> int:  # noqa: A002 - the name of the column
        return int(await client.ask(id))

    return ask


@EVERY_ENTRY_POINT
def test_a_timeout_cancels_the_call_and_the_service_sees_the_hang_up(
    numbers: DataFrame, entry_point: str, service: Service
) -> None:
    service.hold()
    hold = service.answer

    async def answer(question: str) -> str:
        return await hold(question) if question == "7" else question

    service.answer = answer
    out = enriched(numbers, entry_point, number_from(service), timeout=2.0, on_error="null").collect()
    assert {row.id: row.answer for row in out}[7] is None
    assert all(row.answer in {row.id, None} for row in out)  # on a busy machine, others may be late as well
    service.wait_until(lambda: "7" in service.hung_up and service.connected == 0)
