"""A job with a budget whose workers and drivers are killed: all runs together pay at most the budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import Family
from tests.real.drivers.kills import run_and_kill
from tests.real.drivers.memo_driver import CAPACITY
from tests.real.jobs import start
from tests.service import Service
from tests.support import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.thorough]

DRIVER = Path(__file__).with_name("budget_driver.py")
NUMBERS = 1_000
AMOUNT = 300
IN_FLIGHT = 2 * CAPACITY
KILLS = ["worker", "jvm", "driver", "worker", "worker", "worker", "jvm", "driver"]


def driver(service: Service, folder: Path) -> Family:
    return start(DRIVER, folder, folder, service.client.port, NUMBERS, AMOUNT)


@pytest.mark.timeout(8 * PATIENCE, method="thread")
def test_all_runs_of_a_job_that_is_killed_pay_at_most_the_budget(service: Service, tmp_path: Path) -> None:
    """The service kills a process at each of these calls, and counts them. The job is started until it succeeds."""
    rows = range(20, AMOUNT - len(KILLS) * IN_FLIGHT)
    run_and_kill(service, lambda: driver(service, tmp_path), KILLS, rows, seed=7)
    assert AMOUNT - len(KILLS) * IN_FLIGHT <= len(service.calls) <= AMOUNT
