"""Forecasts a job of 100 rows with a memo, for test_rehearsal_killed.py to kill.

python rehearsal_job.py PORT MEMO SAMPLE
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from pyspark.sql import SparkSession

from tests.real.jobs import session
from tests.service import Client
from tests.support import PATIENCE
from udfs import rehearse

ROWS = 100


def rehearsal(spark: SparkSession, client: Client, memo: Path, sample: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows = spark.range(0, ROWS, 1, 2)
        rehearse(rows, client.ask, "answer string", sample, timeout=PATIENCE, inputs=["id"], memo=memo)


if __name__ == "__main__":
    rehearsal(session(), Client(int(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
