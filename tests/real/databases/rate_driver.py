"""A driver for test_two_drivers.py: a job that calls a service at a rate whose tokens a Redis grants.

python rate_driver.py SERVICE_PORT URL RATE ROWS
"""

from __future__ import annotations

import sys

from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tests.service
from tests.service import Client
from udfs import ClusterRate, unordered_wait

CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def main(port: int, url: str, rate: float, rows: int) -> None:
    cloudpickle.register_pickle_by_value(tests.service)  # so that the workers need not import what the tests need
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    called = unordered_wait(
        spark.range(0, rows, 1, 2),
        Client(port).ask,
        "answer string",
        inputs=["id"],
        timeout=600.0,
        cluster_rate=ClusterRate(rate, by=url, name="two drivers"),
    )
    assert called.where("answer = id").count() == rows


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
