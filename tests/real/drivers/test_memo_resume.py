"""A job with a memo that is killed: all runs together pay for one pass and what was in flight."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import trio

from tests.processes import Family, is_alive, parent_of
from tests.real.drivers.kills import rows_of, run_and_kill
from tests.real.drivers.memo_driver import CAPACITY, HELD
from tests.real.jobs import start
from tests.real.memos import remembered
from tests.service import Service
from tests.support import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.processes]

DRIVER = Path(__file__).with_name("memo_driver.py")
NUMBERS = 200
ANSWERED = 100
TASKS = 2
IN_FLIGHT = TASKS * CAPACITY


def driver(service: Service, folder: Path, *group: int) -> Family:
    return start(DRIVER, folder, folder, service.client.port, NUMBERS, *group)


def answer_the_first(service: Service) -> None:
    """Answer as many calls as `ANSWERED`; all others hang."""

    async def answer(question: str) -> str:
        if len(service.calls) > ANSWERED:
            await trio.sleep_forever()
        return question

    service.answer = answer


def check(service: Service, folder: Path) -> None:
    assert set(rows_of(service)) == set(map(str, range(NUMBERS)))
    rows = pq.read_table(folder / "sink").to_pylist()
    assert sorted((row["id"], row["answer"]) for row in rows) == [(n, str(n)) for n in range(NUMBERS)]


@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_workers_whose_jvm_was_killed_cancel_their_calls_and_start_no_more(service: Service, tmp_path: Path) -> None:
    """PySpark's daemon would end them, too, so it is killed first."""
    answer_the_first(service)
    job = driver(service, tmp_path)
    try:
        job.until(lambda: remembered(tmp_path / "memo") == ANSWERED and service.running == IN_FLIGHT)
        [jvm] = [each.pid for each in job.alive() if "org.apache.spark.deploy.SparkSubmit" in each.command]
        family = {each.pid for each in job.alive() if "pyspark.daemon" in each.command}
        [daemon] = family & set(map(parent_of, family))
        workers = family - {daemon}
        job.kill_one(daemon)
        job.kill_one(jvm)
        job.until(lambda: service.running == 0)
        job.until(lambda: not any(map(is_alive, workers)))
        assert len(service.calls) == ANSWERED + IN_FLIGHT
        assert remembered(tmp_path / "memo") == ANSWERED
    finally:
        job.kill()


MANY = 2 * ["worker", "worker", "jvm", "driver", "worker"]


@pytest.mark.thorough
@pytest.mark.parametrize("group", [(), (5,)], ids=["rows", "groups"])
@pytest.mark.timeout(8 * PATIENCE, method="thread")
def test_processes_that_are_killed_at_random_calls_repeat_only_those_in_flight(
    service: Service, tmp_path: Path, group: tuple[int, ...]
) -> None:
    """The service kills a process at each of these rows, and counts the rows. A job that fails is started again.

    With groups, only rows that are not in the memo are in the calls of the next run. test_paid_llm.py kills a job once.
    """
    run_and_kill(service, lambda: driver(service, tmp_path, *group), MANY, range(20, NUMBERS), seed=15)
    assert len(rows_of(service)) <= NUMBERS + len(MANY) * TASKS * HELD
    assert (len(service.calls) < len(rows_of(service))) == bool(group)
    check(service, tmp_path)
