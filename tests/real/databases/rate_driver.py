"""A driver for test_two_drivers.py: a job that calls a service at a rate whose tokens a Redis grants.

python rate_driver.py SERVICE_PORT URL RATE ROWS
"""

from __future__ import annotations

import sys

from tests.real.jobs import session
from tests.service import Client
from udfs import ClusterRate, unordered_wait


def main(port: int, url: str, rate: float, rows: int) -> None:
    called = unordered_wait(
        session().range(0, rows, 1, 2),
        Client(port).ask,
        "answer string",
        inputs=["id"],
        timeout=600.0,
        cluster_rate=ClusterRate(rate, by=url, name="two drivers"),
    )
    assert called.where("answer = id").count() == rows


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
