"""A forecast that is killed or interrupted in its sample keeps all answers that it has paid for."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest
import trio
from pyspark.sql import SparkSession

from tests.real.jobs import start
from tests.real.memos import remembered
from tests.real.spark.rehearsal_job import ROWS, rehearsal
from tests.service import Service

PROGRAM = Path(__file__).with_name("rehearsal_job.py")
SAMPLE, ANSWERED = 60, 20


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_forecast_that_ends_in_its_sample_loses_no_answer(
    end: signal.Signals, spark: SparkSession, service: Service, tmp_path: Path
) -> None:
    async def answer_some(question: str) -> str:
        if service.calls.index(question) >= ANSWERED:
            await trio.sleep_forever()
        return question

    service.answer = answer_some
    memo = tmp_path / "memo"
    first = start(PROGRAM, tmp_path, service.client.port, memo, SAMPLE)
    try:
        first.until(lambda: len(service.calls) == SAMPLE and remembered(memo) == ANSWERED)
        first.kill_one(first.leader.pid) if end == signal.SIGKILL else first.leader.send_signal(end)
        first.until(lambda: first.leader.poll() is not None)
    finally:
        first.kill()

    async def answer_all(question: str) -> str:
        return question

    service.answer = answer_all
    rehearsal(spark, service.client, memo, ROWS)
    calls = Counter(service.calls)
    assert len(calls) == ROWS
    assert sorted(calls.values()) == [1] * (ROWS - SAMPLE + ANSWERED) + [2] * (SAMPLE - ANSWERED)
    assert remembered(memo) == ROWS
