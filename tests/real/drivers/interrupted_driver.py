"""A driver for test_interrupted.py to interrupt: a job calls a service for each number.

python interrupted_driver.py PORT script|shell

As a script, it ends with the `KeyboardInterrupt`. As a shell, it cancels all jobs and runs another one.
"""

from __future__ import annotations

import sys

from tests.real.drivers.memo_driver import CONF
from tests.real.jobs import session
from tests.service import Client
from udfs import unordered_wait

CALLS = 10  # of both tasks


def main(port: int, kind: str) -> None:
    spark = session(CONF)
    numbers = spark.range(0, 200, 1, 2)
    asked = unordered_wait(
        numbers, Client(port).ask, "answer string", inputs=["id"], capacity=CALLS // 2, timeout=600.0
    )
    try:
        asked.collect()
    except KeyboardInterrupt:
        if kind == "script":
            raise
    spark.sparkContext.cancelAllJobs()
    assert numbers.count() == 200  # the session still works
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
