"""Names: the operators accept columns that Spark cannot look up by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support import PATIENCE, thorough_except
from udfs import keyed_wait, ordered_wait


def keyed_by_dot(df: DataFrame, *arguments: Any, **options: Any) -> DataFrame:
    return keyed_wait(df, *arguments, key="a.b", **options)


BOTH = [ordered_wait, keyed_by_dot]
WAITS = pytest.mark.parametrize("wait", BOTH, ids=lambda wait: wait.__name__)
ODD = ["id as `a.b`", "id + 1 as `a``b`", "id + 2 as ``", "id + 3 as `*`", "struct(id as b) as a", "1 as x", "2 as X"]


async def tenfold(dotted: int, quoted: int) -> tuple[int, int]:
    return 10 * dotted, 10 * quoted


@WAITS
def test_columns_of_any_name_are_preserved_and_may_be_inputs(spark: SparkSession, wait: Any) -> None:
    df = spark.range(0, 10, 1, 2).selectExpr("id", *ODD)
    out = wait(df, tenfold, "`c.d` long, ` ` long", inputs=["a.b", "a`b"], timeout=PATIENCE)
    assert out.columns == [*df.columns, "c.d", " "]
    assert sorted(tuple(row)[:5] + tuple(row)[-2:] for row in out.collect()) == [
        (n, n, n + 1, n + 2, n + 3, 10 * n, 10 * n + 10) for n in range(10)
    ]


async def up(value: int) -> int:
    return value + 1


def test_a_column_whose_name_has_a_dot_takes_precedence_over_a_field(spark: SparkSession) -> None:
    df = spark.range(1).selectExpr("named_struct('b', 100) as a", "1 as `a.b`")
    assert ordered_wait(df, up, "v long", inputs=["a.b"], timeout=PATIENCE).first()["v"] == 2  # type: ignore[index]


@pytest.mark.variation
@pytest.mark.parametrize("wait", thorough_except([keyed_by_dot], BOTH), ids=lambda wait: wait.__name__)
def test_columns_of_any_name_may_be_inputs_in_a_stream(spark: SparkSession, tmp_path: Path, wait: Any) -> None:
    source = str(tmp_path / "source")
    df = spark.range(10).selectExpr("id as `a.b`", "id as `a b`")
    df.write.json(source)
    stream = spark.readStream.schema(df.schema).json(source)
    out = wait(stream, up, "`c.d` long", inputs=["a.b"], timeout=PATIENCE)
    name = f"names_{wait.__name__}"
    query = out.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    query.awaitTermination()
    assert sorted(tuple(row) for row in spark.table(name).collect()) == [(n, n, n + 1) for n in range(10)]
