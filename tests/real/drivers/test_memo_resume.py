"""A job with a memo that is killed: all runs together pay for one pass and what was in flight."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
import trio

from tests.processes import Family
from tests.real.drivers.memo_driver import CAPACITY, HELD
from tests.service import Service
from tests.support import PATIENCE, wait_until
from tests.wheel import ROOT, environment_of_a_user
from udfs._memo.files import MemoFiles

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.thorough]

DRIVER = Path(__file__).with_name("memo_driver.py")
NUMBERS = 200
ANSWERED = 100
TASKS = 2
IN_FLIGHT = TASKS * CAPACITY


def driver(service: Service, folder: Path, copies: int) -> Family:
    command = [sys.executable, str(DRIVER), str(folder), str(service.client.port), str(NUMBERS), str(copies)]
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
    first = driver(service, tmp_path, 2)
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
    second = driver(service, tmp_path, 2)
    try:
        assert second.leader.wait(2 * PATIENCE) == 0, second.tail()
    finally:
        second.kill()
    assert len(service.calls) == NUMBERS + IN_FLIGHT
    check(service, tmp_path, 2)


def check(service: Service, folder: Path, copies: int) -> None:
    assert Counter(service.calls).keys() == set(map(str, range(NUMBERS)))
    rows = pq.read_table(folder / "sink").to_pylist()
    assert sorted((row["id"], row["answer"]) for row in rows) == [
        (n, str(n)) for n in range(NUMBERS) for _ in range(copies)
    ]


@pytest.mark.thorough
@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_workers_and_a_driver_that_are_killed_at_random_calls_repeat_only_those_in_flight(
    service: Service, tmp_path: Path
) -> None:
    """The service kills a worker at each of three calls, and the driver at a fourth."""
    random = Random(15)
    moments = sorted(random.sample(range(20, NUMBERS), 4))
    first = driver(service, tmp_path, 1)

    async def kills(question: str) -> str:
        if moments and len(service.calls) >= moments[0]:
            del moments[0]
            workers = [each.pid for each in first.alive() if "pyspark" in each.command and "daemon" in each.command]
            if moments:
                first.kill_one(random.choice(workers))
            else:
                first.kill()
        await trio.lowlevel.checkpoint()
        return question

    service.answer = kills
    try:
        assert first.leader.wait(2 * PATIENCE) != 0
    finally:
        first.kill()
    assert moments == [], first.tail()
    second = driver(service, tmp_path, 1)
    try:
        assert second.leader.wait(2 * PATIENCE) == 0, second.tail()
    finally:
        second.kill()
    assert len(service.calls) <= NUMBERS + 4 * TASKS * HELD
    check(service, tmp_path, 1)
