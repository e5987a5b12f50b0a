"""The check at the end of the demo: it finds every flight that did not come out as in the source data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support import variation_except
from udfs.demo.__main__ import ADDED_NAMES, LOST, WRONG, check
from udfs.demo._flights import PLANE, WEATHER, planes, weather

Row = dict[str, Any]
FLIGHT = "flight int, origin string, time_hour string, tailnum string"
ENRICHED = f"{FLIGHT}, {WEATHER}, {PLANE}, error string"
FLIGHTS = 6


def answers() -> list[Row]:
    """Enriched flights. The last one has no aircraft."""
    found = [
        {"flight": number, **observed, **aircraft}
        for number, observed, aircraft in zip(range(FLIGHTS), weather(), planes(), strict=False)
    ]
    found[-1] |= {"tailnum": None, **dict.fromkeys(ADDED_NAMES[-3:])}
    names = ["flight", "origin", "time_hour", "tailnum", *ADDED_NAMES]
    return [{**{name: row[name] for name in names}, "error": None} for row in found]


def fail(rows: list[Row]) -> None:
    rows[3] |= {**dict.fromkeys(ADDED_NAMES), "error": "refused"}


def spoil(rows: list[Row]) -> None:
    rows[0] |= {name: rows[1][name] for name in ADDED_NAMES[:4]}  # another's weather
    rows[-1] |= {"time_hour": None, "tailnum": rows[-1]["time_hour"]}  # a value in the next column, which was null
    rows.append(rows[4])
    del rows[2]


@pytest.mark.parametrize(("change", "lost", "wrong"), variation_except([(spoil, 3, 3)], [(fail, 0, 0), (spoil, 3, 3)]))
def test_the_check_counts_lost_and_wrong_flights(
    spark: SparkSession, change: Callable[[list[Row]], None], lost: int, wrong: int
) -> None:
    rows = answers()
    flights = spark.createDataFrame([tuple(row.values())[:4] for row in rows], FLIGHT)
    change(rows)
    enriched = spark.createDataFrame([tuple(row.values()) for row in rows], ENRICHED)
    problems = [LOST.format(lost), WRONG.format(wrong)] if lost else []
    assert check(spark, flights, enriched) == problems
