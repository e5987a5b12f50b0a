"""The time zone of a query."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from udfs._sent.zone import Zone, portable_zone, tzinfo_of
from udfs._spark_task import SparkTask

TOKYO = {"spark.sql.session.timeZone": "Asia/Tokyo"}
IN_QUERY = {"spark.sql.execution.id": "7"}


@pytest.mark.parametrize(
    ("properties", "default", "expected"),
    [
        (None, "UTC", "Europe/Paris"),  # not in a task
        (TOKYO | IN_QUERY, "UTC", "Asia/Tokyo"),
        (TOKYO, "UTC", "Asia/Tokyo"),
        (IN_QUERY, "UTC", "UTC"),  # its session sets no time zone
        (IN_QUERY, None, "Europe/Paris"),  # a remote session
        ({}, "UTC", "Europe/Paris"),  # below df.rdd
    ],
)
def test_the_time_zone_is_that_of_the_query_if_spark_reports_it(
    monkeypatch: pytest.MonkeyPatch, properties: Any, default: Any, expected: str
) -> None:
    task = None if properties is None else SparkTask(0, 0, 0, properties.get)
    monkeypatch.setattr(SparkTask, "current", lambda: task)
    zone = pickle.loads(pickle.dumps(Zone("Europe/Paris", default)))
    assert zone.of_query() == expected


@pytest.mark.parametrize(
    "zone", ["+02:00", "+02", "+2", "+2:00", "+0200", "+02:00:00", "GMT+2", "GMT+02:00", "UTC+2", "UTC+02:00", "UT+2"]
)
def test_each_form_of_an_offset_that_spark_accepts_is_that_offset_in_python_and_in_arrow(zone: str) -> None:
    noon = datetime(2013, 7, 1, 12)
    assert tzinfo_of(zone).utcoffset(noon) == timedelta(hours=2)
    [value] = pa.array([0], pa.timestamp("us", tz=portable_zone(zone))).to_pylist()
    assert value.utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize(("zone", "hours"), [("-05:30", -5.5), ("GMT-5:30", -5.5), ("Z", 0), ("UT", 0), ("GMT", 0)])
def test_offsets_may_be_negative_or_zero(zone: str, hours: float) -> None:
    assert tzinfo_of(zone).utcoffset(None if hours else datetime(2013, 7, 1)) == timedelta(hours=hours)


def test_a_region_keeps_its_name() -> None:
    assert portable_zone("America/New_York") == "America/New_York"
    assert tzinfo_of("America/New_York").utcoffset(datetime(2013, 7, 1)) == timedelta(hours=-4)


@pytest.mark.parametrize("zone", ["PST", "Mars/Olympus_Mons", "../etc/passwd"])
def test_a_zone_that_python_lacks_is_refused_with_a_remedy(zone: str) -> None:
    with pytest.raises(ValueError, match=r"Python has no time zone '.*', .*: set spark.sql.session.timeZone to a reg"):
        tzinfo_of(zone)
