"""A job with a budget whose workers and drivers are killed: all runs together pay at most the budget."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from random import Random

import pytest
import trio

from tests.processes import Family, victim
from tests.real.drivers.memo_driver import CAPACITY
from tests.service import Service
from tests.support import PATIENCE
from tests.wheel import ROOT, environment_of_a_user

pytestmark = [pytest.mark.spark, pytest.mark.processes]

DRIVER = Path(__file__).with_name("budget_driver.py")
NUMBERS = 1_000
AMOUNT = 300
IN_FLIGHT = 2 * CAPACITY


def driver(service: Service, folder: Path) -> Family:
    command = [sys.executable, str(DRIVER), str(folder), str(service.client.port), str(NUMBERS), str(AMOUNT)]
    environment = environment_of_a_user(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT))
    return Family(command, folder, environment, "driver")


THREE = ["worker", "jvm", "driver"]


@pytest.mark.parametrize(
    "kills",
    [THREE, pytest.param([*THREE, "worker", "worker", *THREE], marks=pytest.mark.thorough)],
    ids=["each", "many"],
)
@pytest.mark.timeout(8 * PATIENCE, method="thread")
def test_all_runs_of_a_job_that_is_killed_pay_at_most_the_budget(
    service: Service, tmp_path: Path, kills: list[str]
) -> None:
    """The service kills a process at each of these calls, and counts them. The job is started until it succeeds."""
    moments = sorted(Random(7).sample(range(20, AMOUNT - len(kills) * IN_FLIGHT), len(kills)))
    remaining = list(zip(moments, kills, strict=True))
    jobs: list[Family] = []

    async def kills_one(question: str) -> str:
        if remaining and len(service.calls) >= remaining[0][0]:
            pid = victim(jobs[-1], remaining[0][1])
            if pid is not None:
                del remaining[0]
                os.kill(pid, signal.SIGKILL)
        await trio.lowlevel.checkpoint()
        return question

    service.answer = kills_one
    for _ in range(len(kills) + 1):
        jobs.append(driver(service, tmp_path))
        try:
            code = jobs[-1].leader.wait(2 * PATIENCE)
        finally:
            jobs[-1].kill()
        if code == 0:
            break
    assert code == 0, jobs[-1].tail()
    assert not remaining
    assert len(jobs) > 1
    assert AMOUNT - len(kills) * IN_FLIGHT <= len(service.calls) <= AMOUNT
