"""A driver for test_budget_killed.py to kill: a job with a budget calls a service for each number.

python budget_driver.py FOLDER PORT NUMBERS AMOUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tests.service
from tests.real.drivers.memo_driver import CAPACITY, CONF
from tests.service import Client
from udfs import ClusterBudget, unordered_wait


def main(folder: Path, port: int, numbers: int, amount: int) -> None:
    cloudpickle.register_pickle_by_value(tests.service)  # so that the workers need not import what the tests need
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    asked = unordered_wait(
        spark.range(0, numbers, 1, 4),
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
