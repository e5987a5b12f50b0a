"""A driver for test_budget_killed.py to kill: a job with a budget calls a service for each number.

python budget_driver.py FOLDER PORT NUMBERS AMOUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.real.drivers.memo_driver import CAPACITY, CONF
from tests.real.jobs import session
from tests.service import Client
from udfs import ClusterBudget, unordered_wait


def main(folder: Path, port: int, numbers: int, amount: int) -> None:
    asked = unordered_wait(
        session(CONF).range(0, numbers, 1, 4),
        Client(port).ask,
        "answer string",
        inputs=["id"],
        on_error="null",
        capacity=CAPACITY,
        timeout=600.0,
        cluster_budget=ClusterBudget(amount, name="killed", path=folder / "budgets"),
    )
    asked.write.mode("overwrite").parquet(str(folder / "sink"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
