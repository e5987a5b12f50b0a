"""The time zone of a query."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import udfs._sent.zone
from udfs._sent.zone import Zone

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
    class Context:
        @staticmethod
        def get() -> Any:
            return None if properties is None else Context()

        def getLocalProperty(self, name: str) -> Any:  # noqa: N802 - Spark's
            return properties.get(name)

    monkeypatch.setattr(udfs._sent.zone, "TaskContext", Context)
    zone = pickle.loads(pickle.dumps(Zone("Europe/Paris", default)))
    assert zone.of_query() == expected
