"""Streaming in a remote session: each row of the source is written once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.sql import SparkSession

from tests.entry_points import with_answer
from tests.service import Service
from tests.streaming import ROCKSDB, STATE_STORE, FileStream
from udfs import CarryOver

ROWS = 40


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> FileStream:
    return FileStream.of_two_files(spark, tmp_path, ROWS)


@pytest.mark.parametrize("entry_point", ["column", "ordered", "unordered", "keyed"])
def test_every_row_is_called_once_and_written_once(stream: FileStream, service: Service, entry_point: str) -> None:
    options: dict[str, Any] = {}
    df = stream.read()
    if entry_point == "unordered":
        df = df.withWatermark("ts", "1 minute")
        options = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
    rows = stream.run(with_answer(df, entry_point, service.client.ask, **options))
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


def test_stragglers_are_carried_over(stream: FileStream, service: Service) -> None:
    """The service leaves the first call of one row in ten unanswered."""
    attempts: Counter[str] = Counter()

    async def answer(question: str) -> str:
        attempts[question] += 1
        if int(question) % 10 == 0 and attempts[question] == 1:
            await trio.sleep_forever()
        return question

    service.answer = answer
    stream.session.conf.set(STATE_STORE, ROCKSDB)
    carry_over = CarryOver(budget=1.0)
    stream.start(with_answer(stream.read(), "unordered", service.client.ask, carry_over=carry_over))
    try:
        rows = stream.until(lambda rows: len(rows) >= ROWS)
    finally:
        stream.stop()
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    assert all(attempts[str(n)] > 1 for n in range(0, ROWS, 10))  # they were carried over
