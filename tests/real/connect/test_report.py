"""The report of a query in a remote session whose server reaches the directory of the client."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.report.report_page import Page, text_of
from tests.support import PATIENCE
from trio_asyncio_io.report import report
from udfs import ordered_wait


async def double(id: int) -> int:  # noqa: A002 - the column's name
    return 2 * id


def test_the_page_is_about_all_tasks(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    with report(path, title="doubled") as observer:
        rows = spark.range(0, 100, 1, 2)
        ordered_wait(rows, double, "twice long", timeout=PATIENCE, observer=observer).collect()
    assert " in 2 tasks · <span>completed</span>" in text_of(path)
    assert Page(path).cards["outputs"] == "100"
