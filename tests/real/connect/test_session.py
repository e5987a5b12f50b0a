"""The remote session: metrics, interruption, threads, and packages sent to its workers."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql import Observation, SparkSession

from tests.entry_points import with_answer
from tests.service import Service
from tests.support import PATIENCE
from udfs import async_pandas_udf, ordered_wait, summary

ROOT = Path(__file__).parents[3]


EITHER = pytest.mark.parametrize("entry_point", ["column", "unordered"])


async def one(id: int) -> int:  # noqa: A002 - the name of the column
    return id


def test_it_has_no_spark_context(spark: SparkSession) -> None:
    """So the other tests show that the UDFs need none."""
    assert not hasattr(spark, "sparkContext")
    assert not hasattr(spark, "_jvm")


@EITHER
def test_the_tasks_of_the_server_share_the_cluster_capacity(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    async def answer(question: str) -> str:
        await service.until(lambda: service.peak_running == 6)
        return question

    service.answer = answer
    out = with_answer(spark.range(0, 40, 1, 2), entry_point, service.client.ask, timeout=PATIENCE, cluster_capacity=6)
    assert len(out.collect()) == 40 == len(service.calls)
    assert service.peak_running == 6


def test_a_cluster_capacity_below_the_number_of_tasks_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match=r"cluster_capacity must be at least .* 2, .* got 1"):
        ordered_wait(spark.range(3), one, "same long", timeout=PATIENCE, cluster_capacity=1)


def test_the_totals_of_a_query_are_observed(spark: SparkSession) -> None:
    seen = Observation("same")
    assert ordered_wait(spark.range(3), one, "same long", timeout=PATIENCE, metrics=seen).count() == 3
    assert seen.get["calls"] == 3
    p50, p99 = seen.get["p50"], seen.get["p99"]
    assert 0.0 <= p50 <= p99 <= seen.get["slowest"]
    assert summary(seen).startswith("3 rows, 3 calls, 0 retried, 0 failed")


@EITHER
def test_interrupting_ends_the_calls_and_makes_no_more(spark: SparkSession, service: Service, entry_point: str) -> None:
    service.hold()
    out = with_answer(spark.range(0, 1000, 1, 2), entry_point, service.client.ask, timeout=PATIENCE, capacity=5)
    errors: list[Exception] = []

    def act() -> None:
        try:
            out.collect()
        except Exception as error:  # noqa: BLE001 - checked below
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
    """A remote session is active in the thread that made it, and the default in all others."""
    with ThreadPoolExecutor(1) as threads:
        column = async_pandas_udf(one, "long", timeout=PATIENCE)
        df = threads.submit(lambda: spark.range(3).select(column("id").alias("id"))).result(PATIENCE)
    assert df.collect() == [(0,), (1,), (2,)]


def test_the_packages_may_be_sent_as_artifacts(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """Packages that the client sends take precedence over those of the server."""
    archive = tmp_path / "sent_along.zip"
    with ZipFile(archive, "w") as packages:
        for package in ("trio_asyncio_io", "udfs"):
            for source in (ROOT / package).rglob("*.py"):
                packages.write(source, source.relative_to(ROOT))

    async def origin(id: int) -> str:  # noqa: A002 - the name of the column
        import trio_asyncio_io  # noqa: PLC0415 - in the worker
        import udfs  # noqa: PLC0415

        return f"{udfs.__file__} {trio_asyncio_io.__file__}"

    other: Any = type(spark).builder.remote(url).create()
    try:
        other.addArtifacts(str(archive), pyfile=True)
        [row] = ordered_wait(other.range(1), origin, "files string", timeout=PATIENCE).collect()
    finally:
        other.stop()
        type(spark)._set_default_and_active_session(spark)
    assert row.files.count("sent_along.zip/") == 2
