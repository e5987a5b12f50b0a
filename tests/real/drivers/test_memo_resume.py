"""A job with a memo whose driver is killed half-way: both runs together pay for one pass and what was in flight."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import trio

from tests.processes import Family
from tests.service import Service
from tests.support import PATIENCE, wait_until
from tests.wheel import ROOT, environment_of_a_user
from udfs._memo.files import MemoFiles

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.thorough]

DRIVER = Path(__file__).with_name("memo_driver.py")
NUMBERS = 200
ANSWERED = 100
IN_FLIGHT = 2 * 5  # tasks, and their capacity


def driver(service: Service, folder: Path) -> Family:
    command = [sys.executable, str(DRIVER), str(folder), str(service.client.port), str(NUMBERS)]
    environment = environment_of_a_user(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    return Family(command, folder, environment, "driver")


def remembered(folder: Path) -> int:
    """The number of answers in the memo."""
    files = MemoFiles(str(folder / "memo"))
    return sum(files.read(name).num_rows for name in files.names())


@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_a_job_that_is_killed_half_way_pays_once_more_only_for_the_calls_in_flight(
    service: Service, tmp_path: Path
) -> None:
    async def answers_the_first(question: str) -> str:
        if len(service.calls) > ANSWERED:
            await trio.sleep_forever()
        return question

    service.answer = answers_the_first
    first = driver(service, tmp_path)
    try:
        wait_until(
            lambda: (
                first.leader.poll() is not None or (remembered(tmp_path) == ANSWERED and service.running == IN_FLIGHT)
            ),
            "the answers are not in the memo",
        )
        assert first.leader.poll() is None, first.tail()
    finally:
        first.kill()
    paid = Counter(service.calls)
    assert len(service.calls) == ANSWERED + IN_FLIGHT
    assert set(paid.values()) == {1}

    async def answers_all(question: str) -> str:
        return question

    service.answer = answers_all
    second = driver(service, tmp_path)
    try:
        assert second.leader.wait(2 * PATIENCE) == 0, second.tail()
    finally:
        second.kill()
    assert len(service.calls) == NUMBERS + IN_FLIGHT
    assert Counter(service.calls).keys() == set(map(str, range(NUMBERS)))
    rows = pq.read_table(tmp_path / "sink").to_pylist()
    assert sorted((row["id"], row["answer"]) for row in rows) == [(n, str(n)) for n in range(NUMBERS) for _ in range(2)]
