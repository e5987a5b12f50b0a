"""The remote session itself: what it tells, what it interrupts, and what it sends to its workers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import Observation, SparkSession

from tests.support import PATIENCE
from udfs import async_pandas_udf, ordered_wait, summary, unordered_wait

ROOT = Path(__file__).parents[3]


async def one(id: int) -> int:  # noqa: A002 - the column is called so
    return id


def test_it_has_no_spark_context(spark: SparkSession) -> None:
    """So the rest of these tests shows that nothing here wants one."""
    assert not hasattr(spark, "sparkContext")
    assert not hasattr(spark, "_jvm")


@pytest.mark.parametrize("door", ["column", "rows"])
def test_the_capacity_of_the_cluster_is_shared_among_the_slots_of_the_server(
    spark: SparkSession, service: Any, door: str
) -> None:
    client = service.client

    async def answer(question: str) -> str:
        await service.until(lambda: service.peak_running == 6)
        return question

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    service.answer = answer
    df = spark.range(0, 40, 1, 2)
    options: Any = {"timeout": 30.0, "cluster_capacity": 6}
    if door == "column":
        out = df.select(async_pandas_udf(ask, "string", **options)("id").alias("answer"))
    else:
        out = unordered_wait(df, ask, "answer string", **options)
    assert len(out.collect()) == 40 == len(service.calls)
    assert service.peak_running == 6


def test_a_capacity_below_the_slots_of_the_server_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"cluster_capacity must be at least .* 2, .* got 1"):
        ordered_wait(spark.range(3), one, "same long", timeout=30.0, cluster_capacity=1)


def test_the_sums_of_a_query_are_observed(spark: SparkSession) -> None:
    seen = Observation("same")
    assert ordered_wait(spark.range(3), one, "same long", timeout=30.0, metrics=seen).count() == 3
    assert seen.get["calls"] == 3
    assert summary(seen).startswith("3 rows, 3 calls, 0 retried, 0 failed")


@pytest.mark.parametrize("door", ["column", "rows"])
def test_interrupting_ends_the_calls_and_makes_no_more(spark: SparkSession, service: Any, door: str) -> None:
    client = service.client
    service.hold()

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    df = spark.range(0, 1000, 1, 2)
    options: Any = {"timeout": 600.0, "capacity": 5}
    if door == "column":
        out = df.select(async_pandas_udf(ask, "string", **options)("id").alias("answer"))
    else:
        out = unordered_wait(df, ask, "answer string", **options)
    errors: list[Exception] = []

    def act() -> None:
        try:
            out.collect()
        except Exception as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    action = threading.Thread(target=act, name="action", daemon=True)
    action.start()
    service.wait_until(lambda: service.running == 10)
    spark.interruptAll()
    action.join(PATIENCE)
    assert "OPERATION_CANCELED" in str(errors)
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) == len(service.hung_up) == 10


def test_a_column_may_be_built_in_any_thread(spark: SparkSession) -> None:
    """A remote session is the active one of the thread that made it, and the default of all others."""
    with ThreadPoolExecutor(1) as threads:
        column = async_pandas_udf(one, "long", timeout=30.0)
        df = threads.submit(lambda: spark.range(3).select(column("id").alias("id"))).result(PATIENCE)
    assert df.collect() == [(0,), (1,), (2,)]


def test_the_packages_may_be_sent_as_artifacts(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """To a server that has them not, or has others: what is sent comes first."""
    archive = tmp_path / "sent_along.zip"
    with ZipFile(archive, "w") as packages:
        for package in ("trio_asyncio_io", "udfs"):
            for source in (ROOT / package).rglob("*.py"):
                packages.write(source, source.relative_to(ROOT))

    async def origin(id: int) -> str:  # noqa: A002 - the column is called so
        import trio_asyncio_io  # noqa: PLC0415 - looks where the worker has it from
        import udfs  # noqa: PLC0415

        return f"{udfs.__file__} {trio_asyncio_io.__file__}"

    other: Any = type(spark).builder.remote(url).create()
    try:
        other.addArtifacts(str(archive), pyfile=True)
        [row] = ordered_wait(other.range(1), origin, "files string", timeout=30.0).collect()
    finally:
        other.stop()
        type(spark)._set_default_and_active_session(spark)
    assert row.files.count("sent_along.zip/") == 2
