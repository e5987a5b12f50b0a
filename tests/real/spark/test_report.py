"""The report of a Spark query: one page of all its tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.report.report_page import Page, text_of
from trio_asyncio_io.report import report
from udfs import async_pandas_udf, unordered_wait

pytestmark = pytest.mark.spark


async def double(id: int) -> int:  # noqa: A002 - the column's name
    if id % 100 == 7:
        raise ConnectionError("reset")
    return 2 * id


def test_the_page_is_about_all_tasks(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    with report(path, title="doubled") as observer:
        rows = spark.range(300, numPartitions=3)
        unordered_wait(rows, double, "twice long", timeout=60.0, on_error="null", observer=observer).collect()
    page = Page(path)
    assert " in 3 tasks · <span>completed</span>" in text_of(path)
    assert page.cards["outputs"] == "300"
    found = page.sections["What went wrong"]
    assert found[:2] == ["ConnectionError", "3 failed calls, 3 records without a result"]
    assert found[-1] == "reset"
    assert " of double, stage " in found[-2]
    assert [each.name for each in tmp_path.iterdir()] == ["run.html"]


def test_the_page_is_written_if_the_query_fails(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    with pytest.raises(Exception, match="reset"), report(path) as observer:  # noqa: PT012 - the report must be left
        doubled = async_pandas_udf("long", timeout=60.0, observer=observer)(double)
        spark.range(7, 8, numPartitions=1).select(doubled("id")).collect()
    assert "failed: PythonException" in text_of(path)
    assert "ConnectionError" in Page(path).sections["What went wrong"]
