"""Two operators in one plan: the calls of both run at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.service import Service
from tests.support import PATIENCE, wait_until
from udfs import ordered_wait

BUFFER = "spark.sql.execution.pandas.udf.buffer.size"
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
CAPACITY = 10


@pytest.fixture
def batch(spark: SparkSession) -> Iterator[int]:
    """The rows of an Arrow batch, in a session that hardly buffers what it sends to a worker."""
    before = spark.conf.get(BUFFER)
    spark.conf.set(BUFFER, "64")  # Spark needs more than 4
    yield int(spark.conf.get(BATCH) or 0)
    spark.conf.set(BUFFER, before or "")


def asking(ask: Callable[[object], Awaitable[str]], stage: str) -> Any:
    async def call(id: int) -> str:  # noqa: A002 - the name of the column
        return await ask(f"{stage} {id}")

    return call


@pytest.mark.thorough
def test_the_second_operator_calls_while_the_first_one_is_at_its_capacity(
    spark: SparkSession, service: Service, batch: int
) -> None:
    """The first operator gets answers for two Arrow batches and one row more, by which Spark knows that they are full.

    Spark 3.5 keeps the last bytes of a batch until it sends the next one, so only the first of the two is sent.
    """
    release = service.hold()
    hold = service.answer

    async def answer(question: str) -> str:
        stage, row = question.split()
        return question if stage == "first" and int(row) <= 2 * batch else await hold(question)

    service.answer = answer
    df = spark.range(0, 5 * batch, 1, 1)
    for stage in ("first", "second"):
        df = ordered_wait(
            df, asking(service.client.ask, stage), f"{stage} string", inputs=["id"], timeout=PATIENCE, capacity=CAPACITY
        )
    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(df.collect)
        try:
            wait_until(lambda: rows.done() or service.running >= CAPACITY + batch)
        finally:
            release()
        assert [(row.first, row.second) for row in rows.result(PATIENCE)] == [
            (f"first {n}", f"second {n}") for n in range(5 * batch)
        ]
    assert service.peak_running >= CAPACITY + batch
