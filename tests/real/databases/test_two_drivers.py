"""Two Spark applications, each with a driver of its own, share a rate through a Redis that loses its memory.

test_cluster_rate.py has a short form, without Spark.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from redis import Redis

from benchmarks.resilience._counting import most_in_a_second
from tests.processes import Family
from tests.real.jobs import start
from tests.service import Service
from tests.support import PATIENCE, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.thorough]

DRIVER = Path(__file__).with_name("rate_driver.py")
RATE = 40
ROWS = 120

# A call that is delayed on its way arrives together with those behind it, and the machine may be busy
LATE = 1.25


@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_two_applications_share_a_rate_although_the_server_is_flushed(
    redis_server: str, service: Service, tmp_path: Path
) -> None:
    arrivals: list[float] = []

    async def answer(question: str) -> str:
        arrivals.append(time.monotonic())
        return question

    service.answer = answer
    url = f"unix://{redis_server}"
    drivers = [start(DRIVER, tmp_path, service.client.port, url, RATE, ROWS, name=name) for name in ("one", "two")]
    try:
        with Redis.from_url(url) as redis:
            for share in (0.25, 0.5, 0.75):
                wait_until(lambda share=share: len(arrivals) >= share * 2 * ROWS or ended(drivers))
                redis.flushall()
        for driver in drivers:
            assert driver.leader.wait(2 * PATIENCE) == 0, driver.tail()
    finally:
        for driver in drivers:
            driver.kill()
    assert len(arrivals) == 2 * ROWS
    assert most_in_a_second(arrivals) <= RATE * LATE


def ended(drivers: list[Family]) -> bool:
    return any(driver.leader.poll() is not None for driver in drivers)
