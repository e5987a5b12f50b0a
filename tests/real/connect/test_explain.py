"""What limited the calls of a query of a remote session."""

from __future__ import annotations

from typing import Any

import trio
from pyspark.sql import Observation, SparkSession

from tests.support import PATIENCE
from udfs import FixedDelay, explain, unordered_wait


async def down(id: int) -> int:  # noqa: A002 - the name of the column
    await trio.sleep(0.2)
    raise ConnectionError("down")


def test_a_query_is_explained(spark: SparkSession) -> None:
    options: dict[str, Any] = {
        "timeout": PATIENCE,
        "capacity": 2,
        "retry": FixedDelay(3, 0.1, retry_on=ConnectionError),
        "on_error": "null",
    }
    seen = Observation()
    rows = spark.range(0, 12, 1, 1)
    assert unordered_wait(rows, down, "same long", metrics=seen, **options).where("same is null").count() == 12
    assert explain(seen).limit == "retries", explain(seen)
